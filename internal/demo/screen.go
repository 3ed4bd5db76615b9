package demo

import (
	"io"
	"time"
)

// Screen shows a run while it goes on. Its methods may be called from any
// goroutine.
type Screen interface {
	// Start begins: look tells at any time until Stop how far the run is.
	Start(p Plan, look func() Snapshot)
	// Note says that something has happened.
	Note(n Note)
	// Stop ends what moves.
	Stop()
}

// NewScreen is a live table if w is a terminal, and a few lines if not.
func NewScreen(w io.Writer) Screen {
	if f, ok := terminal(w); ok {
		return &liveScreen{f: f, frame: &frame{style: styleFor(w)}}
	}
	return &plainScreen{w: w}
}

// Plan is what a run is about to do.
type Plan struct {
	Flights, Airports   int
	Workers, Partitions int
	// Processes: the workers are processes of their own.
	Processes bool
	// Server says which server it is, and how safely it writes.
	Server string
}

// Snapshot is how far a run is.
type Snapshot struct {
	Phase          Phase
	Sent, ToSend   int
	Handled, Total int // departures and arrivals
	Commits        int
	Takeovers      int
	Workers        []string
	Airports       []Airport // that are watched
	Elapsed        time.Duration
}

// Phase is a part of a run.
type Phase string

// The phases in their order.
const (
	Starting  Phase = "starting"
	Running   Phase = "handling"
	Saving    Phase = "saving"
	Verifying Phase = "verifying"
)

// Airport is a watched airport as the live queries show it.
type Airport struct {
	Code       string
	Rank       int // in the nation's ranking; 0 while it has none
	Known      bool
	Departures int64
	MeanDelay  float64 // minutes
	OnTime     float64 // share
	Revision   uint64  // log sequence
	Owner      string  // worker
}

// Note is something that happened.
type Note struct {
	Kind   NoteKind
	Worker string  // of Killed and Joined
	Text   string  // of Warning
	Share  float64 // of the run that was handled by then
}

// NoteKind says what happened.
type NoteKind int

// What can happen.
const (
	Killed NoteKind = iota + 1
	Joined
	Warning
)
