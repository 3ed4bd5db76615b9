// Package export sets up the OpenTelemetry exporters of Settle's commands from the standard
// OTEL_* variables. It links the exporters of spans and of lines of the log, gRPC with them, so only commands import it.
// It does not use autoexport, which links those of metrics as well; they are in internal/telemetry/measure.
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
// function that flushes it. The tracer is a telemetry.Head if the sampler is a standard one. It is nil, and costs nothing, unless one of
// OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT and
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
func Setup(ctx context.Context, service string) (trace.Tracer, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	if !Wanted("TRACES") {
		return nil, none, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, none, fmt.Errorf("set up tracing from the OTEL_* variables: %w", err)
	}
	res, err := Resource(ctx, service, "")
	if err != nil {
		return nil, none, err
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	return withHead(p.Tracer(telemetry.Scope, trace.WithInstrumentationVersion(telemetry.Version()))), p.Shutdown, nil
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
	switch protocol := Protocol("TRACES"); protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("the OTLP protocol is %q: use http/protobuf or grpc", protocol)
	}
}

// Protocol returns the OTLP protocol of a signal.
func Protocol(signal string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
}

// Resource returns the resource of a service. id is that of the process among those of the service, "" if it is not known.
func Resource(ctx context.Context, service, id string) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{attribute.String("service.name", service)}
	if id != "" {
		attributes = append(attributes, attribute.String("service.instance.id", id))
	}
	res, err := resource.New(ctx, resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the process to OpenTelemetry: %w", err)
	}
	return res, nil
}

// Wanted reports whether the environment asks for a signal: TRACES, METRICS or LOGS.
func Wanted(signal string) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return false
	}
	for _, name := range []string{"OTEL_" + signal + "_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}
