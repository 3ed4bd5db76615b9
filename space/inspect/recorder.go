package inspect

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// historyLimit is the number of entries that a history keeps, the latest ones; maxNamed is the number of
// written places that an entry lists.
const (
	historyLimit = 1000
	maxNamed     = 25
)

// RunEntry is one run of a node, one attempt at an event, or one transaction of the application.
type RunEntry struct {
	// N numbers the entries of both histories together, in order of time. A run that pulled another comes
	// after it, because runs are entered when they end.
	N    uint64
	Pass uint64 // 0 for a transaction of the application
	At   time.Duration
	// Node and Kind are set for a run, Stream and Event for an attempt at an event. By is the writer, as
	// named in the log.
	Node          string
	Kind          string
	Stream, Event string
	By            string
	// Parent is the node that made this one, "" if no node did.
	Parent string
	Causes []string
	// Declared are the places that a node may write. Writes are the first 25 places that it wrote, and Wrote
	// is the number of all of them.
	Declared []string
	Writes   []string
	Wrote    int
	Tx       uint64 // the transaction, 0 if there is none
	// Waits is what was not up to date or had not arrived, Outcome how the event ended.
	Waits   string
	Outcome model.Outcome
	Err     error
}

// Cut reports whether Writes is incomplete.
func (e *RunEntry) Cut() bool { return e.Wrote > len(e.Writes) }

// TriggerEntry is one cause that made a node due.
type TriggerEntry struct {
	N    uint64 // see RunEntry
	Pass uint64
	Node string
	// Cause is the address that changed, as in Node.Causes.
	Cause string
	// Live reports whether the node was needed then, NeverRan that it was to run anyway.
	Live, NeverRan bool
	// Writer is the node whose run made the change, "" if no node did, and Tx the transaction, 0 if it was
	// not one of this runtime. Seq is the log sequence of a change by another runtime. If Tx and Seq are both
	// 0, a refusal undid the change, or it comes from another space.
	Writer string
	Tx     uint64
	Seq    uint64
	// By is the writer of the transaction, as in RunEntry. Only Explain fills it in.
	By string
}

// ring keeps the latest entries. It only appends to its memory, and starts a new block when that is full, so
// that snapshots can share it.
type ring[T any] struct{ entries []T }

func (r *ring[T]) add(e T) {
	if len(r.entries) == cap(r.entries) {
		r.entries = append(make([]T, 0, 2*max(len(r.list()), ringStart)), r.list()...)
	}
	r.entries = append(r.entries, e)
}

// ringStart is half the initial capacity of a ring.
const ringStart = 16

// list returns the entries, oldest first. They must not be changed.
func (r *ring[T]) list() []T {
	if r == nil {
		return nil
	}
	n := len(r.entries)
	return r.entries[max(0, n-historyLimit):n:n]
}

// History is what a space has recorded, as far as recording was on (see Recorder), and the signs that it does
// not converge. It must not be changed.
type History struct {
	// Runs are the runs and Triggers the causes, the latest thousand of each, oldest first; nil if none are
	// kept.
	Runs     []RunEntry
	Triggers []TriggerEntry
	// Markers are the latest signs that the space does not converge, oldest first, and NonSettling reports
	// that its last pass had to defer something.
	Markers     []Marker
	NonSettling bool

	// edges are the causal edges of the current recording, found the circles of the last one.
	recording bool
	edges     []causalEdge
	found     [][]string

	contradictions []Contradiction
}

// Circles returns the causal circles of the current recording or, if there is none, of the last one. There
// can be more circles than nodes, so not all of them are listed, but each node on a circle is on a listed
// one.
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

// Recorder keeps the data behind explanations, histories and diagnosis, as far as they are enabled. A space
// enters what happens, and no decision of it depends on the recorder (P10, behaviour U06).
type Recorder struct {
	diagnosis
	// passes counts the passes, and now is the time of the last one.
	passes   *uint64
	now      *time.Duration
	runs     *ring[RunEntry]
	triggers *ring[TriggerEntry]
	outcomes outcomes
	n        uint64
}

// NewRecorder returns a recorder for a space: passes counts the passes that did any work, and now is the time
// of the last one.
func NewRecorder(passes *uint64, now *time.Duration) *Recorder {
	return &Recorder{diagnosis: *newDiagnosis(diagnosisSettings{}), passes: passes, now: now}
}

// On reports whether anything is recorded; otherwise a space need not describe what happens. A nil recorder
// records nothing.
func (r *Recorder) On() bool {
	return r != nil && (r.runs != nil || r.triggers != nil || r.causes != nil)
}

// RecordRuns starts an empty history of what ran (nodes, attempts at events, transactions of the
// application), or stops and discards it. It keeps the latest thousand entries. Starting a history that is on
// has no effect.
//
// While it is on, runs of a computation that have read the same are compared, see Contradictions.
func (r *Recorder) RecordRuns(on bool) {
	if !on {
		r.outcomes = outcomes{}
	}
	r.runs = switched(r.runs, on)
}

// RecordTriggers starts or stops a history of what made nodes invalid, in the same way.
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

// History returns what is recorded now. The result does not change, and any goroutine may read it.
func (r *Recorder) History() *History {
	h := &History{Runs: r.runs.list(), Triggers: r.triggers.list(), Markers: r.Markers(), NonSettling: r.deferring, found: r.found}
	h.contradictions = r.outcomes.found[:len(r.outcomes.found):len(r.outcomes.found)]
	if r.causes != nil {
		h.recording, h.edges = true, r.causes.list()
	}
	return h
}

// Triggered records that a node has another cause to run: t without N and Pass. doc is the document that
// t.Writer has written, if there is such a node.
func (r *Recorder) Triggered(t TriggerEntry, doc string) {
	r.caused(t.Writer, doc, t.Node)
	if r.triggers != nil {
		t.N, t.Pass = r.next(), *r.passes+1
		r.triggers.add(t)
	}
}

// Ran records a run, or an attempt at an event, that has ended: e without its number, pass and time, and
// without what was written.
func (r *Recorder) Ran(e RunEntry, writes []model.Write) { r.enter(&e, *r.passes+1, writes) }

// Wrote records a transaction of the application.
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
	for i := range writes[:min(len(writes), maxNamed)] {
		e.Writes = append(e.Writes, writes[i].Doc+writes[i].Path.String())
	}
	r.runs.add(*e)
}
