package space

import (
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Tx is one transaction over the documents of a space. Handlers read, write and send through it; computations
// and effects read, and write where they have declared it. It is valid only during the call that it is passed
// to: any use after that panics.
//
// An impossible write (into a scalar, to an invalid name, to a place that the node may not write) fails the
// whole transaction with an error; later calls then have no effect. Err returns that error.
type Tx struct {
	// of is nil when the call has ended. The record behind it is used again by other calls, this handle is not.
	of *transaction
}

// ended is the text of the panic of a function that uses its transaction after its call.
const ended = "settle: this transaction has ended: a Tx, View or Draft is valid only during the call of the function that it was passed to. " +
	"Do not keep it in a variable, and do not use it in a goroutine or callback that runs after the call. " +
	"Read what is needed later before the function returns; to change the space later, send an event or start an action"

// open returns the transaction, and panics if its call has ended.
func (h *Tx) open() *transaction {
	if h.of == nil {
		panic(ended)
	}
	return h.of
}

// handlesAtOnce is the number of handles that are allocated together, so that a call costs no allocation of its own.
const handlesAtOnce = 64

// hand returns the handle of a transaction for one call of a function. The caller closes it when the call has ended.
func (s *transactions) hand(t *transaction) *Tx {
	if len(s.handles) == 0 {
		s.handles = make([]Tx, handlesAtOnce)
	}
	t.handle, s.handles = &s.handles[0], s.handles[1:]
	t.handle.of = t
	return t.handle
}

// close ends the use of a transaction by the function that it was passed to.
func (h *Tx) close() { h.of.handle, h.of = nil, nil }

// transaction is what a handle stands for. Its records are used again and again.
type transaction struct {
	overlay
	core  *transactions
	graph *graph
	// handle is what the function has that is being called, nil between calls.
	handle *Tx
	node   *node // nil in a handler or Transact
	space  string
	log    readLog
	err    error
	made   []*node  // children that this run has added
	kept   []former // existing children that this run has registered

	// stale is the first computation whose output was read while it was not up to date, missing the first
	// foreign document that was read before it had arrived. A handler's transaction with either is abandoned
	// and tried again later.
	stale   *node
	missing *doc
	probe   dep // of the current read; not kept
	// tooDeep reports that the run is abandoned because bringing its reads up to date would nest runs too deeply.
	tooDeep bool
	// wrote is a fingerprint of the writes of a run that is compared with others; peeked reports that the run has read
	// something that is not among its reads, so that it cannot be.
	wrote  uint64
	peeked bool
	// rehearsal marks a run that is made for comparison only.
	rehearsal bool
	// preview has what follows from the writes of the handler, and is not nil in a call that finds it out.
	preview *preview
	// speculative is a document that a write left unchanged because an undecided transaction had written the
	// same value, nil if there is none.
	speculative *doc
	// lax marks a transaction that reads derived documents as they are.
	lax bool
	// tasking is set while the transaction writes the documents of actions.
	tasking bool
	stack   []byte // of a function that panicked
	notes   []Note

	// attempt has the event, nil if there is none, and the results: writes and sends.
	attempt ledger.Attempt
}

// transactions creates transactions: one at a time, except for those of nested runs. It has the parts of the
// space that they use.
type transactions struct {
	cfg    *Config
	ledger *ledger.Ledger
	graph  *graph
	hooks  *hooks
	jobs   *jobTimers
	tasks  taskLists // of the program
	inv    invariants
	// refresh brings a node up to date during a run that is about to read its output.
	refresh func(*node)

	scratch []*transaction // reusable transactions, see begin
	// abandoning reports that runs are nested too deeply: those on the stack are abandoned, and the sweep ends.
	abandoning bool
	begun      int32 // number of transactions so far, for readLog
	nested     int   // number of those that are active, for readLog
	handles    []Tx  // not used yet, see hand
}

// begin returns the transaction of a handler (n is nil) or of a node's run. Except for nested runs (see
// freshen) only one is active at a time, so its buffers are reused, apart from those that a commit keeps.
func (s *transactions) begin(n *node) *transaction {
	for s.nested >= len(s.scratch) {
		s.scratch = append(s.scratch, &transaction{core: s, graph: s.graph, space: s.cfg.Space})
	}
	t := s.scratch[s.nested]
	s.begun++
	t.log.begin(n, s.begun)
	t.clear()
	t.node = n
	return t
}

// of returns the transaction whose results a draft of the ledger is.
func (s *transactions) of(d *ledger.Draft) *transaction {
	for _, t := range s.scratch { // one, unless runs are nested
		if &t.attempt.Draft == d {
			return t
		}
	}
	panic("space: the ledger returned a draft that is not of this space")
}

// clear resets a transaction record for reuse. It resets only the fields that were used: assigning the whole
// struct costs as much as the rest of a small run.
func (t *transaction) clear() {
	t.after = t.after[:0]
	if t.attempt.Event != nil || t.attempt.Group != "" {
		t.attempt.Event, t.attempt.Group = nil, ""
	}
	if t.places != nil {
		t.places = nil
	}
	t.lax, t.rehearsal, t.tooDeep = false, false, false
	t.wrote, t.peeked = 0, false
	if t.attempt.Writes != nil || t.attempt.Sends != nil || t.attempt.Cancels != nil {
		t.attempt.Writes, t.attempt.Sends, t.attempt.Cancels = nil, nil, nil
	}
	if t.err != nil || t.stack != nil {
		t.err, t.stack = nil, nil
	}
	if t.attempt.Trace != (model.Trace{}) {
		t.attempt.Trace = model.Trace{}
	}
	t.notes = nil
	if t.made != nil {
		t.made = nil
	}
	if t.kept != nil {
		clear(t.kept)
		t.kept = t.kept[:0]
	}
	t.stale, t.missing, t.speculative = nil, nil, nil
	t.preview, t.derived = nil, nil
}

// Space returns the name of the transaction's space.
func (h *Tx) Space() string { return h.open().space }

// Event returns the event that is being handled, nil in a node's run and in a transaction of Transact. It
// must not be changed.
func (h *Tx) Event() *model.Event { return h.open().attempt.Event }

// Local returns the space's variable of type T, for a package that runs programs of another language in it:
// nested runs see what the outer run has stored. Its initial value is the zero value, and the core does not
// use it.
func Local[T any](t *Tx) *T {
	h := t.open().core.hooks
	for _, v := range h.locals {
		if v, ok := v.(*T); ok {
			return v
		}
	}
	v := new(T)
	h.locals = append(h.locals, v)
	return v
}

// Err returns the error that keeps the transaction from committing, or nil.
func (h *Tx) Err() error { return h.open().err }

// Fail makes the transaction fail. It is for layers above that detect errors during a read or write. The
// first error counts.
func (h *Tx) Fail(err error) { h.open().fail(err) }

// Declares reports whether the running node has declared in Writes or Envelope that it writes at a place of
// this space. It is true in a handler, which may write anywhere.
func (h *Tx) Declares(doc string, path ...string) bool { return h.open().declares(doc, path) }

func (t *transaction) declares(doc string, path model.Path) bool {
	if t.node == nil {
		return true
	}
	within := func(a Address) bool { return a.Doc == doc && path.HasPrefix(a.Path) }
	return slices.ContainsFunc(t.node.spec.Writes, within) || slices.ContainsFunc(t.node.spec.Envelope, within)
}

// Group assigns the transaction's changes to a change group: observers of that group are not notified of them
// (see NodeSpec.Group). It is for clients that need no notifications of their own writes.
func (h *Tx) Group(name string) { h.open().attempt.Group = name }

func (t *transaction) fail(err error) {
	if t.err == nil {
		t.err = broken{err}
	}
}

// waits returns the name of what the transaction read that was not up to date or not available, "" if
// nothing.
func (t *transaction) waits() string {
	if t.missing != nil {
		return t.missing.key.String()
	}
	return t.stale.shownAs()
}

// drop discards everything that the transaction would have changed.
func (t *transaction) drop() {
	t.attempt.Writes, t.after, t.attempt.Sends, t.attempt.Cancels = nil, nil, nil, nil
	t.notes = nil
}

// Note reports what a library does in this transaction of a handler, for traces and metrics: see HandleInfo.Notes. It has no effect on the
// space.
func (h *Tx) Note(kind NoteKind, name string) {
	t := h.open()
	if t.core.cfg.Trace.Notes && !t.rehearsal {
		t.notes = append(t.notes, Note{kind, name})
	}
}

// CausedBy records the trace context in which a transaction of Transact is made: what it sends belongs to it.
func (h *Tx) CausedBy(by model.Trace) {
	t := h.open()
	if t.attempt.Event == nil && t.node == nil {
		t.attempt.Trace = by
	}
}

// Log writes a line for the operator: a message and key-value pairs, as with log/slog. It is passed to the
// functions registered with OnConsole, with the name of the node or event. It has no effect on the space.
func (h *Tx) Log(message string, args ...any) { h.open().console(false, message, args) }

// Warn is Log for what an operator should look at.
func (h *Tx) Warn(message string, args ...any) { h.open().console(true, message, args) }

func (t *transaction) console(warning bool, message string, args []any) {
	if len(t.core.hooks.onConsole) == 0 || t.rehearsal {
		return
	}
	info := ConsoleInfo{Space: t.space, Program: t.core.hooks.program, Warning: warning, Message: message, Args: args}
	if t.node != nil {
		info.Node = t.node.id()
	}
	if t.attempt.Event != nil {
		info.Stream, info.Event = t.attempt.Event.Stream, t.attempt.Event.ID
	}
	notifyAll(t.core.hooks.onConsole, info)
}

func (t *transaction) used() {
	if f := t.core.cfg.Guard.Used; f != nil {
		f()
	}
}

// Guard returns the guard of the space's host. It is for layers above the core and must not be changed.
func (h *Tx) Guard() *Guard { return &h.open().core.cfg.Guard }

// former is the state of a child before a run registered it again: its parent, the parent's number of runs,
// and the rest that a failed run restores.
type former struct {
	child, parent    *node
	parentRuns       uint64
	spec             *declaration
	kind             NodeKind
	removedMeanwhile bool
	outdated         bool
}

// nodeCode is the function of a node.
type nodeCode func(tx *Tx) (model.Value, error)

func (nodeCode) isCode() {}
