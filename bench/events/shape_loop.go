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

// closedLoop is W1: senders that wait for the effect of an event before they send the next.
type closedLoop struct{}

func (closedLoop) Name() string  { return "W1" }
func (closedLoop) About() string { return "closed loop: each sender waits until its event is handled" }
func (closedLoop) Unit() string  { return "events" }

func (closedLoop) Cases(bool) (list []Case) {
	for _, entities := range []int{1, 100, 10_000} {
		for _, flights := range []int{1, 16, 256} {
			if entities*flights > 25_600 {
				continue
			}
			list = append(list, Case{
				Name: fmt.Sprintf("%d entities, %d in flight each", entities, flights), Size: entities, Flights: flights,
				OnlyBrokers: entities*flights > 1600,
			})
		}
	}
	return list
}

func (closedLoop) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	entities := b.entities(c.Size)
	if err := addEach(ctx, s, entities, "first"); err != nil {
		return nil, err
	}
	counts := make([]results, c.Size)
	latencies := make([][]time.Duration, c.Size*c.Flights)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	clock := b.clock()
	var sent atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.Size {
		for f := range c.Flights {
			g.Go(func() error {
				var own []int64
				defer func() { counts[i].note(own) }()
				for n := 0; clock.next(); n++ {
					began := time.Now()
					count, err := s.Add(ctx, entities[i], "e"+strconv.Itoa(f)+"-"+strconv.Itoa(n))
					if err != nil {
						return err
					}
					latencies[i*c.Flights+f] = append(latencies[i*c.Flights+f], time.Since(began))
					own = append(own, count)
					sent.Add(1)
				}
				return nil
			})
		}
	}
	err := g.Wait()
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return nil, err
	}
	r, err := b.Meter.End(ctx, sent.Load(), merge(latencies))
	if err != nil {
		return nil, err
	}
	for i := range counts {
		if err := counts[i].verify(1); err != nil {
			return nil, fmt.Errorf("entity %s: %w", entities[i], err)
		}
	}
	return r, verifyStates(ctx, s, entities, func(i int) int64 { return 1 + int64(len(counts[i].counts)) })
}

// oneAtATime is the latency of one event while nothing else happens.
type oneAtATime struct{ closedLoop }

func (oneAtATime) Name() string  { return "W1 alone" }
func (oneAtATime) About() string { return "one event at a time, to one entity" }

func (oneAtATime) Cases(bool) []Case {
	return []Case{{Name: "one at a time", Size: 1, Flights: 1}}
}

// pipelined is W1 with senders that do not wait.
type pipelined struct{}

func (pipelined) Name() string { return "W1 pipelined" }
func (pipelined) About() string {
	return "senders do not wait; events are numbered and arrive in order"
}
func (pipelined) Unit() string { return "events" }

func (pipelined) Cases(bool) []Case {
	return []Case{{Name: "1 entity", Size: 1}, {Name: "100 entities", Size: 100}}
}

// perSecond is about how many pipelined events are worth a second of the budget.
const perSecond = 20_000

func (pipelined) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	p, can := s.(Pourer)
	if !can {
		return nil, notRun("it cannot be sent events in order without waiting for each")
	}
	entities := b.entities(c.Size)
	if err := addEach(ctx, s, entities, "first"); err != nil {
		return nil, err
	}
	each := max(int(b.Time.Seconds()*perSecond)/c.Size, 2)
	if b.Units > 0 {
		each = max(int(b.Units)/c.Size, 2)
	}
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	if err := p.Pour(ctx, entities, each); err != nil {
		return nil, err
	}
	r, err := b.Meter.End(ctx, int64(each*c.Size), nil)
	if err != nil {
		return nil, err
	}
	return r, verifyStates(ctx, s, entities, func(int) int64 { return 1 + int64(each) })
}
