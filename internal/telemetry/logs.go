package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Keys of log records, besides those of docs/logs.md.
const (
	LogTraceID = "trace_id"
	LogSpanID  = "span_id"
)

// WithTraces returns a handler that adds the ids of the trace and of the span in a record's context.
func WithTraces(next slog.Handler) slog.Handler { return traceHandler{next} }

type traceHandler struct{ next slog.Handler }

// Enabled is that of the next handler.
func (h traceHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle adds the ids.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String(LogTraceID, of.TraceID().String()), slog.String(LogSpanID, of.SpanID().String()))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs is that of the next handler.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.next.WithAttrs(attrs)}
}

// WithGroup is that of the next handler.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.next.WithGroup(name)}
}
