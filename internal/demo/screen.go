package demo

import (
	"io"
	"time"

	"github.com/settlehq/settle/internal/redraw"
)

// Screen shows a run in progress. Its methods are safe for concurrent use.
type Screen interface {
	// Start begins the display: look may be called at any time until Stop for the progress of the run.
	Start(p Plan, look func() Snapshot)
	// Note shows an event.
	Note(n Note)
	// Stop ends the display of progress.
	Stop()
}

// NewScreen returns a live table if w is a terminal, and a few lines otherwise.
func NewScreen(w io.Writer) Screen {
	if f, ok := redraw.Terminal(w); ok {
		return &liveScreen{f: f, screen: redraw.New(f), frame: &frame{style: styleFor(w)}}
	}
	return &plainScreen{w: w}
}

// Plan describes a run before it starts.
type Plan struct {
	Flights, Airports   int
	Workers, Partitions int
	// Processes is set if the workers are processes of their own.
	Processes bool
	// Server describes the server and its durability.
	Server string
}

// Snapshot is the progress of a run.
type Snapshot struct {
	Phase          Phase
	Sent, ToSend   int
	Handled, Total int // departures and arrivals
	Commits        int
	Takeovers      int
	Workers        []string
	Airports       []Airport // the watched ones
	Elapsed        time.Duration
}

// Phase is a phase of a run.
type Phase string

// The phases in their order.
const (
	Starting  Phase = "starting"
	Running   Phase = "handling"
	Saving    Phase = "saving"
	Verifying Phase = "verifying"
)

// Airport is a watched airport as shown by the live queries.
type Airport struct {
	Code       string
	Rank       int // in the nation's ranking; 0 without one
	Known      bool
	Departures int64
	MeanDelay  float64 // minutes
	OnTime     float64 // share
	Revision   uint64  // log sequence
	Owner      string  // worker
}

// Note is an event of a run.
type Note struct {
	Kind   NoteKind
	Worker string  // of Killed and Joined
	Text   string  // of Warning
	Share  float64 // handled share of the run at that time
}

// NoteKind is the kind of a Note.
type NoteKind int

// The kinds of notes.
const (
	Killed NoteKind = iota + 1
	Joined
	Warning
)
