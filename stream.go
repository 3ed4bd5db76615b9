package settle

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Stream is a kind of event: its name, the type of its payload, and the type of the result that the
// handler returns and the sender can wait for. Like a Cell it is a name and holds no data.
//
//	var departure = settle.NewStream[Departure, Handling]("departure")
//
// Use None for a payload or result that does not exist.
type Stream[In, Out any] struct {
	name string
	in   *codec.Codec[In]
	out  *codec.Codec[Out]
}

// None is the payload or result of a stream, or the input or result of an action, that has none:
// struct{}, written settle.None{} where a value is needed. Nothing is stored for it.
type None = struct{}

// Target is the space that an event is for: Here, or what To returns.
type Target struct {
	space string
	other bool // not Here
}

// To returns the space of a name as the target of an event. The name is checked when the event is sent.
func To(space string) Target { return Target{space, true} }

// Here is the space that the handler runs in, as the target of an event that the handler sends.
var Here Target //nolint:gochecknoglobals // a constant, which a struct cannot be

// Checker is implemented by payloads that validate themselves: if Check returns an error, the event
// fails with that error and its handler is not called.
type Checker interface {
	Check() error
}

// Tick is the payload of a cron job's events.
type Tick struct {
	Cron string    `json:"cron"`
	At   time.Time `json:"at"`
	// Missed counts the ticks before this one for which no event was handled.
	Missed int `json:"missed"`
}

// NewStream returns the stream of that name. It panics if the name is invalid, or if one of the
// types cannot be encoded; see NewCell.
func NewStream[In, Out any](name string) Stream[In, Out] {
	must(model.CheckName("stream", name))
	return Stream[In, Out]{
		name: name, in: codecOf[In]("the payload of stream " + name), out: codecOf[Out]("the result of stream " + name),
	}
}

// Name returns the name of the stream.
func (s Stream[In, Out]) Name() string { return s.name }

// Handle registers the handler of the stream; a stream has one. It runs in a transaction: its
// writes and sends through tx take effect together with the receipt that holds its result, exactly
// once, or not at all if it returns an error. It may be called more than once for one event, so it
// must have no other effects (no I/O, no clock but tx.Now, no random numbers). tx.Event has the
// event's id.
//
// Within limits how long a call may take.
//
// A payload that does not decode into In, or that its Check rejects, fails the event with an error
// that names the location in the payload.
func (s Stream[In, Out]) Handle(p *Program, handle func(tx *Tx, in In) (Out, error), options ...HandlerOption) {
	if handle == nil {
		p.Handle(s.name, nil)
		return
	}
	p.Handle(s.name, func(tx *Tx, ev *Event) (Value, error) {
		in, err := s.payload(ev)
		if err != nil {
			return Value{}, err
		}
		out, err := handle(tx, in)
		if err != nil {
			return Value{}, err
		}
		return s.result(out)
	}, options...)
}

func (s Stream[In, Out]) payload(ev *Event) (in In, err error) {
	if in, err = s.in.Decode(ev.Payload); err != nil {
		return in, fmt.Errorf("payload of %s: %w", s.name, err)
	}
	c, ok := any(in).(Checker)
	if !ok {
		c, ok = any(&in).(Checker)
	}
	if v := reflect.ValueOf(in); ok && v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Implements(reflect.TypeFor[Checker]()) {
		return in, fmt.Errorf("payload of %s: there is none to check; a %s is wanted", s.name, v.Type().Elem())
	}
	if ok {
		if err := c.Check(); err != nil {
			return in, fmt.Errorf("payload of %s: %w", s.name, err)
		}
	}
	return in, nil
}

// result encodes a result for the receipt; nothing for None.
func (s Stream[In, Out]) result(out Out) (Value, error) {
	if _, none := any(out).(None); none {
		return Value{}, nil
	}
	return s.out.Encode(out)
}

// Send sends an event to a space, this one (Here) or another. It takes effect if and only if the
// transaction commits, and exactly once; an event for another space leaves when the transaction is
// durable.
func (s Stream[In, Out]) Send(tx *Tx, to Target, in In, options ...SendOption) {
	if v, ok := s.encode(tx, in); ok {
		tx.Send(to.in(tx), s.name, v, options...)
	}
}

// SendAfter sends an event that waits for a duration, counted from tx.Now.
func (s Stream[In, Out]) SendAfter(tx *Tx, to Target, d time.Duration, in In, options ...SendOption) {
	if v, ok := s.encode(tx, in); ok {
		tx.SendAfter(to.in(tx), s.name, d, v, options...)
	}
}

// SendAt sends an event that waits for a time, by the clock of the worker that serves its space. A
// time in the past means now.
func (s Stream[In, Out]) SendAt(tx *Tx, to Target, at time.Time, in In, options ...SendOption) {
	if v, ok := s.encode(tx, in); ok {
		tx.SendAt(to.in(tx), s.name, at, v, options...)
	}
}

// SetTimer schedules an event of the stream in this space for a time, at once if that has passed.
// timer is a name; see NameOf for other keys. Setting the same timer again replaces it;
// tx.CancelTimer cancels it.
func (s Stream[In, Out]) SetTimer(tx *Tx, timer string, at time.Time, in In, options ...SendOption) {
	if v, ok := s.encode(tx, in); ok {
		tx.SetTimer(timer, s.name, at, v, options...)
	}
}

// SendOption configures an event that a handler sends: ExpiresAt. It is [space.SendOption].
type SendOption = space.SendOption

// ExpiresAt sets a deadline for an event that a handler sends, as Outgoing.Expires does for events
// from outside: after it the event is not handled but ends with the receipt Expired, and if another
// space sent it, that space gets an event of stream Undelivered. The zero time means no deadline.
func ExpiresAt(at time.Time) SendOption { return space.ExpiresAt(at) }

// in returns the name of the target for a handler's transaction.
func (t Target) in(tx *Tx) string {
	if t == Here {
		return tx.Space()
	}
	return t.space
}

func (s Stream[In, Out]) encode(tx *Tx, in In) (Value, bool) {
	v, err := s.value(in)
	if err != nil {
		tx.Fail(fmt.Errorf("send to %s: %w", s.name, err))
	}
	return v, err == nil
}

func (s Stream[In, Out]) value(in In) (Value, error) {
	if _, none := any(in).(None); none {
		return Value{}, nil
	}
	return s.in.Encode(in)
}

// Outgoing returns an event of the stream for Client.Send, Client.Call or Sender.Send.
func (s Stream[In, Out]) Outgoing(to Target, id EventID, in In) (Outgoing, error) {
	v, err := s.value(in)
	if err != nil {
		return Outgoing{}, fmt.Errorf("send to %s/%s: %w", to.space, s.name, err)
	}
	return Outgoing{Space: to.space, Stream: s.name, ID: id, Payload: v}, nil
}

// Post sends an event from outside and returns when it is durable: it will be handled exactly once,
// however often it is posted under its id. After an error it may or may not be stored; post it
// again under the same id. The errors are those of Client.Send.
func (s Stream[In, Out]) Post(ctx context.Context, to Space, id EventID, in In) (SendResult, error) {
	o, err := s.Outgoing(To(to.name), id, in)
	if err != nil {
		return SendResult{}, err
	}
	return to.client.Send(ctx, o)
}

// Call sends an event from outside and waits for its result: request and reply over a handler that
// takes effect exactly once. Calling again under the same id returns the same result. If the event
// ended otherwise than handled, the error is a *NotHandledError. Call blocks until ctx ends; after
// that error, or any other, the event may still be handled, so call again under the same id.
func (s Stream[In, Out]) Call(ctx context.Context, to Space, id EventID, in In) (out Out, err error) {
	o, err := s.Outgoing(To(to.name), id, in)
	if err != nil {
		return out, err
	}
	r, err := to.client.Call(ctx, o)
	if err != nil {
		return out, err
	}
	return s.Result(to.name, r)
}

// Result decodes the result in a receipt of the stream, or returns a *NotHandledError.
func (s Stream[In, Out]) Result(space string, r *Receipt) (out Out, err error) {
	if r.Outcome != Handled {
		return out, &NotHandledError{Space: space, Stream: s.name, Receipt: r}
	}
	if out, err = s.out.Decode(r.Result); err != nil {
		err = fmt.Errorf("result of %s/%s %s: %w", space, s.name, r.Event, err)
	}
	return out, err
}

// NotHandledError reports that an event ended with another outcome than Handled: it failed, was
// refused or cancelled, or expired.
type NotHandledError struct {
	Space, Stream string
	Receipt       *Receipt
}

func (e *NotHandledError) Error() string {
	return fmt.Sprintf("event %s to %s/%s %s: %s", e.Receipt.Event, e.Space, e.Stream, e.Receipt.Outcome, e.Receipt.Error)
}

// Cron sends an event to a stream of every space of the program at the times of a cron expression.
// It is the typed form of Program.Cron.
func Cron[Out any](p *Program, name, expression string, s Stream[Tick, Out], o CronOptions) {
	p.Cron(name, expression, s.name, o)
}
