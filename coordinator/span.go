package coordinator

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// span starts the span of a release, under the handling that sent the event, and returns the trace
// context that travels with the event.
func (t *tail) span(from string, s *model.Send) (model.Trace, func(error)) {
	if t.c.cfg.Tracer == nil {
		return s.Trace, func(error) {}
	}
	ctx, span := t.c.cfg.Tracer.Start(telemetry.Context(context.Background(), s.Trace), "release "+s.Stream,
		trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(
			telemetry.System.String("nats"), telemetry.Operation.String("release"), telemetry.Type.String("send"),
			telemetry.Template.String("settle.lane.{partition}.{space}.{stream}.{event}"),
			telemetry.Space.String(from), telemetry.Target.String(s.To),
			telemetry.Stream.String(s.Stream), telemetry.MessageID.String(s.ID)))
	return telemetry.Of(ctx), func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
