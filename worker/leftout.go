package worker

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// begins reports whether an event begins a trace.
func begins(ev *model.Event) bool { return ev.NotBefore > 0 || !telemetry.Names(ev.Trace) }

// origin returns the trace that an event begins.
func (s *spans) origin(ev *model.Event) telemetry.Origin {
	return telemetry.OriginOf(s.space, ev.Stream, ev.ID)
}

// leavesOut reports whether it is known, before there is a span, that an event is left out.
func (s *spans) leavesOut(ev *model.Event) bool {
	switch {
	case s.head == nil:
		return false
	case begins(ev):
		return s.head.LeavesOut(trace.SpanContext{}, s.origin(ev).ID())
	}
	return telemetry.LeavesOut(s.head, ev.Trace)
}

// leaveOutEarly is handleStart for an event that is left out before there is a span.
func (s *spans) leaveOutEarly(ev *model.Event) model.Trace {
	s.handle, s.handleCtx, s.handling, s.early = nil, nil, model.Trace{}, ev
	t := recorded(ev)
	if len(s.pass.causes) == 0 {
		s.causedBy(s.passedOn(ev, t))
	}
	return t
}

// recorded returns the trace context that is recorded in the transaction of an event that is left out early.
func recorded(ev *model.Event) model.Trace {
	if begins(ev) {
		return model.Trace{Baggage: ev.Trace.Baggage}
	}
	return ev.Trace
}

// passedOn returns the trace context that travels with what an event causes, of being that of its transaction: if that has none, the event was left out.
func (s *spans) passedOn(ev *model.Event, of model.Trace) model.Trace {
	if of.Parent == "" && s.head != nil {
		return s.leftEarly.of(s.origin(ev), of)
	}
	return of
}

// leftEarly is the newest context of an event that was left out early: the pass, the commit and the sends of one event have the same.
type leftEarly struct {
	origin telemetry.Origin
	parent string
}

// of returns t with the context of what an event has caused that is left out.
func (l *leftEarly) of(o telemetry.Origin, t model.Trace) model.Trace {
	if l.origin != o || l.parent == "" {
		l.origin, l.parent = o, o.LeftOut(model.Trace{}).Parent
	}
	t.Parent = l.parent
	return t
}

// needEarly makes the context of an event that was left out early.
func (s *spans) needEarly() {
	if s.early != nil && s.handleCtx == nil {
		s.handling = s.passedOn(s.early, recorded(s.early))
		s.handleCtx = telemetry.Context(context.Background(), s.handling)
	}
}

// leftOutIn returns the trace context of an event that was left out early, "" if the transaction has none.
func (s *spans) leftOutIn(tx *model.Tx) model.Trace {
	if s.head == nil || tx.Receipt == nil {
		return tx.Trace
	}
	stream, _ := receipts.Stream(tx.By)
	o := telemetry.OriginOf(s.space, stream, tx.Receipt.Event)
	if !s.head.LeavesOut(trace.SpanContext{}, o.ID()) {
		return tx.Trace
	}
	return s.leftEarly.of(o, tx.Trace)
}
