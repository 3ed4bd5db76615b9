package live

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
)

// observer records the spans and metrics of a server. Its zero value records none.
type observer struct {
	tracer trace.Tracer
	reads  *meters.Distribution // nil without a meter
}

func newObserver(cfg *Config) observer {
	o := observer{tracer: cfg.Tracer}
	if cfg.Meter != nil {
		set := meters.NewSet(cfg.Meter, meters.Worker)
		o.reads = set.Distribution(meters.WorkerReadDuration)
		if err := set.Err(); err != nil {
			cfg.Logger.Error("register metrics", "error", err)
		}
	}
	return o
}

// get starts the span of a read. It belongs to the trace of ctx, else to that which the request names.
func (o *observer) get(ctx context.Context, q *Get) (context.Context, func(*Answer, error)) {
	if o.tracer == nil && o.reads == nil {
		return ctx, func(*Answer, error) {}
	}
	began := time.Now()
	ctx, span := o.start(ctx, "get", q.Space, q.Document, q.Trace)
	return ctx, func(a *Answer, err error) {
		result := meters.Current
		switch {
		case err != nil:
			result = meters.Failed
		case a.Stale != "":
			result = meters.Stale
		}
		o.reads.Record(ctx, result, time.Since(began).Seconds())
		telemetry.End(span, err)
	}
}

// watch starts the span of a watch, which ends with the first value: a watch has no end of its own.
func (o *observer) watch(ctx context.Context, q *Watch) (first func(error)) {
	if o.tracer == nil {
		return func(error) {}
	}
	_, span := o.start(ctx, "watch", q.Space, q.Document, "")
	var once sync.Once
	return func(err error) { once.Do(func() { telemetry.End(span, err) }) }
}

func (o *observer) start(ctx context.Context, what, space, doc, parent string) (context.Context, trace.Span) {
	if o.tracer == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = telemetry.Context(ctx, model.Trace{Parent: parent})
	}
	return o.tracer.Start(ctx, what, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		telemetry.Operation.String(what), telemetry.Space.String(space), telemetry.Document.String(doc)))
}
