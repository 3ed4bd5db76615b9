package inspect

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// historyLimit is how many entries a history keeps, the latest ones; maxTold how many
// places an entry names of those that were written.
const (
	historyLimit = 1000
	maxTold      = 25
)

// RunEntry is one run of a node, one attempt at an event, or one transaction of the
// application.
type RunEntry struct {
	// N numbers the entries of both histories together, in the order in which things
	// happened. A run that pulled another comes behind it: runs are entered at their end.
	N    uint64
	Pass uint64 // 0 for a transaction of the application
	At   time.Duration
	// Node and Kind are set for a run, Stream and Event for an attempt at an event. By is
	// the writer, as in the log.
	Node          string
	Kind          string
	Stream, Event string
	By            string
	// Parent is the node that made this one, "" if it is none's.
	Parent string
	Causes []string
	// Declared are the places that a node may write, Writes those that it wrote, of which
	// no more than 25 are named. Wrote is how many they were.
	Declared []string
	Writes   []string
	Wrote    int
	Tx       uint64 // the transaction, 0 if there is none
	// Waits is what was not up to date or not here, Outcome how the event ended.
	Waits   string
	Outcome model.Outcome
	Err     error
}

// Cut reports that the entry does not name all that was written.
func (e *RunEntry) Cut() bool { return e.Wrote > len(e.Writes) }

// TriggerEntry is one reason to run that a node got.
type TriggerEntry struct {
	N    uint64 // see RunEntry
	Pass uint64
	Node string
	// Cause is the address that changed, as in Node.Causes.
	Cause string
	// Live says whether the node was needed then, NeverRan that it was to run anyway.
	Live, NeverRan bool
	// Writer is the node whose run made the change, "" if it was none, and Tx the
	// transaction, 0 if it was none of this runtime's. Seq is the place in the log of a
	// change that another runtime made. With neither, it was undone by a refusal, or
	// comes from another space.
	Writer string
	Tx     uint64
	Seq    uint64
	// By names the writer of the transaction, as in RunEntry. Only Explain fills it in.
	By string
}

// ring keeps the latest entries. It only ever appends to its memory, and begins another when that is full, so that a
// snapshot can share it.
type ring[T any] struct{ entries []T }

func (r *ring[T]) add(e T) {
	if len(r.entries) == cap(r.entries) {
		r.entries = append(make([]T, 0, 2*max(len(r.list()), ringStart)), r.list()...)
	}
	r.entries = append(r.entries, e)
}

// ringStart is half of how many entries a ring has room for at first.
const ringStart = 16

// list returns the entries, oldest first. They are not to be changed.
func (r *ring[T]) list() []T {
	if r == nil {
		return nil
	}
	n := len(r.entries)
	return r.entries[max(0, n-historyLimit):n:n]
}

// History is what a space has recorded, as far as that was switched on (see Recorder), and the signs that it does not come
// to rest. It is not to be changed.
type History struct {
	// Runs are the runs and Triggers the reasons to run, the latest thousand of each, oldest first; nil if none are kept.
	Runs     []RunEntry
	Triggers []TriggerEntry
	// Markers are the latest signs that the space does not come to rest, oldest first, and NonSettling reports
	// that its last pass had to defer something.
	Markers     []Marker
	NonSettling bool

	// edges are the causal edges of a recording that is under way, found the circles of the last one.
	recording bool
	edges     []causalEdge
	found     [][]string
}

// Circles lists the causal circles of the recording under way or, if there is none, of the
// last one. There can be more circles than nodes, so not all of them are listed, but each
// node that lies on one lies on one that is.
func (h *History) Circles() []Circle {
	found := h.found
	if h.recording {
		found = newCausalGraph(slices.Clone(h.edges)).circles()
	}
	var out []Circle
	for _, spelled := range found {
		var c Circle
		for step := range slices.Chunk(spelled, 2) {
			c = append(c, CausalStep{step[0], step[1]})
		}
		out = append(out, c)
	}
	return out
}

// Recorder keeps what explanations, the histories and the diagnosis are made of: as much as was switched on.
// A space enters what happens, and asks it for no decision (P10, behaviour U06).
type Recorder struct {
	diagnosis
	// passes counts the passes, and now is the time of the last.
	passes   *uint64
	now      *time.Duration
	runs     *ring[RunEntry]
	triggers *ring[TriggerEntry]
	n        uint64
}

// NewRecorder makes a recorder of a space: passes counts those that have done anything, and now is the time
// of the last.
func NewRecorder(passes *uint64, now *time.Duration) *Recorder {
	return &Recorder{diagnosis: *newDiagnosis(diagnosisSettings{}), passes: passes, now: now}
}

// On reports whether anything is recorded: a space need not describe what happens otherwise. Without a recorder
// nothing is.
func (r *Recorder) On() bool {
	return r != nil && (r.runs != nil || r.triggers != nil || r.causes != nil)
}

// RecordRuns begins to keep a history of what ran (nodes, attempts at events, transactions of the application),
// from nothing, or stops and forgets it. It keeps the latest thousand entries. One that is on already goes on.
func (r *Recorder) RecordRuns(on bool) { r.runs = switched(r.runs, on) }

// RecordTriggers begins to keep a history of what made nodes invalid, likewise.
func (r *Recorder) RecordTriggers(on bool) { r.triggers = switched(r.triggers, on) }

func switched[T any](r *ring[T], on bool) *ring[T] {
	switch {
	case !on:
		return nil
	case r == nil:
		return &ring[T]{}
	}
	return r
}

// History returns what is recorded now. It stays as it is, and any goroutine may read it.
func (r *Recorder) History() *History {
	h := &History{Runs: r.runs.list(), Triggers: r.triggers.list(), Markers: r.Markers(), NonSettling: r.unrest, found: r.found}
	if r.causes != nil {
		h.recording, h.edges = true, r.causes.list()
	}
	return h
}

// Triggered takes in that a node has one more reason to run: t without N and Pass. doc is the document that
// t.Writer has written, if there is such a node.
func (r *Recorder) Triggered(t TriggerEntry, doc string) {
	r.caused(t.Writer, doc, t.Node)
	if r.triggers != nil {
		t.N, t.Pass = r.next(), *r.passes+1
		r.triggers.add(t)
	}
}

// Ran takes in a run, or an attempt at an event, that has ended: e without its number, pass and time, and
// without what was written.
func (r *Recorder) Ran(e RunEntry, writes []model.Write) { r.enter(&e, *r.passes+1, writes) }

// Wrote takes in a transaction of the application.
func (r *Recorder) Wrote(by string, tx uint64, writes []model.Write) {
	r.enter(&RunEntry{By: by, Tx: tx}, 0, writes)
}

func (r *Recorder) next() uint64 {
	r.n++
	return r.n
}

func (r *Recorder) enter(e *RunEntry, pass uint64, writes []model.Write) {
	if r.runs == nil {
		return
	}
	e.N, e.Pass, e.At, e.Wrote = r.next(), pass, *r.now, len(writes)
	for i := range writes[:min(len(writes), maxTold)] {
		e.Writes = append(e.Writes, writes[i].Doc+writes[i].Path.String())
	}
	r.runs.add(*e)
}
