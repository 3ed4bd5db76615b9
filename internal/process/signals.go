package process

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/internal/telemetry/export"
	"github.com/settlehq/settle/internal/telemetry/measure"
	"github.com/settlehq/settle/internal/telemetry/scrape"
)

// flushTimeout is for exporting the last spans and metrics, which must not delay the exit for long.
const flushTimeout = 3 * time.Second

// signals are what a process exports, and its server for metrics and health.
type signals struct {
	scrape *scrape.Server                // nil if metrics are not served
	flush  []func(context.Context) error // from the last to the first: the log is left to the end
}

// observe sets the logger, the tracer and the meter of a process, from the flags and the OTEL_* variables, and serves its metrics.
func (f Flags) observe(ctx context.Context, role string, p *Process, log io.Writer) (*signals, error) {
	s := &signals{}
	lines, flushLog, err := export.Logs(ctx, export.Logging{Service: "settle-" + role, ID: p.ID, Local: f.logTo(log), Level: f.level(), Text: optionflags.Text})
	if err != nil {
		return nil, err
	}
	p.Logger = slog.New(lines)
	s.flush = append(s.flush, func(ctx context.Context) error { flushLog(ctx); return nil })
	tracer, flush, err := export.Setup(ctx, "settle-"+role)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.flush = append(s.flush, flush)
	m, err := measure.Setup(ctx, "settle-"+role, p.ID, f.Metrics)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.flush = append(s.flush, m.Flush)
	p.Tracer, p.Meter = tracer, m.Meter
	if m.Addr == "" {
		if f.Pprof {
			return nil, errors.Join(errors.New("--pprof serves profiles at the address of the metrics; set --metrics, too"), s.close())
		}
		return s, nil
	}
	if s.scrape, err = scrape.Listen(ctx, scrape.Config{Addr: m.Addr, Metrics: m.Scrape, Profiles: f.Pprof, Logger: p.Logger}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	p.Logger.Info("serving metrics", "role", role, "id", p.ID, "address", "http://"+s.scrape.Addr()+"/metrics")
	return s, nil
}

// ready sets what /readyz answers: an error is the reason why the process does not serve.
func (s *signals) ready(why func() error) {
	if s.scrape != nil {
		s.scrape.Ready(why)
	}
}

// close exports what is left.
func (s *signals) close() error {
	if s.scrape != nil {
		s.scrape.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var errs []error
	for _, flush := range slices.Backward(s.flush) {
		errs = append(errs, flush(ctx))
	}
	return errors.Join(errs...)
}
