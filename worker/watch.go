package worker

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// LeaseTTL is how long an observation outlives its observer; observers renew
// theirs three times in that time. It limits how long computations continue for
// a client that has vanished.
const LeaseTTL = 6 * time.Second

// Watch is one observation of a document, from any process: demand, and the values.
//
// Demand is a lease that is renewed, and repeated whenever a partition gets a
// new owner that calls the roll. Values come from the log: confirmed, in order, and
// independent of whether the space has an owner at the moment.
type Watch struct {
	Bus        port.Client
	Space, Doc string
	// Watcher distinguishes this observation from others of the same document.
	Watcher string
	Logger  *slog.Logger

	faults *faultlog.Log // created at the first fault, logs to Logger
}

// Run delivers the document's confirmed value and then each change, with the log
// sequence of the commit that made it (0 if there was none), until ctx ends.
func (w *Watch) Run(ctx context.Context, deliver func(v model.Value, revision uint64)) error {
	return w.Changes(ctx, func(c history.Change) { deliver(c.Value, c.Revision) })
}

// Changes is like Run, and also passes the value that each change has replaced.
func (w *Watch) Changes(ctx context.Context, deliver func(history.Change)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.demand(ctx) })
	g.Go(func() error { return history.Changes(ctx, w.Bus, w.Space, w.Doc, deliver) })
	return g.Wait()
}

func (w *Watch) lease(ttl time.Duration) error {
	return w.Bus.Observe(model.Lease{Space: w.Space, Doc: w.Doc, Watcher: w.Watcher, TTL: ttl})
}

// demand holds the lease, and ends it with ctx.
func (w *Watch) demand(ctx context.Context) error {
	defer func() { _ = w.lease(0) }() // best effort: it would expire by itself
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.keepLease(ctx) })
	g.Go(func() error { return w.answerRollCalls(ctx) })
	return g.Wait()
}

func (w *Watch) keepLease(ctx context.Context) error {
	t := time.NewTicker(LeaseTTL / 3)
	defer t.Stop()
	for {
		w.renew()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

func (w *Watch) renew() {
	err := w.lease(LeaseTTL)
	if err == nil || w.Logger == nil {
		return
	}
	if w.faults == nil {
		w.faults = faultlog.New(w.Logger)
	}
	w.faults.Warn("renew lease", "", "space", w.Space, "document", w.Doc, "error", err)
}

func (w *Watch) answerRollCalls(ctx context.Context) error {
	mine := model.PartitionOf(w.Space, w.Bus.Partitions())
	return w.Bus.FollowRollCalls(ctx, func(number int) {
		if number == mine {
			_ = w.lease(LeaseTTL) // best effort: renewal comes anyway
		}
	})
}
