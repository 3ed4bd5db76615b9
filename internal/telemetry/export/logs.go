package export

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/telemetry"
)

// Logging describes the log of a process.
type Logging struct {
	// Service and ID describe the process; ID is "" if it has none.
	Service, ID string
	// Local writes the lines to where the process is, such as standard error.
	Local slog.Handler
	// Level is the lowest level that is sent.
	Level slog.Leveler
	// Text returns the text of an error; Error by default.
	Text func(error) string
}

// Logs returns a handler that writes the lines of a log to l.Local, with the ids of their traces, and sends them by OTLP if the standard
// OTEL_* variables ask for it, and a function that sends what is left. Of warnings and errors with the same message, both get as many as
// faultlog.Limit lets through. A line is sent a second later, and dropped if the collector does not keep up: logging never waits for it.
//
// What OpenTelemetry cannot export, spans and metrics too, is reported to l.Local alone, as a lasting fault.
func Logs(ctx context.Context, l Logging) (slog.Handler, func(context.Context), error) {
	local := telemetry.WithTraces(l.Local)
	faults := faultlog.New(slog.New(local))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { faults.Warn("telemetry not exported", "", "error", err) }))
	exporter, err := newLogExporter(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("set up logs from the OTEL_* variables: %w", err)
	}
	if exporter == nil {
		return faultlog.Limit(local), func(context.Context) {}, nil
	}
	res, err := Resource(ctx, l.Service, l.ID)
	if err != nil {
		return nil, nil, err
	}
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(res))
	to := otelslog.NewHandler(telemetry.Scope, otelslog.WithLoggerProvider(p), otelslog.WithVersion(telemetry.Version()))
	text := l.Text
	if text == nil {
		text = error.Error
	}
	flush := func(ctx context.Context) {
		if err := p.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}
	return faultlog.Limit(slog.NewMultiHandler(local, sent{to, l.Level, text})), flush, nil
}

// newLogExporter returns what OTEL_LOGS_EXPORTER and the variables of the protocol name, nil if that is nothing. Lines that are to go to the
// console do so in any case.
func newLogExporter(ctx context.Context) (sdklog.Exporter, error) {
	if !Wanted("LOGS") {
		return nil, nil
	}
	switch name := cmp.Or(os.Getenv("OTEL_LOGS_EXPORTER"), "otlp"); name {
	case "otlp":
	case "console":
		return nil, nil
	default:
		return nil, fmt.Errorf("OTEL_LOGS_EXPORTER is %q: use otlp, console or none", name)
	}
	switch protocol := Protocol("LOGS"); protocol {
	case "http/protobuf":
		return otlploghttp.New(ctx)
	case "grpc":
		return otlploggrpc.New(ctx)
	default:
		return nil, fmt.Errorf("the OTLP protocol is %q: use http/protobuf or grpc", protocol)
	}
}

// sent sends the lines from a level up. Errors are texts under their key, as in the other forms of the log: OpenTelemetry would make
// attributes of an exception of them.
type sent struct {
	next  slog.Handler
	level slog.Leveler
	text  func(error) string
}

// Enabled reports whether a level is sent.
func (h sent) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.next.Enabled(ctx, l)
}

// Handle sends a line.
func (h sent) Handle(ctx context.Context, r slog.Record) error {
	plain := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		plain.AddAttrs(h.plain(a))
		return true
	})
	return h.next.Handle(ctx, plain)
}

// WithAttrs adds attributes to every line.
func (h sent) WithAttrs(attrs []slog.Attr) slog.Handler {
	plain := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		plain[i] = h.plain(a)
	}
	h.next = h.next.WithAttrs(plain)
	return h
}

// WithGroup is that of the next handler.
func (h sent) WithGroup(name string) slog.Handler {
	h.next = h.next.WithGroup(name)
	return h
}

func (h sent) plain(a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is {
		a.Value = slog.StringValue(h.text(err))
	}
	return a
}
