package history

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Lease is demand for a document, from any process. It is renewed three times per model.LeaseTTL, and
// whenever a new owner of the partition calls the roll.
type Lease struct {
	Bus        port.Client
	Space, Doc string
	// Watcher distinguishes this observation from others of the same document.
	Watcher string
	Logger  *slog.Logger

	faults *faultlog.Log // created at the first fault, logs to Logger
}

// Hold keeps the lease until ctx ends, and then cancels it.
func (l *Lease) Hold(ctx context.Context) error {
	defer func() { _ = l.observe(0) }() // best effort: it would expire by itself
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.keep(ctx) })
	g.Go(func() error { return l.AnswerRollCalls(ctx) })
	return g.Wait()
}

func (l *Lease) observe(ttl time.Duration) error {
	return l.Bus.Observe(model.Lease{Space: l.Space, Doc: l.Doc, Watcher: l.Watcher, TTL: ttl})
}

func (l *Lease) keep(ctx context.Context) error {
	t := time.NewTicker(model.LeaseTTL / 3)
	defer t.Stop()
	for {
		l.Renew()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

// Renew extends the lease by model.LeaseTTL. An error is logged.
func (l *Lease) Renew() {
	err := l.observe(model.LeaseTTL)
	if err == nil || l.Logger == nil {
		return
	}
	if l.faults == nil {
		l.faults = faultlog.New(l.Logger)
	}
	l.faults.Warn("renew lease", "", "space", l.Space, "document", l.Doc, "error", err)
}

// AnswerRollCalls renews the lease whenever a new owner of the partition asks for leases, until ctx
// ends.
func (l *Lease) AnswerRollCalls(ctx context.Context) error {
	mine := model.PartitionOf(l.Space, l.Bus.Partitions())
	return l.Bus.FollowRollCalls(ctx, func(partition int) {
		if partition == mine {
			_ = l.observe(model.LeaseTTL) // best effort: renewal comes anyway
		}
	})
}
