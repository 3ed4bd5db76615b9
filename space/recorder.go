package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// TraceKind is one of the histories that a space keeps when it is asked to.
type TraceKind uint8

const (
	// TraceRuns is what ran: nodes, attempts at events, transactions of the application.
	TraceRuns TraceKind = iota
	// TraceTriggers is what made nodes invalid.
	TraceTriggers
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
	// who it was, as in the log.
	Node          string
	Kind          NodeKind
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

// Cut says that the entry does not name all that was written.
func (e *RunEntry) Cut() bool { return e.Wrote > len(e.Writes) }

// TriggerEntry is one reason to run that a node got.
type TriggerEntry struct {
	N    uint64 // see RunEntry
	Pass uint64
	Node string
	// Cause is the address that changed, as in NodeState.Causes.
	Cause string
	// Live says whether anybody needed the node then, NeverRan that it was to run anyway.
	Live, NeverRan bool
	// Writer is the node whose run made the change, "" if it was none, and Tx the
	// transaction, 0 if it was none of this runtime's. Seq is the place in the log of a
	// change that another runtime made. With neither, it was undone by a refusal, or
	// comes from another space.
	Writer string
	Tx     uint64
	Seq    uint64
	// By is who made the transaction, as in RunEntry. Only Explain fills it in.
	By string
}

// ring keeps the latest entries.
type ring[T any] struct {
	entries []T
	oldest  int
}

func (r *ring[T]) add(e T) {
	if len(r.entries) < historyLimit {
		r.entries = append(r.entries, e)
		return
	}
	r.entries[r.oldest] = e
	r.oldest = (r.oldest + 1) % historyLimit
}

// list returns the entries, oldest first.
func (r *ring[T]) list() []T {
	if r == nil {
		return nil
	}
	return slices.Concat(r.entries[r.oldest:], r.entries[:r.oldest])
}

// recorder keeps what Explain, the histories and the diagnosis are made of. A graph has
// one only as long as somebody asked for any of that, so it costs a branch otherwise.
// Nothing asks it for a decision (P10, behaviour U06).
type recorder struct {
	diagnosis *diagnosis
	graph     *graph
	passes    *uint64
	runs      *ring[RunEntry]
	triggers  *ring[TriggerEntry]
	n         uint64
	// from is where the change comes from that is being told, and doc the document.
	from origin
	doc  string
}

// SetTrace begins to keep a history, from nothing, or stops and forgets it. It keeps the
// latest thousand entries. One that is on already goes on.
func (s *Space) SetTrace(kind TraceKind, on bool) {
	w := &s.recorder
	switch {
	case kind == TraceRuns && !on:
		w.runs = nil
	case kind == TraceRuns && w.runs == nil:
		w.runs = &ring[RunEntry]{}
	case kind == TraceTriggers && !on:
		w.triggers = nil
	case kind == TraceTriggers && w.triggers == nil:
		w.triggers = &ring[TriggerEntry]{}
	}
	s.attach()
}

// attach shows the recorder to the graph if there is anything to record.
func (s *Space) attach() {
	w := &s.recorder
	w.diagnosis, w.graph, w.passes = s.diagnosis, s.graph, &s.runner.budgets.passes
	s.graph.watch = nil
	if w.runs != nil || w.triggers != nil || s.diagnosis.causes != nil {
		s.graph.watch = w
	}
}

// RunTrace is the history of runs, oldest first; nil if none is kept.
func (s *Space) RunTrace() []RunEntry { return s.recorder.runs.list() }

// TriggerTrace is the history of triggers, oldest first; nil if none is kept.
func (s *Space) TriggerTrace() []TriggerEntry { return s.recorder.triggers.list() }

// because takes in which change a reader is about to be told of.
func (w *recorder) because(r *dep, from *origin) {
	w.from, w.doc = *from, r.doc.key.String()
	w.from.paths = nil
}

// triggered takes in that a node has one more reason to run.
func (w *recorder) triggered(n *node, cause string) {
	from, doc := w.from, w.doc
	w.from, w.doc = origin{}, ""
	writer := ""
	if from.node != nil {
		writer = from.node.id()
		w.diagnosis.caused(writer, doc, n.id())
	}
	if w.triggers == nil {
		return
	}
	e := TriggerEntry{
		N: w.next(), Pass: *w.passes + 1, Node: n.id(), Cause: cause, Writer: writer,
		Live: n.live, NeverRan: n.status == NeverRan,
	}
	if from.remote {
		e.Seq = from.at
	} else {
		e.Tx = from.at
	}
	w.triggers.add(e)
}

func (w *recorder) next() uint64 {
	w.n++
	return w.n
}

// ran takes in a run that has ended.
func (w *recorder) ran(n *node, info *RunInfo) {
	if w.runs == nil {
		return
	}
	e := RunEntry{
		Node: n.id(), Kind: n.kind, By: n.kind.String() + " " + n.id(), Causes: slices.Clone(info.Causes),
		Tx: info.Tx, Waits: info.Waits, Err: info.Err,
	}
	if p := n.parent(); p != nil {
		e.Parent = p.id()
	}
	n.eachSurface(true, func(s *surface) { e.Declared = append(e.Declared, s.doc.key.String()+s.path.String()) })
	w.enter(&e, *w.passes+1, info.Writes)
}

// handled takes in an attempt at an event that has ended.
func (w *recorder) handled(info *HandleInfo) {
	if w.runs == nil {
		return
	}
	e := RunEntry{
		Stream: info.Event.Stream, Event: info.Event.ID, By: "handler of " + info.Event.Stream + ", event " + info.Event.ID,
		Tx: info.Tx, Waits: info.Waits, Err: info.Err,
	}
	if info.Receipt != nil {
		e.Outcome = info.Receipt.Outcome
	}
	w.enter(&e, *w.passes+1, info.Writes)
}

// wrote takes in a transaction of the application.
func (w *recorder) wrote(by string, tx uint64, writes []model.Write) {
	if w.runs != nil {
		w.enter(&RunEntry{By: by, Tx: tx}, 0, writes)
	}
}

func (w *recorder) enter(e *RunEntry, pass uint64, writes []model.Write) {
	e.N, e.Pass, e.At, e.Wrote = w.next(), pass, w.graph.now, len(writes)
	for i := range writes[:min(len(writes), maxTold)] {
		e.Writes = append(e.Writes, writes[i].Doc+writes[i].Path.String())
	}
	w.runs.add(*e)
}
