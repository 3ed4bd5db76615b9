package settle

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// observer records the spans and metrics of a client. Its zero value records none.
type observer struct {
	tracer trace.Tracer
	// sends and calls are nil without a meter.
	sends, calls *meters.Distribution
}

func newObserver(cfg *ClientConfig) (o observer, err error) {
	o.tracer = cfg.Tracer
	if cfg.Meter == nil {
		return o, nil
	}
	set := meters.NewSet(cfg.Meter, meters.Client)
	o.sends, o.calls = set.Distribution(meters.ClientSendDuration), set.Distribution(meters.ClientCallDuration)
	return o, set.Err()
}

// Results of a send, as values of the metric.
const (
	sendStored    = "stored"
	sendDuplicate = "duplicate"
	sendFailed    = "failed"
)

// Options of all spans of a kind. The rest of their attributes is of those that are recorded.
var (
	sendSpans = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		telemetry.System.String("nats"), telemetry.Operation.String("send"), telemetry.Type.String("send"), telemetry.Template.String(telemetry.SendTemplate))}
	callSpans    = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(telemetry.Operation.String("call"))}
	receiveSpans = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		telemetry.System.String("nats"), telemetry.Operation.String("receive"), telemetry.Type.String("receive"), telemetry.Template.String(telemetry.LogTemplate))}
)

// send starts the span of a send and returns the trace context that travels with the event.
func (o *observer) send(ctx context.Context, m *model.Message) (model.Trace, func(model.SendResult, error)) {
	began := time.Time{}
	if o.sends != nil {
		began = time.Now()
	}
	if o.tracer == nil {
		return telemetry.Of(ctx), func(r model.SendResult, err error) { o.sent(ctx, began, r, err) }
	}
	ctx, span := o.tracer.Start(ctx, "send "+m.Stream, sendSpans...)
	if span.IsRecording() {
		span.SetAttributes(telemetry.Space.String(m.Space), telemetry.Stream.String(m.Stream), telemetry.MessageID.String(m.ID))
	}
	return telemetry.Of(ctx), func(r model.SendResult, err error) {
		telemetry.End(span, err)
		o.sent(ctx, began, r, err)
	}
}

// sent measures a send.
func (o *observer) sent(ctx context.Context, began time.Time, r model.SendResult, err error) {
	if o.sends == nil {
		return
	}
	result := sendStored
	switch {
	case err != nil:
		result = sendFailed
	case r.Duplicate:
		result = sendDuplicate
	}
	o.sends.Record(ctx, result, time.Since(began).Seconds())
}

// call starts the span of a call, from the send to the receipt. end records how it has ended.
func (o *observer) call(ctx context.Context, e *Outgoing) (_ context.Context, end func(*model.Receipt, error)) {
	if o.tracer == nil && o.calls == nil {
		return ctx, func(*model.Receipt, error) {}
	}
	began := time.Now()
	span := trace.SpanFromContext(context.Background())
	if o.tracer != nil {
		if ctx, span = o.tracer.Start(ctx, "call "+e.Stream, callSpans...); span.IsRecording() {
			span.SetAttributes(telemetry.Space.String(e.Space), telemetry.Stream.String(e.Stream))
		}
	}
	return ctx, func(rc *model.Receipt, err error) {
		if rc != nil {
			span.SetAttributes(telemetry.Outcome.String(string(rc.Outcome)))
			o.calls.Record(ctx, string(rc.Outcome), time.Since(began).Seconds())
		}
		telemetry.End(span, err)
	}
}

// receive starts the span of a wait for a receipt. end links it to the handling that made the receipt.
func (o *observer) receive(ctx context.Context, space string, key receipts.Key) (end func(*model.Tx, error)) {
	if o.tracer == nil {
		return func(*model.Tx, error) {}
	}
	_, span := o.tracer.Start(ctx, "receive "+key.Stream, receiveSpans...)
	if !span.IsRecording() {
		return func(*model.Tx, error) {}
	}
	span.SetAttributes(telemetry.Space.String(space), telemetry.Stream.String(key.Stream), telemetry.MessageID.String(key.ID))
	return func(tx *model.Tx, err error) {
		if tx != nil {
			if l, ok := telemetry.Link(tx.Trace); ok {
				span.AddLink(l)
			}
			span.SetAttributes(telemetry.Outcome.String(string(tx.Receipt.Outcome)))
		}
		telemetry.End(span, err)
	}
}

// ask starts the span of a read. A watch has one until its first value: it has no end of its own.
func (o *observer) ask(ctx context.Context, what, space, doc string) (context.Context, func(error)) {
	if o.tracer == nil {
		return ctx, func(error) {}
	}
	ctx, span := o.tracer.Start(ctx, what, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(telemetry.Operation.String(what), telemetry.Space.String(space), telemetry.Document.String(doc)))
	return ctx, func(err error) { telemetry.End(span, err) }
}
