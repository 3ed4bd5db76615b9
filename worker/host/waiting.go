package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// retry runs f until ctx ends or the bus is stopped, and restarts it if it fails. of and about name the
// subject of f in the log.
func retry(ctx context.Context, cfg *Config, what, of string, about []any, f func(ctx context.Context) error) {
	for ctx.Err() == nil {
		err := f(ctx)
		if ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		wait := 200 * time.Millisecond
		switch {
		case errors.Is(err, model.ErrRewound): // the bus has reported a rewind already
		case model.LossOf(err) != nil: // see losses
			wait = lossPause
		default:
			if errors.Is(err, model.ErrNoStream) { // an operator must restore it
				wait = lossPause
			}
			cfg.faults.Warn(what, of, slices.Concat([]any{"worker", cfg.ID}, about, []any{"error", err})...)
		}
		_ = pause.For(ctx, wait)
	}
}

// wait waits for a group, until ctx ends.
func wait(ctx context.Context, g *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }() // ends with the group
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitWithin waits for done, for at most d and until ctx ends.
func waitWithin(ctx context.Context, done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
}

// ticked reports whether a ticker has a tick, and takes it.
func ticked(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// collected holds the errors of several goroutines, some of which may still run.
type collected struct {
	mu   sync.Mutex
	list []error
}

func (c *collected) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, err)
}

func (c *collected) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.list...)
}

// allAre reports whether each of the errors joined in err is one of targets.
func allAre(err error, targets ...error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !allAre(e, targets...) })
}
