package harness

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry/export"
	"github.com/settlehq/settle/internal/telemetry/measure"
)

// Observed is how a worker and its coordinator are observed. The zero value is: not at all.
type Observed struct {
	// Metrics are collected, and scraped by Prometheus every 15 s.
	Metrics bool `json:"metrics,omitzero"`
	// Traced is the part of all traces that is recorded, such as "0.01", and sent by OTLP to Collector; "" records none.
	Traced    string `json:"traced,omitempty"`
	Collector string `json:"collector,omitempty"`
}

// scrapes is how often metrics are scraped, as Prometheus does by default.
const scrapes = 15 * time.Second

// signals are what observes a worker. Its zero value observes nothing.
type signals struct {
	meter  metric.Meter
	tracer trace.Tracer
}

// setup sets up what a worker of a fleet sets up, from the same variables. flush ends it.
func (o Observed) setup(ctx context.Context, id string) (s signals, flush func() error, err error) {
	var ends []func(context.Context) error
	flush = func() (err error) {
		for _, end := range ends {
			err = errors.Join(err, end(context.Background()))
		}
		return err
	}
	if o.Metrics {
		m, err := measure.Setup(ctx, "settle-worker", id, "localhost:0")
		if err != nil {
			return s, nil, err
		}
		s.meter, ends = m.Meter, append(ends, scrape(m), m.Flush)
	}
	if o.Traced == "" {
		return s, flush, nil
	}
	for name, value := range map[string]string{ // any order: each is set once
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": o.Collector, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": o.Traced,
	} {
		if err := os.Setenv(name, value); err != nil {
			return s, nil, err
		}
	}
	tracer, end, err := export.Setup(ctx, "settle-worker")
	if err != nil {
		return s, nil, err
	}
	s.tracer, ends = tracer, append(ends, end)
	return s, flush, nil
}

// scrape asks for the metrics at intervals, until stop is called.
func scrape(m *measure.Metrics) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		for tick := time.NewTicker(scrapes); ; {
			select {
			case <-tick.C:
				m.Scrape.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
	return func(context.Context) error {
		cancel()
		<-done
		return nil
	}
}
