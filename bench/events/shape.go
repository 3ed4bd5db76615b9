package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/bench/harness"
)

// Shape is a kind of work.
type Shape interface {
	Name() string
	About() string
	// Unit is what is counted.
	Unit() string
	// Cases are the sizes that are measured; full adds those that take minutes.
	Cases(full bool) []Case
	// Run measures a case. It verifies what has happened, and returns an error instead of a figure if an event was
	// lost, took effect twice, or out of order.
	Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error)
}

// Case is a size of a shape.
type Case struct {
	Name string
	// Size is the number of entities, watchers, inputs or documents, Flights of events in flight per entity.
	Size, Flights int
	// OnlyBrokers excludes engines with a database, which would need minutes.
	OnlyBrokers bool
}

// Budget is how much a measurement may take.
type Budget struct {
	// Time is how long to send.
	Time time.Duration
	// Run makes names of entities unique.
	Run   string
	Meter *harness.Meter
	// Units, if positive, is how many units to measure instead of Time.
	Units int64
}

// Shapes are all shapes.
func Shapes() []Shape {
	return []Shape{closedLoop{}, oneAtATime{}, pipelined{}, chains{}, duplicates{}, watchers{}, fanIn{}, oneDocument{}, activation{}}
}

// entities returns the names of n entities.
func (b *Budget) entities(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%d", b.Run, i)
	}
	return list
}

// parallel is how many preparations run at a time.
const parallel = 128

// inParallel calls f for 0 to n-1.
func inParallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, parallel) {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// addEach sends one increment to each entity.
func addEach(ctx context.Context, s System, entities []string, id string) error {
	return inParallel(ctx, len(entities), func(ctx context.Context, i int) error {
		_, err := s.Add(ctx, entities[i], id)
		return err
	})
}

// results has the counts that one entity's events have returned, for verification.
type results struct {
	mu     sync.Mutex
	counts []int64
	errs   []error
}

// note records the counts of one sender, in order, and complains if they do not increase.
func (r *results) note(counts []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.IsSorted(counts) {
		r.errs = append(r.errs, errors.New("a later event of a sender took effect before an earlier one"))
	}
	r.counts = append(r.counts, counts...)
}

// verify returns an error unless the counts are from+1, from+2 and so on.
func (r *results) verify(from int64) error {
	if len(r.errs) > 0 {
		return r.errs[0]
	}
	slices.Sort(r.counts)
	for i, c := range r.counts {
		if want := from + int64(i) + 1; c != want {
			return fmt.Errorf("an event lost or repeated: count %d is missing, or %d is there twice", want, c)
		}
	}
	return nil
}

// checked is how many entities have their state read at the end of a round.
const checked = 200

// verifyStates compares states with the number of events.
func verifyStates(ctx context.Context, s System, entities []string, want func(i int) int64) error {
	picked := rand.Perm(len(entities))[:min(checked, len(entities))]
	return inParallel(ctx, len(picked), func(ctx context.Context, k int) error {
		i := picked[k]
		st, err := s.State(ctx, entities[i])
		if err != nil {
			return err
		}
		if st.Count != want(i) || st.Wrong != 0 {
			return fmt.Errorf("entity %s has %d events instead of %d, %d of them out of order", entities[i], st.Count, want(i), st.Wrong)
		}
		return nil
	})
}

// merge concatenates latencies.
func merge(lists [][]time.Duration) (all []time.Duration) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// clock says when a round ends.
type clock struct {
	deadline time.Time
	left     *atomic.Int64
}

func (b *Budget) clock() *clock {
	c := &clock{deadline: time.Now().Add(b.Time)}
	if b.Units > 0 {
		c.left = &atomic.Int64{}
		c.left.Store(b.Units)
	}
	return c
}

// next reports whether there is another unit.
func (c *clock) next() bool {
	if c.left != nil {
		return c.left.Add(-1) >= 0
	}
	return time.Now().Before(c.deadline)
}
