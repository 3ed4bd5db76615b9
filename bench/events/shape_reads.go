package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/bench/harness"
)

// watchers is W5: clients that watch the count of one entity.
type watchers struct{}

func (watchers) Name() string { return "W5" }
func (watchers) About() string {
	return "watchers of one document: from the event until all of them have its effect"
}
func (watchers) Unit() string { return "notifications" }

func (watchers) Cases(full bool) []Case {
	list := []Case{{Name: "1 watcher", Size: 1}, {Name: "100 watchers", Size: 100}}
	if full {
		list = append(list, Case{Name: "10,000 watchers", Size: 10_000})
	}
	return list
}

func (watchers) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	w, can := s.(Watcher)
	if !can {
		return nil, notRun("it has no watches")
	}
	entity := b.Run
	if _, err := s.Add(ctx, entity, "first"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	before, goroutines := harness.OwnUsage(true).Heap, runtime.NumGoroutine()
	var target, missing atomic.Int64
	target.Store(1)
	missing.Store(int64(c.Size))
	complete := make(chan struct{}, 1)
	failed := make(chan error, c.Size)
	for range c.Size {
		all.Go(func() {
			last := int64(0)
			err := w.Watch(ctx, entity, func(count int64) {
				if t := target.Load(); last < t && count >= t && missing.Add(-1) == 0 {
					complete <- struct{}{}
				}
				last = max(last, count)
			})
			if err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	wait := func() error {
		select {
		case <-complete:
			return nil
		case err := <-failed:
			return err
		case <-time.After(patience):
			return fmt.Errorf("%d of %d watchers have not received count %d", missing.Load(), c.Size, target.Load())
		}
	}
	if err := wait(); err != nil {
		return nil, err
	}
	memory := float64(harness.OwnUsage(true).Heap-before) / float64(c.Size)
	began := runtime.NumGoroutine() - goroutines
	var latencies []time.Duration
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	for clock := b.clock(); clock.next(); {
		missing.Store(int64(c.Size))
		target.Add(1)
		start := time.Now()
		if _, err := s.Add(ctx, entity, "e"+strconv.FormatInt(target.Load(), 10)); err != nil {
			return nil, err
		}
		if err := wait(); err != nil {
			return nil, err
		}
		latencies = append(latencies, time.Since(start))
	}
	r, err := b.Meter.End(ctx, int64(len(latencies)*c.Size), latencies)
	if err != nil {
		return nil, err
	}
	r.Extra = map[string]float64{"client_bytes_per_watcher": memory, "goroutines_per_watcher": float64(began) / float64(c.Size)}
	return r, verifyStates(ctx, s, []string{entity}, func(int) int64 { return target.Load() })
}

// patience is how long a shape waits for what should come.
const patience = 2 * time.Minute

// fanIn is W6: a sum over the counts of many entities.
type fanIn struct{}

func (fanIn) Name() string { return "W6" }
func (fanIn) About() string {
	return "a sum over many entities: time to its first value, then one change at a time"
}
func (fanIn) Unit() string { return "updates" }

func (fanIn) Cases(full bool) []Case {
	list := []Case{{Name: "10 inputs", Size: 10}, {Name: "1,000 inputs", Size: 1000}}
	if full {
		list = append(list, Case{Name: "10,000 inputs", Size: 10_000})
	}
	return list
}

func (fanIn) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	f, can := s.(FanIner)
	if !can {
		return nil, notRun("it has no values over several entities")
	}
	entities := b.entities(c.Size)
	if err := addEach(ctx, s, entities, "first"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var target atomic.Int64
	target.Store(int64(c.Size))
	reached := make(chan struct{}, 1)
	failed := make(chan error, 1)
	start := time.Now()
	all.Go(func() {
		last := int64(0)
		err := f.FanIn(ctx, b.Run+"-sum", b.Run+"-", c.Size, func(sum int64) {
			if t := target.Load(); last < t && sum >= t {
				reached <- struct{}{}
			}
			last = sum
		})
		if err == nil && ctx.Err() == nil {
			err = errors.New("it ended")
		}
		failed <- err
	})
	wait := func() error {
		select {
		case <-reached:
			return nil
		case err := <-failed:
			return err
		case <-time.After(patience):
			return fmt.Errorf("the sum has not reached %d", target.Load())
		}
	}
	if err := wait(); err != nil {
		return nil, err
	}
	first := time.Since(start)
	var latencies []time.Duration
	sent := make([]int64, c.Size)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	for clock := b.clock(); clock.next(); {
		i := rand.IntN(c.Size)
		sent[i]++
		target.Add(1)
		start := time.Now()
		if _, err := s.Add(ctx, entities[i], "e"+strconv.FormatInt(sent[i], 10)); err != nil {
			return nil, err
		}
		if err := wait(); err != nil {
			return nil, err
		}
		latencies = append(latencies, time.Since(start))
	}
	r, err := b.Meter.End(ctx, int64(len(latencies)), latencies)
	if err != nil {
		return nil, err
	}
	r.Extra = map[string]float64{"first_value_ms": float64(first.Milliseconds())}
	return r, verifyStates(ctx, s, entities, func(i int) int64 { return 1 + sent[i] })
}

// oneDocument is W7: reading one document of an entity that has many.
type oneDocument struct{}

func (oneDocument) Name() string  { return "W7" }
func (oneDocument) About() string { return "read one document of an entity that has many" }
func (oneDocument) Unit() string  { return "reads" }

func (oneDocument) Cases(full bool) []Case {
	list := []Case{{Name: "1 document", Size: 1}, {Name: "1,000 documents", Size: 1000}, {Name: "10,000 documents", Size: 10_000}}
	if full {
		list = append(list, Case{Name: "100,000 documents", Size: 100_000})
	}
	return list
}

func (oneDocument) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	rd, can := s.(Reader)
	if !can {
		return nil, notRun("its entities have one document")
	}
	if err := rd.Fill(ctx, b.Run, c.Size); err != nil {
		return nil, err
	}
	if err := b.settle(ctx, s, rd, c.Size); err != nil {
		return nil, err
	}
	var latencies []time.Duration
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	for clock := b.clock(); clock.next(); {
		i := rand.IntN(c.Size)
		start := time.Now()
		v, err := rd.Read(ctx, b.Run, i)
		if err != nil {
			return nil, err
		}
		if v != int64(i) {
			return nil, fmt.Errorf("document %d is %d", i, v)
		}
		latencies = append(latencies, time.Since(start))
	}
	r, err := b.Meter.End(ctx, int64(len(latencies)), latencies)
	if err == nil {
		r.Allocs = nil // the worker takes no part in reads
	}
	return r, err
}

// settle waits until what has been written is where it is read from: on its way there is not the case to measure. A quiet
// worker saves documents when it stops.
func (b *Budget) settle(ctx context.Context, s System, rd Reader, size int) error {
	if rs, can := s.(Restarter); can && b.Units > 0 {
		if err := rs.Restart(ctx); !errors.Is(err, ErrNotRun) {
			b.Meter.Parts = s.Parts() // the worker is another process
			if err == nil {
				_, err = s.Add(ctx, b.Run+"-other", "first") // waits for the start
			}
			return err
		}
	}
	for settled := time.Now().Add(b.Time); time.Now().Before(settled); {
		if _, err := rd.Read(ctx, b.Run, rand.IntN(size)); err != nil {
			return err
		}
	}
	return nil
}

// activation is W8: events for entities that are not in memory.
type activation struct{}

func (activation) Name() string { return "W8" }
func (activation) About() string {
	return "one event at a time, each to an entity that is not in memory"
}
func (activation) Unit() string { return "events" }

func (activation) Cases(full bool) []Case {
	list := []Case{{Name: "1,000 dormant", Size: 1000}}
	if full {
		list = append(list, Case{Name: "100,000 dormant", Size: 100_000})
	}
	return list
}

func (activation) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	rs, can := s.(Restarter)
	if !can {
		return nil, notRun("it has no entities in memory")
	}
	entities := b.entities(c.Size)
	if err := addEach(ctx, s, entities, "first"); err != nil {
		return nil, err
	}
	if err := rs.Restart(ctx); err != nil {
		return nil, err
	}
	b.Meter.Parts = s.Parts() // the worker is another process
	order := rand.Perm(c.Size)
	if _, err := s.Add(ctx, entities[order[0]], "second"); err != nil { // the first one waits for the start
		return nil, err
	}
	var latencies []time.Duration
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	clock := b.clock()
	for _, i := range order[1:] {
		if !clock.next() {
			break
		}
		start := time.Now()
		count, err := s.Add(ctx, entities[i], "second")
		if err != nil {
			return nil, err
		}
		if count != 2 {
			return nil, fmt.Errorf("entity %s has count %d after its second event", entities[i], count)
		}
		latencies = append(latencies, time.Since(start))
	}
	return b.Meter.End(ctx, int64(len(latencies)), latencies)
}
