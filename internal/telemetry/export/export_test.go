package export

import (
	"strings"
	"testing"
)

// Not parallel, because environment variables belong to the process.
func TestSetup_ReadsTheStandardVariables(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		tracing bool
		err     string
	}{
		{name: "nothing is set"},
		{name: "an endpoint", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, tracing: true},
		{name: "an endpoint of traces", env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, tracing: true},
		{name: "OTLP", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, tracing: true},
		{name: "gRPC", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, tracing: true},
		{name: "HTTP for traces, gRPC for the rest", env: map[string]string{
			"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		}, tracing: true},
		{name: "the console", env: map[string]string{"OTEL_TRACES_EXPORTER": "console"}, tracing: true},
		{name: "none", env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{name: "disabled", env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}},
		{name: "an exporter that does not exist", env: map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"}, err: "use otlp, console or none"},
		{name: "a protocol that does not exist", env: map[string]string{
			"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		}, err: "use http/protobuf or grpc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range []string{
				"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
				"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
			} {
				t.Setenv(v, c.env[v])
			}
			tracer, flush, err := Setup(t.Context(), "settle-test")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, and should contain %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (tracer != nil) != c.tracing {
				t.Errorf("tracing is %v, and should be %v", tracer != nil, c.tracing)
			}
			if err := flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
