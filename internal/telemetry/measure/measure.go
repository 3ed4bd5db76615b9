// Package measure collects the metrics of Settle's programs, and exports them as the flags and the standard OTEL_*
// variables say. It links the exporters of metrics, so only the programs of a fleet import it.
package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/export"
)

// Metrics are the metrics of a process.
type Metrics struct {
	// Meter makes instruments; nil if metrics are not wanted.
	Meter metric.Meter
	// Addr is where Scrape is to be served, "" if nowhere.
	Addr string
	// Scrape answers Prometheus, with the metrics of the Go runtime and of the process, too.
	Scrape http.Handler
	// Flush exports what is left, and ends.
	Flush func(context.Context) error
}

// Setup returns the metrics that addr and the standard OTEL_* variables ask for. Prometheus is served at addr, or
// if OTEL_METRICS_EXPORTER names prometheus, at OTEL_EXPORTER_PROMETHEUS_HOST and _PORT (localhost:9464); metrics are
// sent by OTLP if it names otlp, or OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is set.
func Setup(ctx context.Context, service, id, addr string) (*Metrics, error) {
	m := &Metrics{Addr: addr, Flush: func(context.Context) error { return nil }}
	names, err := exporters()
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, "prometheus") && addr == "" {
		m.Addr = net.JoinHostPort(cmp.Or(os.Getenv("OTEL_EXPORTER_PROMETHEUS_HOST"), "localhost"), cmp.Or(os.Getenv("OTEL_EXPORTER_PROMETHEUS_PORT"), "9464"))
	}
	if len(names) == 0 && m.Addr == "" {
		return m, nil
	}
	res, err := export.Resource(ctx, service, id)
	if err != nil {
		return nil, err
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(res)}
	if m.Addr != "" {
		reader, err := m.prometheus()
		if err != nil {
			return nil, fmt.Errorf("set up metrics for Prometheus: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	if slices.Contains(names, "otlp") {
		exporter, err := newOTLP(ctx)
		if err != nil {
			return nil, fmt.Errorf("set up metrics from the OTEL_* variables: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	p := sdkmetric.NewMeterProvider(options...)
	m.Meter, m.Flush = p.Meter(telemetry.Scope, metric.WithInstrumentationVersion(telemetry.Version())), p.Shutdown
	return m, nil
}

// prometheus sets Scrape, and returns what collects for it.
func (m *Metrics) prometheus() (sdkmetric.Reader, error) {
	r := prometheus.NewRegistry()
	m.Scrape = promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true}) // the format that has exemplars
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(r), otelprometheus.WithoutScopeInfo())
	return reader, errors.Join(err, r.Register(collectors.NewGoCollector()), r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
}

// exporters returns the exporters that the environment names.
func exporters() ([]string, error) {
	if !export.Wanted("METRICS") {
		return nil, nil
	}
	names := strings.Split(cmp.Or(os.Getenv("OTEL_METRICS_EXPORTER"), "otlp"), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if names[i] != "otlp" && names[i] != "prometheus" {
			return nil, fmt.Errorf("OTEL_METRICS_EXPORTER has %q: use otlp, prometheus or none", names[i])
		}
	}
	return names, nil
}

// newOTLP returns an exporter that speaks OTLP in the protocol that the environment names.
func newOTLP(ctx context.Context) (sdkmetric.Exporter, error) {
	switch protocol := export.Protocol("METRICS"); protocol {
	case "http/protobuf":
		return otlpmetrichttp.New(ctx)
	case "grpc":
		return otlpmetricgrpc.New(ctx)
	default:
		return nil, fmt.Errorf("the OTLP protocol is %q: use http/protobuf or grpc", protocol)
	}
}
