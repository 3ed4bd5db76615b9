package coordinator

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// releaseSpans are the options of all spans of releases. The rest of their attributes is of those that are recorded.
var releaseSpans = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
	telemetry.System.String("nats"), telemetry.Operation.String("release"), telemetry.Type.String("send"), telemetry.Template.String(telemetry.LaneTemplate))}

// span starts the span of a release, under the handling that sent the event and with a link to the commit that has it, and returns the
// trace context that travels with the event: that of the handling if the sampler leaves the span out.
func (t *tail) span(e *model.LogEntry, s *model.Send) (model.Trace, func(error)) {
	if t.c.cfg.Tracer == nil {
		return s.Trace, unrecorded
	}
	if h, ok := t.c.cfg.Tracer.(telemetry.Head); ok && telemetry.LeavesOut(h, s.Trace) {
		return s.Trace, unrecorded
	}
	ctx, span := t.c.cfg.Tracer.Start(telemetry.Context(context.Background(), s.Trace), "release "+s.Stream, releaseSpans...)
	if !span.IsRecording() {
		if telemetry.LeftOut(s.Trace) {
			return s.Trace, unrecorded
		}
		return telemetry.Of(ctx), unrecorded
	}
	if l, ok := telemetry.Link(e.Trace); ok {
		span.AddLink(l)
	}
	span.SetAttributes(telemetry.Space.String(e.Space), telemetry.Target.String(s.To), telemetry.Stream.String(s.Stream), telemetry.MessageID.String(s.ID))
	return telemetry.Of(ctx), func(err error) { telemetry.End(span, err) }
}

// unrecorded ends no span.
func unrecorded(error) {}
