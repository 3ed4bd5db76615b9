package events

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/bench/harness"
)

// chains is W2: a handler sends to the next entity, five hops.
type chains struct{}

func (chains) Name() string  { return "W2" }
func (chains) About() string { return "chains of five entities, each handler sending to the next" }
func (chains) Unit() string  { return "chains" }

func (chains) Cases(bool) []Case {
	return []Case{{Name: "100 in flight", Size: 100, Flights: 100}, {Name: "one at a time", Size: 100, Flights: 1}}
}

// hops is the length of a chain.
const hops = 5

func (chains) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	ch, can := s.(Chainer)
	if !can {
		return nil, notRun("its handlers do not send events")
	}
	entities := b.entities(c.Size)
	path := func(k int) (list []string) {
		for h := range hops {
			list = append(list, entities[(k+h)%c.Size])
		}
		return list
	}
	if err := addEach(ctx, s, entities, "first"); err != nil {
		return nil, err
	}
	for k := range c.Flights { // one chain each, so that everything is connected
		if err := ch.Chain(ctx, path(k), "warm"+strconv.Itoa(k)); err != nil {
			return nil, err
		}
	}
	latencies := make([][]time.Duration, c.Flights)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	clock := b.clock()
	var done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for k := range c.Flights {
		g.Go(func() error {
			for n := 0; clock.next(); n++ {
				began := time.Now()
				if err := ch.Chain(ctx, path(k), fmt.Sprintf("c%d-%d", k, n)); err != nil {
					return err
				}
				latencies[k] = append(latencies[k], time.Since(began))
				done.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return nil, err
	}
	r, err := b.Meter.End(ctx, done.Load(), merge(latencies))
	if err != nil {
		return nil, err
	}
	return r, verifyStates(ctx, s, entities, func(i int) (want int64) {
		want = 1
		for h := range hops { // the chains that pass here
			if k := (i - h + c.Size) % c.Size; k < c.Flights {
				want += 1 + int64(len(latencies[k]))
			}
		}
		return want
	})
}

// duplicates is W4: every event is sent three times under one id.
type duplicates struct{}

func (duplicates) Name() string  { return "W4" }
func (duplicates) About() string { return "every event is sent three times under one id" }
func (duplicates) Unit() string  { return "sent events" }

func (duplicates) Cases(bool) []Case {
	return []Case{{Name: "100 entities, 1 in flight each", Size: 100, Flights: 1}}
}

func (duplicates) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	p, can := s.(Poster)
	if !can {
		return nil, notRun("it has no ids of events")
	}
	entities := b.entities(c.Size)
	if err := addEach(ctx, s, entities, "first"); err != nil {
		return nil, err
	}
	counts := make([]results, c.Size)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	clock := b.clock()
	var sent atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.Size {
		g.Go(func() error {
			var own []int64
			defer func() { counts[i].note(own) }()
			for n := 0; clock.next(); n++ {
				id := "e" + strconv.Itoa(n)
				count, err := s.Add(ctx, entities[i], id)
				if err != nil {
					return err
				}
				own = append(own, count)
				for range 2 {
					if err := p.Post(ctx, entities[i], id); err != nil {
						return err
					}
				}
				sent.Add(3)
			}
			return nil
		})
	}
	err := g.Wait()
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return nil, err
	}
	r, err := b.Meter.End(ctx, sent.Load(), nil)
	if err != nil {
		return nil, err
	}
	// A duplicate that took effect would be counted by the next event, or by this last one.
	if err := addEach(ctx, s, entities, "last"); err != nil {
		return nil, err
	}
	for i := range counts {
		if err := counts[i].verify(1); err != nil {
			return nil, fmt.Errorf("entity %s: %w", entities[i], err)
		}
	}
	return r, verifyStates(ctx, s, entities, func(i int) int64 { return 2 + int64(len(counts[i].counts)) })
}
