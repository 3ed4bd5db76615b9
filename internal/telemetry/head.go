package telemetry

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/model"
)

// Head is a tracer whose sampler decides by the parent and the id of a trace alone, and so before there is a span. The standard samplers
// do. Where nearly all traces are left out, a question to the SDK, which makes a span that does not record, costs more than the handling of the
// context of an event that has a sender.
type Head interface {
	trace.Tracer
	// LeavesOut reports whether the sampler leaves out the spans of a trace. parent is the zero value for a trace that begins.
	LeavesOut(parent trace.SpanContext, id trace.TraceID) bool
}

// Origin is the trace that an event begins if its sender is not traced. It follows from the event, so that all attempts, in whichever
// worker, belong to one trace, and nothing about it is stored with an event that is left out.
type Origin struct {
	trace trace.TraceID
	span  trace.SpanID
}

// OriginOf returns the trace that an event begins.
func OriginOf(space, stream, event string) (o Origin) {
	var room [256]byte
	b := append(append(append(room[:0], space...), 0), stream...)
	sum := sha256.Sum256(append(append(b, 0), event...))
	copy(o.trace[:], sum[:])
	copy(o.span[:], sum[len(o.trace):])
	return o
}

// ID returns the id of the trace.
func (o Origin) ID() trace.TraceID { return o.trace }

// Begin returns a context in which the first span has the id of the trace and no parent.
func (o Origin) Begin(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: o.trace}))
}

// LeftOut is t with the context of a span that the sampler has left out: what the event causes is left out, too, and lines of the log about it
// have one trace id.
func (o Origin) LeftOut(t model.Trace) model.Trace {
	t.Parent = format(trace.NewSpanContext(trace.SpanContextConfig{TraceID: o.trace, SpanID: o.span}))
	return t
}

// Names reports whether t names a span.
func Names(t model.Trace) bool { return spanContext(t).IsValid() }

// LeavesOut reports whether t names a span, and a tracer leaves out what that has caused.
func LeavesOut(h Head, t model.Trace) bool {
	of := spanContext(t)
	return of.IsValid() && h.LeavesOut(of, of.TraceID())
}
