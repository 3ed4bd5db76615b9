package console

import (
	"context"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/program"
)

// shared has what several pages read of the deployment. Each is read at most once at a time.
type shared struct {
	bus    Bus
	fleet  cached[*fleet.Fleet]
	spaces cached[[]string]
	dead   cached[history.DeadCounts]
	rules  cached[*program.Table]
	// took receives each reading of the fleet.
	took func(*fleet.Fleet)
}

func newShared(bus Bus) *shared {
	return &shared{bus: bus, fleet: newCached[*fleet.Fleet](), spaces: newCached[[]string](), dead: newCached[history.DeadCounts](), rules: newCached[*program.Table]()}
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
