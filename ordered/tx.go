package ordered

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Tx is the transaction in which an event is handled: the documents of its key, and the events that it sends.
// It is valid during the call that it was passed to: any use after that panics. An invalid operation (an invalid name, a value that does
// not encode to JSON) fails the event with an error that explains why.
type Tx struct {
	core    *core
	attempt ledger.Attempt
	after   map[string]model.Value
	err     error
	// ended reports that the call has returned.
	ended bool
}

// open returns the core, and panics if the call has ended.
func (t *Tx) open() *core {
	if t.ended {
		panic("ordered: this transaction has ended: a Tx is valid only during the call of the handler that it was passed to. " +
			"Do not keep it in a variable, and do not use it in a goroutine or callback that runs after the call. " +
			"Read what is needed later before the handler returns; to change documents later, send an event")
	}
	return t.core
}

// Space returns the key that the event belongs to.
func (t *Tx) Space() string { t.open(); return t.attempt.Event.Space }

// Event returns the event. Its ID is the same in every attempt, and unique within the key: pass it on as the
// idempotency key of calls to other services.
func (t *Tx) Event() *model.Event { t.open(); return t.attempt.Event }

// Context returns a context that ends when the handler must return: its limit is reached (Config.RunLimit),
// or the key is handed over. It also ends with the call. Pass it on to whatever may block.
func (t *Tx) Context() context.Context { return t.open().code.Context() }

// Get returns a document of the key, absent if there is none.
func (t *Tx) Get(doc string) model.Value {
	t.open().code.Used()
	if v, ok := t.after[doc]; ok {
		return v
	}
	return t.core.ledger.Value(doc)
}

// Read decodes a document of the key into the value that into points to, and leaves that unchanged if there
// is no such document.
func (t *Tx) Read(doc string, into any) error {
	if err := t.Get(doc).Decode(into); err != nil {
		return fmt.Errorf("document %s of %s: %w", doc, t.Space(), err)
	}
	return nil
}

// Set writes a document of the key: anything that encodes to JSON. An absent Value deletes it.
func (t *Tx) Set(doc string, v any) {
	t.open().code.Used()
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

// Send sends an event to a stream of a key, this one (Here) or another. The event is sent if and only if this
// transaction commits, and is handled once. An event to this key queues after those that wait in its lane
// now. If the target has no handler for the stream, it refuses the event, and this key is sent a notice, an
// event of the stream "undelivered", which needs no handler. Chains of events that send each other are
// bounded: see Config.MaxChain.
func (t *Tx) Send(to Target, stream string, payload any) {
	t.open().code.Used()
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

// drop discards everything that the transaction would change.
func (t *Tx) drop() { t.attempt.Writes, t.attempt.Sends, t.after = nil, nil, nil }
