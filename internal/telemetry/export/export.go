// Package export sets up the OpenTelemetry exporters of Settle's commands from the standard
// OTEL_* variables. It links every exporter, so only commands import it.
package export

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
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
	exporter, err := autoexport.NewSpanExporter(ctx)
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
