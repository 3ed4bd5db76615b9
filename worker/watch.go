package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// LeaseTTL is how long an observation outlives its observer; observers renew
// theirs three times in that time. It bounds for how long computations go on for
// a client that vanished.
const LeaseTTL = 6 * time.Second

// Watch is one observation of a document, from anywhere: demand, and the values.
//
// Demand is a lease that is renewed, and given anew whenever a partition gets a
// new owner and calls the roll. Values come from the log: confirmed, in order, and
// whether or not anybody owns the space at the moment.
type Watch struct {
	Bus        Bus
	Space, Doc string
	// Watcher tells this observation from others of the same document.
	Watcher string
	Logger  *slog.Logger
}

// Run delivers the document's confirmed value and then each change, with the log
// sequence of the commit that made it (0 if there was none), until ctx ends.
func (w *Watch) Run(ctx context.Context, deliver func(v model.Value, revision uint64)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.keepLease(ctx) })
	g.Go(func() error { return w.answerRollCalls(ctx) })
	g.Go(func() error { return Follow(ctx, w.Bus, w.Space, w.Doc, deliver) })
	return g.Wait()
}

func (w *Watch) lease(ttl time.Duration) error {
	return w.Bus.Observe(model.Lease{Space: w.Space, Doc: w.Doc, Watcher: w.Watcher, TTL: ttl})
}

// keepLease renews the lease, and ends it with ctx.
func (w *Watch) keepLease(ctx context.Context) error {
	t := time.NewTicker(LeaseTTL / 3)
	defer t.Stop()
	defer func() { _ = w.lease(0) }() // best effort: it would run out by itself
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
	if err := w.lease(LeaseTTL); err != nil && w.Logger != nil {
		w.Logger.Warn("renew lease", "space", w.Space, "document", w.Doc, "error", err)
	}
}

func (w *Watch) answerRollCalls(ctx context.Context) error {
	mine := model.PartitionOf(w.Space, w.Bus.Partitions())
	return w.Bus.FollowRollCalls(ctx, func(partition int) {
		if partition == mine {
			_ = w.lease(LeaseTTL) // best effort: renewal comes anyway
		}
	})
}

// Follow delivers the confirmed value of a document and then each change, without
// creating any demand for it.
func Follow(ctx context.Context, bus Bus, space, doc string, deliver func(v model.Value, revision uint64)) error {
	d, err := Read(ctx, bus, space, doc)
	if err != nil {
		return err
	}
	deliver(d.Value, d.Seq)
	var broken error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = bus.FollowSpace(ctx, space, d.Read, func(e model.LogEntry) {
		if broken != nil {
			return // what follows would be a value that the document never had
		}
		changed, err := d.Apply(e)
		if err != nil {
			broken = err
			cancel()
		}
		if changed {
			deliver(d.Value, d.Seq)
		}
	})
	if broken != nil {
		return broken
	}
	return err
}

// Read returns a document as the log has it now, as far as it can be seen.
func Read(ctx context.Context, bus Bus, space, doc string) (*replica.Document, error) {
	head, err := bus.Head(ctx, space) // of the leader: a replica that is behind is asked again
	if err != nil {
		return nil, fmt.Errorf("read %s of space %s: %w", doc, space, err)
	}
	st, err := bus.LoadState(ctx, space)
	if err != nil {
		return nil, fmt.Errorf("read %s of space %s: %w", doc, space, err)
	}
	d, err := replica.LoadDocument(doc, st)
	if err != nil {
		return nil, err
	}
	for {
		entries, err := bus.ReadLog(ctx, space, d.Read, readPage)
		if err != nil {
			return nil, fmt.Errorf("read %s of space %s: %w", doc, space, err)
		}
		for _, e := range entries {
			if _, err := d.Apply(e); err != nil {
				return nil, err
			}
		}
		switch {
		case len(entries) == readPage:
		case d.Read >= head:
			return d, nil
		case len(entries) == 0:
			_ = pause.For(ctx, time.Millisecond)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}
