package ordered

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Tx is the transaction in which an event is handled: the documents of its key, and what is
// sent. It is good for the call that it was passed to. A call that cannot be carried out (a
// name that is none, a value that is no JSON) fails the event with an error that says why.
type Tx struct {
	core    *core
	attempt ledger.Attempt
	after   map[string]model.Value
	err     error
}

// Space returns the key that the event belongs to.
func (t *Tx) Space() string { return t.attempt.Event.Space }

// Event is what is being handled. Its ID is the same in every attempt, and unique within the
// key: what to pass on to services that are asked to do something once.
func (t *Tx) Event() *model.Event { return t.attempt.Event }

// Context ends when the handler is to return: its limit is reached (Config.RunLimit), or the key is taken
// away. It ends with the call, too. Pass it on to what may block.
func (t *Tx) Context() context.Context { return t.core.code.Context() }

// Get is a document of the key, absent if there is none.
func (t *Tx) Get(doc string) model.Value {
	t.core.code.Used()
	if v, ok := t.after[doc]; ok {
		return v
	}
	return t.core.ledger.Value(doc)
}

// Read decodes a document of the key into what into points to, and leaves that as it is if
// there is no such document.
func (t *Tx) Read(doc string, into any) error {
	if err := t.Get(doc).Decode(into); err != nil {
		return fmt.Errorf("document %s of %s: %w", doc, t.Space(), err)
	}
	return nil
}

// Set writes a document of the key: anything that encodes to JSON. An absent Value deletes it.
func (t *Tx) Set(doc string, v any) {
	t.core.code.Used()
	val, err := model.Of(v)
	if err == nil {
		err = model.CheckName("document", doc)
	}
	if err != nil {
		t.fail(fmt.Errorf("write %s: %w", doc, err))
		return
	}
	if model.Equal(t.Get(doc), val) {
		return
	}
	if t.after == nil {
		t.after = map[string]model.Value{}
	}
	t.after[doc] = val
	t.attempt.Writes = append(t.attempt.Writes, model.Write{Doc: doc, Value: val, Delete: val.IsAbsent()})
}

// Delete removes a document of the key.
func (t *Tx) Delete(doc string) { t.Set(doc, model.Value{}) }

// Target is the key that an event is for: Here, or what To returns. Package settle has the same.
type Target struct {
	space string
	other bool // not Here
}

// To returns a key as the target of an event. It is checked when the event is sent.
func To(key string) Target { return Target{key, true} }

// Here is the key that the handler runs for, as the target of an event.
var Here Target //nolint:gochecknoglobals // a constant, which a struct cannot be

// Send sends an event to a stream of a key, this one (Here) or another. It leaves if and only if this
// transaction commits, and is handled once. What is sent to this key queues behind what waits
// in its lane now. A stream that the target has no handler for is refused there, and this key
// is sent a notice of that, an event of the stream "undelivered", which needs no handler. Events
// that send each other come to an end: see Config.MaxChain.
func (t *Tx) Send(to Target, stream string, payload any) {
	t.core.code.Used()
	key := to.space
	if !to.other {
		key = t.Space()
	}
	v, err := model.Of(payload)
	if err == nil {
		err = model.CheckName("key", key)
	}
	if err == nil {
		err = model.CheckSendStream(stream)
	}
	s := model.Send{To: key, Stream: stream, Payload: v}
	if err == nil {
		s.Depth, err = lineage.Next(t.attempt.Event, t.core.cfg.MaxChain)
	}
	if err != nil {
		t.fail(fmt.Errorf("send to %s/%s: %w", key, stream, err))
		return
	}
	t.attempt.Sends = append(t.attempt.Sends, s)
}

func (t *Tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// drop forgets everything that the transaction would have changed.
func (t *Tx) drop() { t.attempt.Writes, t.attempt.Sends, t.after = nil, nil, nil }
