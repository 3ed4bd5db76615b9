package worker

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/host"
	"github.com/settlehq/settle/worker/tasks"
)

// hostSpans returns what begins the spans of a process besides those of its events; nil without a tracer.
func hostSpans(tracer trace.Tracer, id string) *host.Spans {
	if tracer == nil {
		return nil
	}
	return &host.Spans{
		Activate: func(space string, began time.Time, cause model.Trace) (model.Trace, func(error)) {
			ctx, span := tracer.Start(telemetry.Context(context.Background(), cause), "activate space", trace.WithTimestamp(began), trace.WithAttributes(
				telemetry.Operation.String("activate"), telemetry.Space.String(space), telemetry.Worker.String(id)))
			return telemetry.Of(ctx), func(err error) { telemetry.End(span, err) }
		},
		Checkpoint: func(space string, after model.Trace) func(int, error) {
			_, span := tracer.Start(context.Background(), "checkpoint", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(telemetry.Links([]model.Trace{after})...), trace.WithAttributes(
				telemetry.Operation.String("checkpoint"), telemetry.Space.String(space)))
			return func(documents int, err error) {
				span.SetAttributes(telemetry.Documents.Int(documents))
				telemetry.End(span, err)
			}
		},
		Takeover: func(partition int, took time.Duration) {
			now := time.Now()
			_, span := tracer.Start(context.Background(), "take over partition", trace.WithTimestamp(now.Add(-took)), trace.WithAttributes(
				telemetry.Operation.String("takeover"), telemetry.Partition.Int(partition), telemetry.Worker.String(id)))
			span.End(trace.WithTimestamp(now))
		},
	}
}

// attempts returns how attempts at tasks are observed, nil if they are not.
func (c *core) attempts() func(action, key string, attempt int) func(context.Context) (context.Context, func(tasks.Ending, error)) {
	tracer, counts, in := c.engine.cfg.Tracer, c.engine.tally, c.of.Space
	if tracer == nil && counts == nil {
		return nil
	}
	return func(action, key string, attempt int) func(context.Context) (context.Context, func(tasks.Ending, error)) {
		cause := c.tracing.spans.tasks.of[taskName{action, key}]
		return func(ctx context.Context) (context.Context, func(tasks.Ending, error)) {
			began, span := time.Now(), trace.SpanFromContext(context.Background())
			if tracer != nil {
				if ctx, span = tracer.Start(telemetry.Context(ctx, cause), "attempt "+action); span.IsRecording() {
					span.SetAttributes(
						telemetry.Operation.String("attempt"), telemetry.Space.String(in), telemetry.Action.String(action), telemetry.Task.String(key), telemetry.Attempt.Int(attempt))
				}
			}
			return ctx, func(how tasks.Ending, err error) {
				span.SetAttributes(telemetry.Outcome.String(string(how)))
				if err != nil {
					telemetry.Fail(span, string(how), err.Error())
				}
				span.End()
				counts.attempted(ctx, began, how)
			}
		}
	}
}

// offered counts an offer of a task to performers.
func (e *engine) offered(taken bool) {
	switch {
	case e.tally == nil:
	case taken:
		e.tally.taken.Add(1)
	default:
		e.tally.untaken.Add(1)
	}
}
