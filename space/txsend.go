package space

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Send emits an event to a stream of a space, this one or another. It takes effect exactly once, and only if
// this transaction commits. An event to this space queues behind the events that are waiting now; one to
// another space is released when the commit is durable. Config.MaxChain bounds chains of events that send
// each other without a delay.
func (h *Tx) Send(space, stream string, payload any, options ...SendOption) {
	t := h.open()
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

// SendOption is an option of Send.
type SendOption func(*model.Send)

// ExpiresAt ends the event with the receipt Expired instead of handling it, from a time on by the clock of
// the worker that serves its space. The zero time means never.
func ExpiresAt(at time.Time) SendOption {
	return func(s *model.Send) {
		if !at.IsZero() {
			s.Expires = model.NotBefore(at)
		}
	}
}

// Raise sends an event to a stream of this space from the run of an effect: what the effect has seen is handled like any
// other event, behind those that wait now. It takes effect with the transaction of the run. An effect runs again for
// several reasons, and raises the event each time: it records what it has raised in a document that it declares in
// Writes, or the handler recognises the repetition.
func (h *Tx) Raise(stream string, payload any) {
	t := h.open()
	if t.err != nil || t.rehearsal {
		return
	}
	t.used()
	if t.node == nil || t.node.kind != Effect {
		t.fail(fmt.Errorf("raise an event on stream %s: only effects do; a handler sends it", stream))
		return
	}
	err := model.CheckSendStream(stream)
	var v model.Value
	if err == nil {
		v, err = model.Of(payload)
	}
	if err != nil {
		t.fail(fmt.Errorf("raise an event on stream %s: %w", stream, err))
		return
	}
	t.attempt.Sends = append(t.attempt.Sends, model.Send{To: t.space, Stream: stream, Payload: v})
}

func (t *transaction) makeSend(space, stream string, payload any, options []SendOption) (model.Send, error) {
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

// chain makes a send the next link in the chain of the event that is being handled.
func (t *transaction) chain(s *model.Send) (err error) {
	if t.attempt.Event != nil {
		s.Depth, err = lineage.Next(t.attempt.Event, t.core.cfg.MaxChain)
	}
	return err
}

// Now returns the wall time of this attempt as set by the host, in UTC and to the millisecond. Another
// attempt at the same event has a later one, or an earlier one if the clock was set back; the attempt that
// takes effect counts. An event with a time is never handled before that time by this clock.
//
// It is for handlers and transactions. In a computation or effect it fails the run: those run when one of
// their reads has changed, and the passing of time does not trigger them.
func (h *Tx) Now() time.Time { return h.open().now() }

func (t *transaction) now() time.Time {
	if t.node != nil {
		t.fail(fmt.Errorf("%s %s asks for the time: it would not run again when time passes; have a handler write the value to read", t.node.kind, t.node.id()))
		return time.Time{}
	}
	if t.core.ledger.Wall() == 0 {
		t.fail(fmt.Errorf("the host of the space has not set the time (Space.Clock)"))
		return time.Time{}
	}
	return time.UnixMilli(t.core.ledger.Wall()).UTC()
}

// SendAt is Send for an event that must not be handled before a time. It is durable with this transaction,
// and waits in its destination space. There it is handled when the time has come by the clock of the worker
// that serves the space, behind the events that are queued at that moment. A past time means now.
func (h *Tx) SendAt(space, stream string, at time.Time, payload any, options ...SendOption) {
	h.open().sendAt(space, stream, at, payload, options)
}

func (t *transaction) sendAt(space, stream string, at time.Time, payload any, options []SendOption) {
	if t.err != nil {
		return
	}
	s, err := t.makeSend(space, stream, payload, options)
	if err == nil {
		err = t.wait(&s, at)
	}
	if err != nil {
		t.fail(fmt.Errorf("send to %s/%s: %w", space, stream, err))
		return
	}
	t.attempt.Sends = append(t.attempt.Sends, s)
}

// SendAfter is SendAt for a delay from Now.
func (h *Tx) SendAfter(space, stream string, d time.Duration, payload any, options ...SendOption) {
	t := h.open()
	if now := t.now(); t.err == nil {
		t.sendAt(space, stream, now.Add(d), payload, options)
	}
}

// wait sets the time before which a send is not handled. For a send to this space a past time has no effect.
func (t *transaction) wait(s *model.Send, at time.Time) error {
	if t.core.ledger.Wall() == 0 {
		return fmt.Errorf("the host of the space has not set the time (Space.Clock)")
	}
	ms := model.NotBefore(at)
	if s.Expires > 0 && s.Expires < ms {
		return fmt.Errorf("it expires before its time")
	}
	if !paces(t.attempt.Event, t.core.ledger.Wall(), ms) {
		if err := t.chain(s); err != nil {
			return err
		}
	}
	if s.To == t.space && ms <= t.core.ledger.Wall() && s.Timer == "" {
		return nil
	}
	s.NotBefore = ms
	if s.To != t.space {
		return model.CheckNotBefore(at, time.UnixMilli(t.core.ledger.Wall()))
	}
	return t.core.ledger.CheckWait(&t.attempt.Draft, s, t.attempt.Event != nil && t.core.jobs.of(t.attempt.Event) != nil)
}

// SetTimer schedules an event to a stream of this space under a name: setting the same name again replaces
// the previous timer, unless that was handled. It takes effect if and only if this transaction commits. The
// handler of the timer's event finds the name in Event.Timer, and may set it again.
func (h *Tx) SetTimer(name, stream string, at time.Time, payload any, options ...SendOption) {
	t := h.open()
	if t.err != nil {
		return
	}
	s, err := t.makeSend(t.space, stream, payload, options)
	if err == nil {
		err = model.CheckName("timer", name)
	}
	if err == nil {
		unset(&t.attempt.Draft, name)
		s.Timer = name
		err = t.wait(&s, at)
	}
	if err != nil {
		t.fail(fmt.Errorf("set timer %s on stream %s: %w", name, stream, err))
		return
	}
	t.attempt.Sends = append(t.attempt.Sends, s)
}

// CancelTimer cancels a timer with this transaction. It has no effect if the timer is not set.
func (h *Tx) CancelTimer(name string) {
	t := h.open()
	if t.err != nil {
		return
	}
	err := model.CheckName("timer", name)
	if t.node != nil {
		err = fmt.Errorf("%s %s is not a handler; only handlers cancel timers", t.node.kind, t.node.id())
	}
	if err != nil {
		t.fail(fmt.Errorf("cancel timer %s: %w", name, err))
		return
	}
	unset(&t.attempt.Draft, name)
	t.attempt.Cancels = append(t.attempt.Cancels, name)
}

// Timer returns the time of a timer of this space, false if it is not set. The transaction sees its own
// changes of timers. A timer that is being handled is no longer set.
func (h *Tx) Timer(name string) (time.Time, bool) {
	t := h.open()
	for i := range t.attempt.Sends {
		if t.attempt.Sends[i].Timer == name && name != "" {
			return time.UnixMilli(t.attempt.Sends[i].NotBefore).UTC(), true
		}
	}
	w := t.core.ledger.Timer(name)
	if w == nil || slices.Contains(t.attempt.Cancels, name) || t.attempt.Event != nil && t.attempt.Event.Slot == w.Slot {
		return time.Time{}, false
	}
	return time.UnixMilli(w.NotBefore).UTC(), true
}

// unset removes a timer that the transaction itself has set.
func unset(d *ledger.Draft, name string) {
	d.Sends = slices.DeleteFunc(d.Sends, func(s model.Send) bool { return s.Timer == name })
}

// paces reports whether a send with a time begins a new chain: the time lies in the future, or after the time
// of the event that is being handled. A timer that catches up on past times is progress, not a loop.
func paces(ev *model.Event, wall, ms int64) bool {
	since := wall
	if ev != nil && ev.NotBefore > 0 {
		since = min(since, ev.NotBefore)
	}
	return ms > since
}
