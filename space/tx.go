package space

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// Tx is one transaction over the documents of a space. Handlers read, write and
// send through it; computations and effects only read. It is good for the call
// that it was passed to and must not be kept.
//
// An impossible write (into a scalar, to an invalid name, from a computation)
// fails the whole transaction with an error that says why; later calls then do
// nothing. Err tells whether that has happened.
type Tx struct {
	core  *Space
	graph *graph
	node  *node // nil in a handler
	space string

	reads  []read
	writes []model.Write
	after  []docValue
	sends  []model.Send
	err    error

	// stale is the first computation whose output was read while it was not up to
	// date, missing the first foreign document that was read before it was there.
	// A handler's transaction that has either is given up and tried again later.
	stale   *node
	missing *doc
	stack   []byte // of a handler that panicked
}

// begin makes the transaction of a handler (n is nil) or of a node's run. But for
// the runs that a run pulls (see pull) there is one at a time, so its buffers are
// used again; what a commit keeps is not.
func (s *Space) begin(n *node) *Tx {
	t := &s.scratch
	if s.pulling > 0 {
		t = &Tx{}
	}
	*t = Tx{core: s, graph: s.graph, node: n, space: s.cfg.Space, reads: t.reads[:0], after: t.after[:0]}
	return t
}

// read is one address that a transaction has read, deeply.
type read struct {
	doc  *doc
	path model.Path
}

// docValue is a document and the value a transaction leaves it with.
type docValue struct {
	doc   *doc
	value model.Value
}

// Space is the name of the space that the transaction is in.
func (t *Tx) Space() string { return t.space }

// Err is why the transaction cannot commit, or nil.
func (t *Tx) Err() error { return t.err }

// Get reads the value at a path of a document of this space, absent if there is
// none. The transaction sees its own writes. In a computation or effect the
// address becomes part of the read set: the node runs again when the value there
// changes.
func (t *Tx) Get(doc string, path ...string) model.Value {
	d := t.graph.local(doc)
	if d == nil {
		d = t.remember(docKey{doc: doc})
	}
	return t.read(d, path)
}

// GetFrom reads a document of another space. The space it lives in is not
// involved in the transaction: what is read is a confirmed value that this runtime
// mirrors, of some moment ago. A derived document that nobody observed over there
// may be as old as its last observation; reading it makes it current, but not
// before this read has seen the old value.
func (t *Tx) GetFrom(space, doc string, path ...string) model.Value {
	if space == t.space {
		return t.Get(doc, path...)
	}
	key := docKey{space: space, doc: doc}
	d := t.graph.docs[key]
	if d == nil {
		d = t.remember(key)
	}
	if d != nil && !d.loaded && t.missing == nil {
		t.missing = d
	}
	return t.read(d, path)
}

// remember makes the record of a document that nothing has mentioned yet.
// Handlers leave no trace of what they only read of their own space.
func (t *Tx) remember(key docKey) *doc {
	if t.node == nil && key.space == "" {
		return nil
	}
	d, err := t.graph.ensureDoc(key)
	if err != nil {
		t.fail(err)
	}
	return d
}

func (t *Tx) read(d *doc, path []string) model.Value {
	if d == nil {
		return model.Value{}
	}
	switch {
	case t.node != nil:
		t.reads = append(t.reads, read{d, slices.Clone(path)})
		if d.writer != nil && !d.writer.live {
			t.core.pull(d.writer)
		}
	case t.stale == nil && d.writer != nil:
		t.stale = t.graph.staleUpstream(d)
	}
	return t.current(d).At(path)
}

// current is the document as the transaction sees it.
func (t *Tx) current(d *doc) model.Value {
	for i := range t.after {
		if t.after[i].doc == d {
			return t.after[i].value
		}
	}
	return d.value
}

// Set writes a value at a path of a document; without a path it replaces the
// document. Objects along the path are created. Writing what is there already
// writes nothing. v may be a model.Value or anything that encodes to JSON.
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
	if t.err != nil {
		return
	}
	d, err := t.writable(w.Doc)
	if err != nil {
		t.fail(err)
		return
	}
	t.apply(d, w)
}

func (t *Tx) writable(id string) (*doc, error) {
	if t.node != nil {
		return nil, fmt.Errorf("write %s: %s %s may only read; a computation writes by returning a value", id, t.node.kind, t.node.id)
	}
	d, err := t.graph.ensureDoc(docKey{doc: id})
	if err != nil {
		return nil, err
	}
	if d.writer != nil {
		return nil, fmt.Errorf("write %s: this document is the output of computation %s; change what that reads instead", id, d.writer.id)
	}
	return d, nil
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
		return
	}
	t.writes = append(t.writes, w)
	i := slices.IndexFunc(t.after, func(v docValue) bool { return v.doc == d })
	if i < 0 {
		t.after = append(t.after, docValue{d, after})
		return
	}
	t.after[i].value = after
}

// Send emits an event to a stream of a space, this one or another. It takes
// effect if and only if this transaction commits, and exactly once. An event to
// this space queues behind the events that are waiting now; one to another space
// is released when the commit is durable.
func (t *Tx) Send(space, stream string, payload any) {
	if t.err != nil {
		return
	}
	s, err := t.makeSend(space, stream, payload)
	if err != nil {
		t.fail(fmt.Errorf("send to %s/%s: %w", space, stream, err))
		return
	}
	t.sends = append(t.sends, s)
}

func (t *Tx) makeSend(space, stream string, payload any) (model.Send, error) {
	if t.node != nil {
		return model.Send{}, fmt.Errorf("%s %s may only read; events are sent by handlers", t.node.kind, t.node.id)
	}
	if err := model.CheckName("space", space); err != nil {
		return model.Send{}, err
	}
	if err := model.CheckName("stream", stream); err != nil {
		return model.Send{}, err
	}
	v, err := model.Of(payload)
	return model.Send{To: space, Stream: stream, Payload: v}, err
}

func (t *Tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// waits names what the transaction met that was not up to date or not there.
func (t *Tx) waits() string {
	if t.missing != nil {
		return t.missing.key.String()
	}
	return t.stale.output.key.String()
}

// drop forgets everything the transaction would have changed.
func (t *Tx) drop() {
	t.writes, t.after, t.sends = nil, nil, nil
}
