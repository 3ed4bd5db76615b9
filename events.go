package settle

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// events is what the kinds of events have in common. In or Out is struct{} where there is none: nothing
// is stored for it.
type events[In, Out any] struct {
	name string
	in   *codec.Codec[In]
	out  *codec.Codec[Out]
	// strict refuses payloads of which a part would be lost, nil if the kind of event is lenient.
	strict func(Value) error
	// internal reports that clients may not send.
	internal bool
}

func newEvents[In, Out any](what, name string) events[In, Out] {
	must(model.CheckName("stream", name))
	e := events[In, Out]{
		name: name, in: codecOf[In]("the payload of " + what + " " + name), out: codecOf[Out]("the result of " + what + " " + name),
	}
	// Settle makes the payloads of jobs and of notices itself, and adds to them.
	if name != model.Undelivered && reflect.TypeFor[In]() != reflect.TypeFor[cron.Tick]() {
		e.strict = codec.Strict[In]()
	}
	return e
}

// Name returns the name of the kind of event.
func (e events[In, Out]) Name() string { return e.name }

// Core returns the form of the kind of event that package settletest uses. Applications do not need it.
func (e events[In, Out]) Core() codec.Kind[In, Out] {
	return codec.Kind[In, Out]{Payload: e.value, Result: func(r *model.Receipt) (Out, error) { return e.result("", r) }}
}

func (e events[In, Out]) handle(p *Program, handle func(tx *Tx, in In) (Out, error), options []HandlerOption) {
	if handle == nil {
		p.Handle(e.name, nil)
		return
	}
	p.hasStream(described{name: e.name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), internal: e.internal})
	p.p.Payload(e.name, func(v Value) error {
		_, err := e.payload(&Event{Payload: v})
		return err
	})
	p.Handle(e.name, func(tx *Tx, ev *Event) (Value, error) {
		in, err := e.payload(ev)
		if err != nil {
			return Value{}, err
		}
		out, err := handle(tx, in)
		if err != nil {
			return Value{}, err
		}
		return encode(e.out, out)
	}, options...)
	if e.internal {
		p.note(p.p.Internal(e.name))
	}
}

// checker is implemented by payloads that validate themselves.
type checker interface{ Check() error }

func (e events[In, Out]) payload(ev *Event) (in In, err error) {
	in, err = e.in.Decode(ev.Payload)
	if err == nil && e.strict != nil {
		err = e.strict(ev.Payload)
	}
	if err != nil {
		return in, fmt.Errorf("payload of %s: %w", e.name, err)
	}
	c, ok := any(in).(checker)
	if !ok {
		c, ok = any(&in).(checker)
	}
	if v := reflect.ValueOf(in); ok && v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Implements(reflect.TypeFor[checker]()) {
		return in, fmt.Errorf("payload of %s: there is none to check; a %s is wanted", e.name, v.Type().Elem())
	}
	if ok {
		if err := c.Check(); err != nil {
			return in, fmt.Errorf("payload of %s: %w", e.name, err)
		}
	}
	return in, nil
}

// Send sends an event to a space, this one (Here) or another. It takes effect if and only if the
// transaction commits, and exactly once; an event for another space leaves when the transaction is
// durable.
func (e events[In, Out]) Send(tx *Tx, to Target, in In, options ...space.SendOption) {
	if v, ok := e.encode(tx, in); ok {
		tx.Send(to.in(tx), e.name, v, options...)
	}
}

// SendAfter sends an event that waits for a duration, counted from tx.Now.
func (e events[In, Out]) SendAfter(tx *Tx, to Target, d time.Duration, in In, options ...space.SendOption) {
	if v, ok := e.encode(tx, in); ok {
		tx.SendAfter(to.in(tx), e.name, d, v, options...)
	}
}

// SendAt sends an event that waits for a time, by the clock of the worker that serves its space. A
// time in the past means now.
func (e events[In, Out]) SendAt(tx *Tx, to Target, at time.Time, in In, options ...space.SendOption) {
	if v, ok := e.encode(tx, in); ok {
		tx.SendAt(to.in(tx), e.name, at, v, options...)
	}
}

// SetTimer schedules an event of the stream in this space for a time, at once if that has passed.
// timer is a name; see NameOf for other keys. Setting the same timer again replaces it;
// tx.CancelTimer cancels it.
func (e events[In, Out]) SetTimer(tx *Tx, timer string, at time.Time, in In, options ...space.SendOption) {
	if v, ok := e.encode(tx, in); ok {
		tx.SetTimer(timer, e.name, at, v, options...)
	}
}

func (e events[In, Out]) encode(tx *Tx, in In) (Value, bool) {
	v, err := e.value(in)
	if err != nil {
		tx.Fail(fmt.Errorf("send to %s: %w", e.name, err))
	}
	return v, err == nil
}

func (e events[In, Out]) value(in In) (Value, error) { return encode(e.in, in) }

// Outgoing returns an event of the stream for Client.Send, Client.Call or Sender.Send.
func (e events[In, Out]) Outgoing(to Target, id EventID, in In) (Outgoing, error) {
	v, err := e.value(in)
	if err != nil {
		return Outgoing{}, fmt.Errorf("send to %s/%s: %w", to.space, e.name, err)
	}
	return Outgoing{Space: to.space, Stream: e.name, ID: id, Payload: v, internal: e.internal}, nil
}

// Post sends an event from outside and returns when it is durable: it will be handled exactly once,
// however often it is posted under its id. After an error it may or may not be stored; post it
// again under the same id. The errors are those of Client.Send.
func (e events[In, Out]) Post(ctx context.Context, to Space, id EventID, in In) (model.SendResult, error) {
	o, err := e.Outgoing(To(to.name), id, in)
	if err != nil {
		return model.SendResult{}, err
	}
	return to.client.Send(ctx, o)
}

func (e events[In, Out]) call(ctx context.Context, to Space, id EventID, in In) (out Out, err error) {
	o, err := e.Outgoing(To(to.name), id, in)
	if err != nil {
		return out, err
	}
	r, err := to.client.Call(ctx, o)
	if err != nil {
		return out, err
	}
	return e.result(to.name, r)
}

// result returns the result in a receipt.
func (e events[In, Out]) result(space string, r *model.Receipt) (out Out, err error) {
	if r.Outcome != model.Handled {
		return out, &NotHandledError{Space: space, Stream: e.name, Receipt: r}
	}
	if isNone[Out]() {
		return out, nil
	}
	if out, err = e.out.Decode(r.Result); err != nil {
		err = fmt.Errorf("result of %s/%s %s: %w", space, e.name, r.Event, err)
	}
	return out, err
}

// encode encodes a payload or result; absent if T is struct{}.
func encode[T any](c *codec.Codec[T], t T) (Value, error) {
	if isNone[T]() {
		return Value{}, nil
	}
	return c.Encode(t)
}

// isNone reports whether a payload or result of that type does not exist.
func isNone[T any]() bool { return reflect.TypeFor[T]() == reflect.TypeFor[struct{}]() }

// Target is the space that an event is for: Here, or what To returns.
type Target struct {
	space string
	other bool // not Here
}

// To returns the space of a name as the target of an event. The name is checked when the event is sent.
func To(space string) Target { return Target{space, true} }

// Here is the space that the handler runs in, as the target of an event that the handler sends.
var Here Target //nolint:gochecknoglobals // a constant, which a struct cannot be

// in returns the name of the target for a handler's transaction.
func (t Target) in(tx *Tx) string {
	if t == Here {
		return tx.Space()
	}
	return t.space
}
