package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/worker"
)

// QuietOptions send nothing at intervals, if quiet.
func QuietOptions(quiet bool) (o worker.Options) {
	if quiet {
		o.Heartbeat, o.MemberTTL, o.Checkpoint = time.Hour, 12*time.Hour, time.Hour
	}
	return o
}

// ServeSettle starts a worker and a coordinator in this process, for a deployment that exists. stop ends both.
func ServeSettle(ctx context.Context, cfg bus.Config, programs settle.Programs, quiet bool) (stop func() error, err error) {
	return ServeObserved(ctx, cfg, programs, quiet, Observed{})
}

// ServeObserved is ServeSettle with metrics and traces.
func ServeObserved(ctx context.Context, cfg bus.Config, programs settle.Programs, quiet bool, by Observed) (stop func() error, err error) {
	id := fmt.Sprintf("w%d", time.Now().UnixNano())
	signals, flush, err := by.setup(ctx, id)
	if err != nil {
		return nil, err
	}
	cfg.Name = "worker/" + id
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w, err := settle.StartWorker(ctx, b, settle.WorkerConfig{ID: id, Programs: programs, Options: QuietOptions(quiet), Meter: signals.meter, Tracer: signals.tracer})
	if err != nil {
		return nil, err
	}
	end, err := coordinate(ctx, cfg, quiet, signals)
	if err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return func() error {
		end()
		err := w.Stop(context.Background())
		b.Close()
		return errors.Join(err, flush())
	}, nil
}

// Coordinate starts a coordinator in this process.
func Coordinate(ctx context.Context, cfg bus.Config, quiet bool) (stop func(), err error) {
	return coordinate(ctx, cfg, quiet, signals{})
}

func coordinate(ctx context.Context, cfg bus.Config, quiet bool, of signals) (stop func(), err error) {
	cfg.Name = "coordinator/c1"
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	o := coordinator.Config{Meter: of.meter, Tracer: of.tracer}
	if quiet {
		o.Save = time.Hour
	}
	c := coordinator.New(b, o)
	c.Start()
	return func() { c.Stop(); b.Close() }, nil
}
