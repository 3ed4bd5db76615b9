// Package telemetry carries trace contexts between headers, commits and spans. It links the
// OpenTelemetry API alone; internal/telemetry/export sets up exporters for the commands.
//
// Attribute keys follow the messaging semantic conventions, which are still in
// development; they are all in this package so that a change of theirs is a change
// of one file.
package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/model"
)

// Scope is the instrumentation scope of all spans.
const Scope = "github.com/settlehq/settle"

// Attributes of the spans.
const (
	System    = attribute.Key("messaging.system")         // always "nats"
	Operation = attribute.Key("messaging.operation.name") // send, handle, commit, release, settle
	Type      = attribute.Key("messaging.operation.type") // send, process, settle
	Template  = attribute.Key("messaging.destination.template")
	MessageID = attribute.Key("messaging.message.id")
	Batch     = attribute.Key("messaging.batch.message_count")
	Space     = attribute.Key("settle.space")
	Target    = attribute.Key("settle.target")
	Stream    = attribute.Key("settle.stream")
	Outcome   = attribute.Key("settle.outcome")
	Sequence  = attribute.Key("settle.log.sequence")
	Runs      = attribute.Key("settle.pass.runs")
	Events    = attribute.Key("settle.pass.events")
)

var w3c propagation.TraceContext

// Context is ctx with the remote span that t names as its parent.
func Context(ctx context.Context, t model.Trace) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return w3c.Extract(ctx, propagation.MapCarrier{"traceparent": t.Parent, "tracestate": t.State})
}

// Of returns the trace context of the span in ctx, as it travels in headers.
func Of(ctx context.Context) model.Trace {
	c := propagation.MapCarrier{}
	w3c.Inject(ctx, c)
	return model.Trace{Parent: c["traceparent"], State: c["tracestate"]}
}

// Link points to the span that t names; ok is false if it names none.
func Link(t model.Trace) (link trace.Link, ok bool) {
	sc := trace.SpanContextFromContext(Context(context.Background(), t))
	return trace.Link{SpanContext: sc}, sc.IsValid()
}
