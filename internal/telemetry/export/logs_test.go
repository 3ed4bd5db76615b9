package export

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Not parallel, because environment variables belong to the process.
func TestLogs_ReadsTheStandardVariables(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		sent bool
		err  string
	}{
		{name: "nothing is set"},
		{name: "an endpoint", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, sent: true},
		{name: "an endpoint of logs", env: map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://127.0.0.1:1"}, sent: true},
		{name: "an endpoint of traces", env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}},
		{name: "OTLP", env: map[string]string{"OTEL_LOGS_EXPORTER": "otlp"}, sent: true},
		{name: "gRPC", env: map[string]string{"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "grpc"}, sent: true},
		{name: "the console, where lines are anyway", env: map[string]string{"OTEL_LOGS_EXPORTER": "console"}},
		{name: "none", env: map[string]string{"OTEL_LOGS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{name: "disabled", env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_LOGS_EXPORTER": "otlp"}},
		{name: "an exporter that does not exist", env: map[string]string{"OTEL_LOGS_EXPORTER": "syslog"}, err: "use otlp, console or none"},
		{name: "a protocol that does not exist", env: map[string]string{
			"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		}, err: "use http/protobuf or grpc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			setenv(t, c.env)
			var out bytes.Buffer
			local := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})
			h, flush, err := Logs(t.Context(), Logging{Service: "settle-test", Local: local, Level: slog.LevelInfo})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, and should contain %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			defer flush(gone) // there is no collector
			if h.Enabled(t.Context(), slog.LevelInfo) != c.sent || h.Enabled(t.Context(), slog.LevelDebug) {
				t.Errorf("lines are sent: %v, and should be: %v", !c.sent, c.sent)
			}
			slog.New(h).Error("one")
			if n := strings.Count(out.String(), "msg=one"); n != 1 {
				t.Errorf("%d lines are written where the process is:\n%s", n, &out)
			}
		})
	}
}

// setenv sets the variables that choose what is exported, those that env does not have to none.
func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, v := range []string{
		"OTEL_SDK_DISABLED", "OTEL_LOGS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
	} {
		t.Setenv(v, env[v])
	}
}

// A collector that takes no lines is one line of the log, however often it refuses, and keeps nothing from ending.
func TestLogs_ACollectorThatRefusesIsOneLine(t *testing.T) {
	refused := make(chan struct{}, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refused <- struct{}{}
		http.NotFound(w, nil)
	}))
	defer collector.Close()
	setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": collector.URL})
	t.Setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "1")
	var out bytes.Buffer
	h, flush, err := Logs(t.Context(), Logging{Service: "settle-test", Local: slog.NewTextHandler(&out, nil), Level: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	const lines = 5
	for range lines {
		slog.New(h).Info("one")
	}
	for range lines {
		<-refused
	}
	last, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flush(last)
	if n := strings.Count(out.String(), `level=WARN msg="telemetry not exported"`); n != 1 {
		t.Errorf("%d lines say it:\n%s", n, &out)
	}
}
