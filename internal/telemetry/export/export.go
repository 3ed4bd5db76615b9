// Package export sets up the OpenTelemetry exporter of Settle's commands from the standard
// OTEL_* variables. It links the exporters of spans, gRPC with them, so only commands import it.
// It does not use autoexport, which links those of metrics and logs as well: 83 packages more.
package export

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
)

// Setup returns the tracer that the standard OTEL_* variables ask for, and a
// function that flushes it. The tracer is nil, and costs nothing, unless one of
// OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT and
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
func Setup(ctx context.Context, service string) (trace.Tracer, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	if !wanted() {
		return nil, none, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, none, fmt.Errorf("set up tracing from the OTEL_* variables: %w", err)
	}
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv())
	if err != nil {
		return nil, none, fmt.Errorf("set up tracing: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	return p.Tracer(telemetry.Scope), p.Shutdown, nil
}

// newExporter returns the exporter that OTEL_TRACES_EXPORTER and the variables of the protocol name.
// The exporters read the other variables themselves.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch name := cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp"); name {
	case "otlp":
		return newOTLP(ctx)
	case "console":
		return stdouttrace.New()
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: use otlp, console or none", name)
	}
}

// newOTLP returns an exporter that speaks OTLP in the protocol that the environment names.
func newOTLP(ctx context.Context) (sdktrace.SpanExporter, error) {
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	switch protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("the OTLP protocol is %q: use http/protobuf or grpc", protocol)
	}
}

// wanted reports whether the environment asks for traces.
func wanted() bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}
