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
	id := fmt.Sprintf("w%d", time.Now().UnixNano())
	cfg.Name = "worker/" + id
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w, err := settle.StartWorker(ctx, b, settle.WorkerConfig{ID: id, Programs: programs, Options: QuietOptions(quiet)})
	if err != nil {
		return nil, err
	}
	end, err := Coordinate(ctx, cfg, quiet)
	if err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return func() error {
		end()
		err := w.Stop(context.Background())
		b.Close()
		return err
	}, nil
}

// Coordinate starts a coordinator in this process.
func Coordinate(ctx context.Context, cfg bus.Config, quiet bool) (stop func(), err error) {
	cfg.Name = "coordinator/c1"
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var o coordinator.Config
	if quiet {
		o.Save = time.Hour
	}
	c := coordinator.New(b, o)
	c.Start()
	return func() { c.Stop(); b.Close() }, nil
}
