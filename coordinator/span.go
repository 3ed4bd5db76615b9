package coordinator

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// span starts the span of a release, under the handling that sent the event and with a link to the commit that has it, and returns the
// trace context that travels with the event.
func (t *tail) span(e *model.LogEntry, s *model.Send) (model.Trace, func(error)) {
	if t.c.cfg.Tracer == nil {
		return s.Trace, func(error) {}
	}
	ctx, span := t.c.cfg.Tracer.Start(telemetry.Context(context.Background(), s.Trace), "release "+s.Stream,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(telemetry.Links([]model.Trace{e.Trace})...),
		trace.WithAttributes(
			telemetry.System.String("nats"), telemetry.Operation.String("release"), telemetry.Type.String("send"),
			telemetry.Template.String(telemetry.LaneTemplate),
			telemetry.Space.String(e.Space), telemetry.Target.String(s.To),
			telemetry.Stream.String(s.Stream), telemetry.MessageID.String(s.ID)))
	return telemetry.Of(ctx), func(err error) { telemetry.End(span, err) }
}
