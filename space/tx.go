package space

import (
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Tx is one transaction over the documents of a space. Handlers read, write and
// send through it; computations and effects read, and write to what they have
// declared. It is good for the call that it was passed to and must not be kept.
//
// An impossible write (into a scalar, to an invalid name, to what is not the node's)
// fails the whole transaction with an error that says why; later calls then do
// nothing. Err tells whether that has happened.
type Tx struct {
	overlay
	core  *transactions
	graph *graph
	node  *node // nil in a handler
	space string
	log   readLog
	err   error
	made  []*node  // children that this run has added
	kept  []former // children that this run has registered and that were there

	// stale is the first computation whose output was read while it was not up to
	// date, missing the first foreign document that was read before it was there.
	// A handler's transaction that has either is given up and tried again later.
	stale   *node
	missing *doc
	probe   dep // of the read that is looked at; not kept
	// rehearsal is set in a run that is made for comparison only.
	rehearsal bool
	// speculative is a document to which a write changed nothing because an undecided
	// transaction had made it so, nil if there is none.
	speculative *doc
	// lax is set in a transaction that takes derived documents as they are.
	lax bool
	// tasking is set while the transaction writes what actions keep.
	tasking bool
	stack   []byte // of a function that panicked

	// attempt is what the transaction comes to: the event that is handled, nil if it answers none, and
	// what is written and sent.
	attempt ledger.Attempt
}

// transactions makes transactions: one at a time, but for the runs that a run pulls, which stand inside it. It
// holds what they need of the space.
type transactions struct {
	cfg    *Config
	ledger *ledger.Ledger
	graph  *graph
	hooks  *hooks
	jobs   *jobTimers
	tasks  taskLists // of the program
	inv    invariants
	// refresh brings a node up to date in the middle of a run that is about to read what it writes.
	refresh func(*node)

	scratch []*Tx // see begin
	begun   int32 // how many, counted for readLog
	nested  int   // runs within runs
}

// begin makes the transaction of a handler (n is nil) or of a node's run. But for
// the runs that a run pulls (see freshen) there is one at a time, so its buffers are
// used again; what a commit keeps is not.
func (s *transactions) begin(n *node) *Tx {
	for s.nested >= len(s.scratch) {
		t := &Tx{core: s, graph: s.graph, space: s.cfg.Space}
		t.attempt.Context = t
		s.scratch = append(s.scratch, t)
	}
	t := s.scratch[s.nested]
	s.begun++
	t.log.begin(n, s.begun)
	t.clear()
	t.node = n
	return t
}

// clear makes the record of an earlier transaction one of a new one. Field by field, and
// only what was used: assigning the whole costs as much as all else that a small run does.
func (t *Tx) clear() {
	t.after = t.after[:0]
	if t.attempt.Event != nil || t.attempt.Group != "" {
		t.attempt.Event, t.attempt.Group = nil, ""
	}
	if t.places != nil {
		t.places = nil
	}
	t.lax, t.rehearsal = false, false
	if t.attempt.Writes != nil || t.attempt.Sends != nil || t.attempt.Cancels != nil {
		t.attempt.Writes, t.attempt.Sends, t.attempt.Cancels = nil, nil, nil
	}
	if t.err != nil || t.stack != nil {
		t.err, t.stack = nil, nil
	}
	if t.made != nil {
		t.made = nil
	}
	if t.kept != nil {
		clear(t.kept)
		t.kept = t.kept[:0]
	}
	t.stale, t.missing, t.speculative = nil, nil, nil
}

// Space returns the name of the space that the transaction is in.
func (t *Tx) Space() string { return t.space }

// Event returns the event that is being handled, nil in a node's run and in a transaction that
// answers none. It must not be changed.
func (t *Tx) Event() *model.Event { return t.attempt.Event }

// Slot belongs to the package that hosts programs of another language in the space: what a run
// keeps there is found by the runs that it pulls. It is nil at first, and nothing else
// looks at it.
func (t *Tx) Slot() *any { return &t.core.hooks.host }

// Err is why the transaction cannot commit, or nil.
func (t *Tx) Err() error { return t.err }

// Fail makes the transaction one that cannot commit: for layers above, which find out in
// the middle of a read or write that it makes no sense. The first error counts.
func (t *Tx) Fail(err error) { t.fail(err) }

// Declares reports whether the node that runs has declared that it writes at a place of this
// space, in Writes or Envelope. A handler may write anywhere, so it is true in one.
func (t *Tx) Declares(doc string, path ...string) bool {
	if t.node == nil {
		return true
	}
	within := func(a Address) bool { return a.Doc == doc && model.Path(path).HasPrefix(a.Path) }
	return slices.ContainsFunc(t.node.spec.Writes, within) || slices.ContainsFunc(t.node.spec.Envelope, within)
}

// Group puts the transaction's changes into a change group: observers of that group
// are not told of them (see NodeSpec.Group). For clients that need no notice of what they
// have written.
func (t *Tx) Group(name string) { t.attempt.Group = name }

func (t *Tx) fail(err error) {
	if t.err == nil {
		t.err = broken{err}
	}
}

// waits names what the transaction met that was not up to date or not there.
func (t *Tx) waits() string {
	if t.missing != nil {
		return t.missing.key.String()
	}
	return t.stale.shownAs()
}

// drop forgets everything the transaction would have changed.
func (t *Tx) drop() {
	t.attempt.Writes, t.after, t.attempt.Sends, t.attempt.Cancels = nil, nil, nil, nil
}

// Log writes a line for the operator: a message and key-value pairs, as with log/slog.
// It goes to the functions registered with OnConsole, with the name of the node or
// event it belongs to. It changes nothing.
func (t *Tx) Log(message string, args ...any) {
	if len(t.core.hooks.onConsole) == 0 || t.rehearsal {
		return
	}
	info := ConsoleInfo{Space: t.space, Program: t.core.hooks.program, Message: message, Args: args}
	if t.node != nil {
		info.Node = t.node.id()
	}
	if t.attempt.Event != nil {
		info.Stream, info.Event = t.attempt.Event.Stream, t.attempt.Event.ID
	}
	tellAll(t.core.hooks.onConsole, info)
}

func (t *Tx) used() {
	if f := t.core.cfg.Guard.Used; f != nil {
		f()
	}
}

// Host returns what the runtime offers around the transaction, for layers above; nil if that is
// nothing.
func (t *Tx) Host() any { return t.core.cfg.Guard.Host }

// former is a child as it was before a run registered it again: whose it was, and how often
// that had run.
type former struct {
	child, parent *node
	parentRuns    uint64
	spec          *declaration
	doomed        bool
	outdated      bool
}

// nodeCode is the function of a node.
type nodeCode func(tx *Tx) (model.Value, error)

func (nodeCode) isCode() {}
