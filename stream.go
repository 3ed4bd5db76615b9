package settle

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// Stream is a kind of event with a payload of type In: its handler returns no result. Request is a kind
// with a result, Trigger one without payload and result. Like a Cell it is a name and holds no data.
//
//	var charged = settle.NewStream[Charged]("charged")
type Stream[In any] struct{ events[In, struct{}] }

// NewStream returns the stream of that name. It panics if the name is invalid, or if In cannot be
// encoded; see NewCell.
func NewStream[In any](name string) Stream[In] {
	return Stream[In]{newEvents[In, struct{}]("stream", name)}
}

// Lenient returns the stream for a handler that takes what it knows of a payload: keys that In has no field for are dropped, and what is missing
// or null is the zero value. Without it, such a payload fails the event, or is refused over HTTP (see Handle).
func (s Stream[In]) Lenient() Stream[In] {
	s.strict = nil
	return s
}

// Internal returns the stream for events that only spaces of the deployment send: handlers, timers and jobs. An event of a client is rejected
// with the code model.InternalStream when it is handled, whatever rules about access allow; Post, Call and requests over HTTP refuse it before anything is
// stored, with a *model.InternalStreamError. Generated clients do not have the stream. What a client can forge depends on the permissions of
// the NATS servers, see docs/handlers.md.
func (s Stream[In]) Internal() Stream[In] {
	s.internal = true
	return s
}

// Handle registers the handler of the stream; a stream has one. It runs in a transaction: its
// writes and sends through tx take effect together with the event's receipt, exactly once, or not at
// all if it returns an error. It may be called more than once for one event, so it must have no other
// effects (no I/O, no clock but tx.Now, no random numbers). tx.Event has the event's id.
//
// Within limits how long a call may take.
//
// A payload that does not decode into In fails the event with an error that names the location in the
// payload. So does one of which something would be lost, unless the stream is Lenient: an unknown key, null where In has no null, or the lack of a payload or
// of a key. Fields may be missing that are pointers, a Value, or have the tag omitzero or omitempty. A Value distinguishes absent from null. If In or *In has a method Check() error, it is called first, and an error of it fails the event.
func (s Stream[In]) Handle(p *Program, handle func(tx *Tx, in In) error, options ...HandlerOption) {
	if handle == nil {
		p.Handle(s.name, nil)
		return
	}
	s.handle(p, func(tx *Tx, in In) (struct{}, error) { return struct{}{}, handle(tx, in) }, options)
}

// Call sends an event from outside and waits until it is handled. If it ends otherwise, the error is a
// *NotHandledError. Calling again under the same id handles nothing again. Call blocks until ctx ends;
// after that error, or any other, the event may still be handled, so call again under the same id.
func (s Stream[In]) Call(ctx context.Context, to Space, id EventID, in In) error {
	_, err := s.call(ctx, to, id, in)
	return err
}

// Request is a kind of event with a payload of type In and a result of type Out, which the handler returns
// and the sender can wait for. In is struct{} for a request without payload.
//
//	var bid = settle.NewRequest[Bid, int]("bid")
type Request[In, Out any] struct{ events[In, Out] }

// NewRequest returns the request of that name. It panics like NewStream.
func NewRequest[In, Out any](name string) Request[In, Out] {
	return Request[In, Out]{newEvents[In, Out]("request", name)}
}

// Lenient returns the request for a handler that takes what it knows of a payload, as Stream.Lenient does.
func (r Request[In, Out]) Lenient() Request[In, Out] {
	r.strict = nil
	return r
}

// Internal returns the request for events that only spaces of the deployment send, as Stream.Internal does.
func (r Request[In, Out]) Internal() Request[In, Out] {
	r.internal = true
	return r
}

// Handle registers the handler of the request, as Stream.Handle does. The result is stored in the event's
// receipt.
func (r Request[In, Out]) Handle(p *Program, handle func(tx *Tx, in In) (Out, error), options ...HandlerOption) {
	r.handle(p, handle, options)
}

// Call sends an event from outside and waits for its result: request and reply over a handler that
// takes effect exactly once. Calling again under the same id returns the same result. If the event
// ended otherwise than handled, the error is a *NotHandledError. Call blocks until ctx ends; after
// that error, or any other, the event may still be handled, so call again under the same id.
func (r Request[In, Out]) Call(ctx context.Context, to Space, id EventID, in In) (Out, error) {
	return r.call(ctx, to, id, in)
}

// Result decodes the result in a receipt of the request, which is of an event of that space, or returns a
// *NotHandledError.
func (r Request[In, Out]) Result(space string, receipt *model.Receipt) (Out, error) {
	return r.events.result(space, receipt)
}

// Trigger is a kind of event that has neither payload nor result.
//
//	var unlock = settle.NewTrigger("unlock")
type Trigger struct{ events events[struct{}, struct{}] }

// NewTrigger returns the trigger of that name. It panics if the name is invalid.
func NewTrigger(name string) Trigger {
	return Trigger{newEvents[struct{}, struct{}]("trigger", name)}
}

// Lenient returns the trigger for a handler that accepts any payload, and drops it. Without it, a payload that is neither null nor an empty
// object fails the event.
func (t Trigger) Lenient() Trigger {
	t.events.strict = nil
	return t
}

// Internal returns the trigger for events that only spaces of the deployment send, as Stream.Internal does.
func (t Trigger) Internal() Trigger {
	t.events.internal = true
	return t
}

// Name returns the name of the trigger.
func (t Trigger) Name() string { return t.events.name }

// Handle registers the handler of the trigger, as Stream.Handle does.
func (t Trigger) Handle(p *Program, handle func(tx *Tx) error, options ...HandlerOption) {
	if handle == nil {
		p.Handle(t.events.name, nil)
		return
	}
	t.events.handle(p, func(tx *Tx, _ struct{}) (struct{}, error) { return struct{}{}, handle(tx) }, options)
}

// Send sends an event, as Stream.Send does.
func (t Trigger) Send(tx *Tx, to Target, options ...space.SendOption) {
	t.events.Send(tx, to, struct{}{}, options...)
}

// SendAfter sends an event that waits for a duration, counted from tx.Now.
func (t Trigger) SendAfter(tx *Tx, to Target, d time.Duration, options ...space.SendOption) {
	t.events.SendAfter(tx, to, d, struct{}{}, options...)
}

// SendAt sends an event that waits for a time, as Stream.SendAt does.
func (t Trigger) SendAt(tx *Tx, to Target, at time.Time, options ...space.SendOption) {
	t.events.SendAt(tx, to, at, struct{}{}, options...)
}

// SetTimer schedules an event in this space for a time, as Stream.SetTimer does.
func (t Trigger) SetTimer(tx *Tx, timer string, at time.Time, options ...space.SendOption) {
	t.events.SetTimer(tx, timer, at, struct{}{}, options...)
}

// Outgoing returns an event of the trigger, as Stream.Outgoing does.
func (t Trigger) Outgoing(to Target, id EventID) Outgoing {
	return Outgoing{Space: to.space, Stream: t.events.name, ID: id, internal: t.events.internal}
}

// Post sends an event from outside and returns when it is durable, as Stream.Post does.
func (t Trigger) Post(ctx context.Context, to Space, id EventID) (model.SendResult, error) {
	return t.events.Post(ctx, to, id, struct{}{})
}

// Call sends an event from outside and waits until it is handled, as Stream.Call does.
func (t Trigger) Call(ctx context.Context, to Space, id EventID) error {
	_, err := t.events.call(ctx, to, id, struct{}{})
	return err
}

// Core returns the form of the trigger that package settletest uses. Applications do not need it.
func (t Trigger) Core() codec.Kind[struct{}, struct{}] { return t.events.Core() }

// NotHandledError reports that an event ended with another outcome than Handled: it failed, was
// rejected, refused or cancelled, or expired. If it was rejected, it wraps a *Rejection.
type NotHandledError struct {
	Space, Stream string
	Receipt       *model.Receipt
}

func (e *NotHandledError) Error() string {
	return fmt.Sprintf("event %s to %s/%s %s: %s", e.Receipt.Event, e.Space, e.Stream, e.Receipt.Outcome, receipts.Reason(e.Receipt))
}

// Unwrap returns the *Rejection of an event that was rejected.
func (e *NotHandledError) Unwrap() error {
	if r := receipts.RejectionOf(e.Receipt); r != nil {
		return r
	}
	return nil
}
