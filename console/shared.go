package console

import (
	"context"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/program"
)

// shared has what several pages read of the deployment. Each is read at most once at a time.
type shared struct {
	bus    Bus
	fleet  cached[*fleet.Fleet]
	stuck  cached[[]fleet.Stuck]
	spaces cached[[]string]
	dead   cached[history.DeadCounts]
	rules  cached[*program.Table]
	// took receives each reading of the fleet.
	took func(*fleet.Fleet)
}

func newShared(bus Bus) *shared {
	return &shared{bus: bus, fleet: newCached[*fleet.Fleet](), stuck: newCached[[]fleet.Stuck](), spaces: newCached[[]string](), dead: newCached[history.DeadCounts](), rules: newCached[*program.Table]()}
}

// Fleet returns the processes and partitions, not older than age.
func (s *shared) Fleet(ctx context.Context, age time.Duration) (*fleet.Fleet, error) {
	return s.fleet.get(ctx, age, func(ctx context.Context) (*fleet.Fleet, error) {
		f, err := fleet.Look(ctx, s.bus)
		if err == nil && s.took != nil {
			s.took(f)
		}
		return f, err
	})
}

// Stuck returns all spaces that are stuck, the oldest first: if f does not name all, as of a moment not longer ago than age.
func (s *shared) Stuck(ctx context.Context, f *fleet.Fleet, age time.Duration) []fleet.Stuck {
	if f.StuckCount <= len(f.Stuck) {
		return f.Stuck
	}
	all, err := s.stuck.get(ctx, age, func(ctx context.Context) ([]fleet.Stuck, error) { return f.AllStuck(ctx, s.bus), ctx.Err() })
	if err != nil || len(all) < len(f.Stuck) {
		return f.Stuck
	}
	return all
}

// Spaces returns the names of all spaces, sorted, not older than age. A partition that cannot be read lacks its spaces.
func (s *shared) Spaces(ctx context.Context, age time.Duration) ([]string, error) {
	return s.spaces.get(ctx, age, func(ctx context.Context) ([]string, error) {
		names, err := s.bus.Spaces(ctx)
		if len(names) > 0 {
			err = nil
		}
		return names, err
	})
}

// Dead counts the dead letters of all spaces.
func (s *shared) Dead(ctx context.Context, age time.Duration) (history.DeadCounts, error) {
	return s.dead.get(ctx, age, func(ctx context.Context) (history.DeadCounts, error) { return history.CountDead(ctx, s.bus, "") })
}

// Rules returns which program each space runs.
func (s *shared) Rules(ctx context.Context, age time.Duration) (*program.Table, error) {
	return s.rules.get(ctx, age, func(ctx context.Context) (*program.Table, error) { return program.Rules(ctx, s.bus) })
}

// atOnce calls functions that read side by side, and returns the error of the first of them that has one.
func atOnce(reads ...func() error) error {
	errs := make([]error, len(reads))
	var all sync.WaitGroup
	for i, read := range reads {
		all.Go(func() { errs[i] = read() }) // ends with the context of the reading
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readPatience bounds one reading.
const readPatience = 5 * time.Second

// cached is a value that is read on demand. A failed reading is not kept.
type cached[T any] struct {
	// busy has one place: the reader that reads.
	busy  chan struct{}
	value T
	at    time.Time
}

func newCached[T any]() cached[T] { return cached[T]{busy: make(chan struct{}, 1)} }

func (c *cached[T]) get(ctx context.Context, age time.Duration, read func(context.Context) (T, error)) (T, error) {
	select {
	case c.busy <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	defer func() { <-c.busy }()
	if !c.at.IsZero() && time.Since(c.at) < age {
		return c.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	at := time.Now()
	v, err := read(ctx)
	if err != nil {
		return v, err
	}
	c.value, c.at = v, at
	return v, nil
}
