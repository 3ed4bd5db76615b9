package space

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
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
	core   *runner
	graph  *graph
	node   *node // nil in a handler
	space  string
	log    readLog
	after  []docValue
	places map[*doc]int // of after, when they are many
	err    error
	made   []*node  // children that this run has added
	kept   []former // children that this run has registered and that were there

	// stale is the first computation whose output was read while it was not up to
	// date, missing the first foreign document that was read before it was there.
	// A handler's transaction that has either is given up and tried again later.
	stale   *node
	missing *doc
	probe   dep // of the read that is looked at; not kept
	// rehearsal is set in a run that is made for comparison only.
	rehearsal bool
	// leans is a document to which a write changed nothing because an undecided
	// transaction had made it so, nil if there is none.
	leans *doc
	// lax is set in a transaction that takes derived documents as they are.
	lax bool
	// tasking is set while the transaction writes what actions keep.
	tasking bool
	stack   []byte // of a function that panicked

	// attempt is what the transaction comes to: the event that is handled, nil if it answers none, and
	// what is written and sent.
	attempt ledger.Attempt
}

// begin makes the transaction of a handler (n is nil) or of a node's run. But for
// the runs that a run pulls (see freshen) there is one at a time, so its buffers are
// used again; what a commit keeps is not.
func (r *runner) begin(n *node) *Tx {
	for r.nested >= len(r.scratch) {
		t := &Tx{core: r, graph: r.graph, space: r.cfg.Space}
		t.attempt.Context = t
		r.scratch = append(r.scratch, t)
	}
	t := r.scratch[r.nested]
	r.txs++
	t.log.begin(n, r.txs)
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
	t.stale, t.missing, t.leans = nil, nil, nil
}

// docValue is a document and the value a transaction leaves it with.
type docValue struct {
	doc   *doc
	value model.Value
	added int // bytes that the writes can have added at most
}

// Space is the name of the space that the transaction is in.
func (t *Tx) Space() string { return t.space }

// Event is the event that is being handled, nil in a node's run and in a transaction that
// answers none. It must not be changed.
func (t *Tx) Event() *model.Event { return t.attempt.Event }

// Slot belongs to whoever hosts programs of another language in the space: what a run
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
// are not told of them (see NodeSpec.Group). For those who need not hear what they
// have said.
func (t *Tx) Group(name string) { t.attempt.Group = name }

// current is the document as the transaction sees it.
func (t *Tx) current(d *doc) model.Value {
	if i := t.place(d); i >= 0 {
		return t.after[i].value
	}
	return d.value
}

// place is where in after a document stands, -1 if the transaction has not written it.
func (t *Tx) place(d *doc) int {
	if len(t.after) > manyReads {
		if i, ok := t.places[d]; ok {
			return i
		}
		return -1
	}
	for i := range t.after {
		if t.after[i].doc == d {
			return i
		}
	}
	return -1
}

// addPlace begins to remember what a document is left with.
func (t *Tx) addPlace(v docValue) {
	t.after = append(t.after, v)
	switch n := len(t.after); {
	case n == manyReads+1:
		t.places = make(map[*doc]int, 2*n)
		for i := range t.after {
			t.places[t.after[i].doc] = i
		}
	case n > manyReads:
		t.places[v.doc] = n - 1
	}
}

// Set writes a value at a path of a document; without a path it replaces the
// document. Objects along the path are created; a link on the way is followed, one at
// the end is replaced. Writing what is there already writes nothing. v may be a
// model.Value or anything that encodes to JSON.
func (t *Tx) Set(doc string, v any, path ...string) {
	val, err := model.Of(v)
	if err != nil {
		t.fail(fmt.Errorf("write %s%s: %w", doc, model.Path(path), err))
		return
	}
	t.write(model.Write{Doc: doc, Path: slices.Clone(path), Value: val, Delete: val.IsAbsent()})
}

// Delete removes the value at a path of a document, or the whole document.
func (t *Tx) Delete(doc string, path ...string) {
	t.write(model.Write{Doc: doc, Path: slices.Clone(path), Delete: true})
}

func (t *Tx) write(w model.Write) {
	t.used()
	if t.err != nil {
		return
	}
	d, err := t.throughLinks(&w)
	if err == nil {
		err = t.notOwn(w.Doc)
	}
	if err == nil {
		err = t.mayWrite(d, w.Path)
	}
	if err != nil {
		t.fail(fmt.Errorf("write %s%s: %w", w.Doc, w.Path, err))
		return
	}
	t.apply(d, w)
}

// mayWrite refuses a write to what belongs to a computation, and those of nodes that
// have not declared that they write at all.
func (t *Tx) mayWrite(d *doc, path model.Path) error {
	switch n := t.node; {
	case n != nil && n == d.owner():
		return fmt.Errorf("this document is the node's output; return its value instead")
	case d.writer != nil:
		return fmt.Errorf("this document is the output of computation %s; change what that reads instead", d.writer.node.id())
	case n == nil || n.mayWriteAt(d, path):
		return nil
	case len(n.spec.Writes)+len(n.spec.Envelope) == 0:
		return fmt.Errorf("%s %s may only read; a computation writes by returning a value, and elsewhere to what it declares in Writes or Envelope", n.kind, n.id())
	}
	// Nothing will be brought up to date on behalf of readers of that place.
	if !t.rehearsal {
		t.graph.stats.OutsideWrites++
	}
	return nil
}

// apply adds a write to the transaction unless it changes nothing.
func (t *Tx) apply(d *doc, w model.Write) {
	before := t.current(d)
	after, err := w.Apply(before)
	if err != nil {
		t.fail(err)
		return
	}
	if model.Equal(before, after) {
		if t.holds(d) {
			t.leans = d
		}
		return
	}
	t.attempt.Writes = append(t.attempt.Writes, w)
	if i := t.place(d); i >= 0 {
		t.after[i].value = after
		return
	}
	t.addPlace(docValue{doc: d, value: after})
}

// holds reports whether an undecided transaction has written to a document.
func (t *Tx) holds(d *doc) bool { return d.key.space == "" && t.core.ledger.Holds(d.key.doc) }

// pathsIn lists where the transaction writes in a document, nil if it is not one of a
// few places.
func (t *Tx) pathsIn(d *doc) []model.Path {
	if d.paths == nil {
		return nil // nobody will ask
	}
	var paths []model.Path
	for i := range t.attempt.Writes {
		if t.attempt.Writes[i].Doc == d.key.doc {
			paths = append(paths, t.attempt.Writes[i].Path)
		}
	}
	return paths
}

// Send emits an event to a stream of a space, this one or another. It takes
// effect if and only if this transaction commits, and exactly once. An event to
// this space queues behind the events that are waiting now; one to another space
// is released when the commit is durable. Events that send each other like that, with no time
// between, come to an end: see Config.MaxChain.
func (t *Tx) Send(space, stream string, payload any, options ...SendOption) {
	if t.err != nil {
		return
	}
	s, err := t.makeSend(space, stream, payload, options)
	if err == nil {
		err = t.chain(&s)
	}
	if err != nil {
		t.fail(fmt.Errorf("send to %s/%s: %w", space, stream, err))
		return
	}
	t.attempt.Sends = append(t.attempt.Sends, s)
}

// SendOption says more about an event that is sent.
type SendOption func(*model.Send)

// ExpiresAt has the event not be handled after a time any more, by the clock of the worker that
// serves its space: it ends with the receipt Expired then. The zero time is none.
func ExpiresAt(at time.Time) SendOption {
	return func(s *model.Send) {
		if !at.IsZero() {
			s.Expires = model.NotBefore(at)
		}
	}
}

func (t *Tx) makeSend(space, stream string, payload any, options []SendOption) (model.Send, error) {
	t.used()
	if t.node != nil {
		return model.Send{}, fmt.Errorf("%s %s cannot send; events are sent by handlers", t.node.kind, t.node.id())
	}
	if err := model.CheckName("space", space); err != nil {
		return model.Send{}, err
	}
	if err := model.CheckSendStream(stream); err != nil {
		return model.Send{}, err
	}
	v, err := model.Of(payload)
	s := model.Send{To: space, Stream: stream, Payload: v}
	for _, set := range options {
		set(&s)
	}
	return s, err
}

// chain makes a send the next in the chain of the event that is being handled.
func (t *Tx) chain(s *model.Send) (err error) {
	if t.attempt.Event != nil {
		s.Depth, err = lineage.Next(t.attempt.Event, t.core.cfg.MaxChain)
	}
	return err
}

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
	info := ConsoleInfo{Space: t.space, Program: t.core.program.Name, Message: message, Args: args}
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

// Host is what the runtime offers around the transaction, for layers above; nil if that is
// nothing.
func (t *Tx) Host() any { return t.core.cfg.Guard.Host }

// former is a child as it was before a run registered it again: whose it was, and how often
// that had run.
type former struct {
	child, parent *node
	parentRuns    uint64
	spec          *NodeSpec
	doomed        bool
	outdated      bool
}

// notOwn refuses writes into the documents of actions.
func (t *Tx) notOwn(doc string) error {
	owner := t.core.program.taskDocs[doc]
	if owner == "" || t.tasking {
		return nil
	}
	return fmt.Errorf("this document holds the tasks of %s; start, cancel or forget those", owner)
}
