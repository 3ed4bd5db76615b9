package measure

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/telemetry/meters"
)

// Not parallel, because environment variables belong to the process.
func TestSetup_ReadsTheFlagAndTheStandardVariables(t *testing.T) {
	const at = "127.0.0.1:1"
	for _, c := range []struct {
		name, flag string
		env        map[string]string
		addr       string
		off        bool
		err        string
	}{
		{name: "nothing is set", off: true},
		{name: "the flag", flag: at, addr: at},
		{name: "an endpoint", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{name: "an endpoint of metrics", env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1"}},
		{name: "an endpoint of traces", env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, off: true},
		{name: "Prometheus", env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, addr: "localhost:9464"},
		{name: "Prometheus elsewhere", env: map[string]string{
			"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1", "OTEL_EXPORTER_PROMETHEUS_PORT": "1",
		}, addr: at},
		{name: "both", env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus, otlp"}, addr: "localhost:9464"},
		{name: "the flag before the variable", flag: at, env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, addr: at},
		{name: "gRPC", env: map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"}},
		{name: "none", env: map[string]string{"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, off: true},
		{name: "none, and the flag", flag: at, env: map[string]string{"OTEL_METRICS_EXPORTER": "none"}, addr: at},
		{name: "disabled", env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_METRICS_EXPORTER": "otlp"}, off: true},
		{name: "an exporter that does not exist", env: map[string]string{"OTEL_METRICS_EXPORTER": "statsd"}, err: "use otlp, prometheus or none"},
		{name: "a protocol that does not exist", env: map[string]string{
			"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		}, err: "use http/protobuf or grpc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range []string{
				"OTEL_SDK_DISABLED", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
				"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_PROMETHEUS_HOST", "OTEL_EXPORTER_PROMETHEUS_PORT",
			} {
				t.Setenv(v, c.env[v])
			}
			m, err := Setup(t.Context(), "settle-test", "p1", c.flag)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, and should contain %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Addr != c.addr || (m.Meter == nil) != c.off || (m.Scrape == nil) != (c.addr == "") {
				t.Errorf("%+v, and should be served at %q, off %v", m, c.addr, c.off)
			}
		})
	}
}

// Metrics are sent by OTLP, at the latest when the process ends.
func TestSetup_MetricsAreSentByOTLP(t *testing.T) {
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + " " + string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	m, err := Setup(t.Context(), "settle-test", "p1", "")
	if err != nil {
		t.Fatal(err)
	}
	set := meters.NewSet(m.Meter, meters.Coordinator)
	set.Observe(func(put meters.Put) { put(meters.CoordinatorReleases, "", 7) })
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case sent := <-got:
		if !strings.HasPrefix(sent, "/v1/metrics ") || !strings.Contains(sent, meters.CoordinatorReleases) || !strings.Contains(sent, "p1") {
			t.Errorf("sent: %q", sent)
		}
	default:
		t.Error("nothing was sent")
	}
}
