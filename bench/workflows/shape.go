package workflows

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/bench/harness"
)

// Shape is a kind of measurement.
type Shape interface {
	Name() string
	About() string
	Cases(full bool) []Case
	// Run measures a case. It compares every result, and the number of actions, with what the program has to give, and
	// returns an error instead of a figure if they differ.
	Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error)
}

// Case is a program and its size.
type Case struct {
	Name    string
	Program string
	N       int64
	// Flights is the number of runs at a time.
	Flights int
	// Unit is what is counted.
	Unit string
	// OnlySettle excludes engines that would need many minutes.
	OnlySettle bool
}

// Budget is how much a measurement may take.
type Budget struct {
	Time    time.Duration
	Run     string
	Meter   *harness.Meter
	Actions *Actions
	// Units, if positive, is how many runs to measure instead of Time.
	Units int64
}

// Shapes are all shapes.
func Shapes() []Shape { return []Shape{throughput{}, growth{}, sleeping{}} }

// What is counted.
const (
	actions = "actions"
	runs    = "runs"
)

// throughput is many runs at a time.
type throughput struct{}

func (throughput) Name() string  { return "throughput" }
func (throughput) About() string { return "many runs at a time, each started when another has ended" }

// atATime is how many runs there are at a time.
const atATime = 64

func (throughput) Cases(bool) (list []Case) {
	sizes := map[string]int64{"sequence": 1, "loop": 20, "fan": 20, "stress": 1, "forloop": 16, "smoke": 5, "control": 2, "spread": 3, "caught": 4, "count": 6}
	for _, p := range programs {
		n, measured := sizes[p.name]
		if !measured {
			continue
		}
		_, count := p.expect(n)
		c := Case{Name: fmt.Sprintf("%s, %d actions", p.name, count), Program: p.name, N: n, Flights: atATime, Unit: actions}
		if count == 0 {
			c.Unit = runs
		}
		list = append(list, c)
	}
	return append(list,
		Case{Name: "fan, 1000 actions, 8 runs at a time", Program: "fan", N: 1000, Flights: 8, Unit: actions, OnlySettle: true},
		Case{Name: "sequence, 1024 runs at a time", Program: "sequence", N: 1, Flights: 1024, Unit: actions, OnlySettle: true},
		Case{Name: "sequence, one run at a time", Program: "sequence", N: 1, Flights: 1, Unit: actions})
}

func (throughput) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	if err := b.one(ctx, s, c, "warm"); err != nil {
		return nil, err
	}
	b.Actions.calls.Store(0)
	latencies := make([][]time.Duration, c.Flights)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(b.Time)
	var left, done atomic.Int64
	left.Store(b.Units)
	more := func() bool {
		if b.Units > 0 {
			return left.Add(-1) >= 0
		}
		return time.Now().Before(deadline)
	}
	g, ctx := errgroup.WithContext(ctx)
	for f := range c.Flights {
		g.Go(func() error {
			for i := 0; more(); i++ {
				began := time.Now()
				if err := b.one(ctx, s, c, fmt.Sprintf("f%d-%d", f, i)); err != nil {
					return err
				}
				latencies[f] = append(latencies[f], time.Since(began))
				done.Add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return b.end(context.WithoutCancel(ctx), c, done.Load(), latencies)
}

// one runs a program once, and compares its result.
func (b *Budget) one(ctx context.Context, s System, c Case, id string) error {
	id = b.Run + "-" + id
	if err := s.Start(ctx, c.Program, id, c.N); err != nil {
		return err
	}
	return b.result(ctx, s, c, id)
}

func (b *Budget) result(ctx context.Context, s System, c Case, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	got, err := s.Result(ctx, id)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	if want, _ := programNamed(c.Program).expect(c.N); got != want {
		return fmt.Errorf("run %s of %s(%d) gives %d instead of %d", id, c.Program, c.N, got, want)
	}
	return nil
}

// end ends a round of that many runs.
func (b *Budget) end(ctx context.Context, c Case, done int64, latencies [][]time.Duration) (*harness.Round, error) {
	var all []time.Duration
	for _, l := range latencies {
		all = append(all, l...)
	}
	_, each := programNamed(c.Program).expect(c.N)
	units := done * each
	if c.Unit == runs {
		units = done
	}
	r, err := b.Meter.End(ctx, units, all)
	if err != nil {
		return nil, err
	}
	if calls := b.Actions.calls.Load(); calls != done*each {
		return nil, fmt.Errorf("%d runs have performed %d actions instead of %d", done, calls, done*each)
	}
	return r, nil
}

// growth is one run alone, of growing size: what an action costs must not grow with N.
type growth struct{}

func (growth) Name() string { return "growth" }
func (growth) About() string {
	return "one run alone, of growing size; an action should cost the same at every size"
}

func (growth) Cases(full bool) (list []Case) {
	sizes := []int64{10, 100, 1000}
	if full {
		sizes = append(sizes, 10_000)
	}
	for _, program := range []string{"loop", "fan", "forloop"} {
		for _, n := range sizes {
			list = append(list, Case{
				Name: program + ", N = " + strconv.FormatInt(n, 10), Program: program, N: n, Flights: 1, Unit: actions, OnlySettle: n > 1000,
			})
		}
	}
	return list
}

func (growth) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	warm := c
	warm.N = 3
	if err := b.one(ctx, s, warm, "warm"); err != nil {
		return nil, err
	}
	b.Actions.calls.Store(0)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	var latencies []time.Duration
	// A small run is repeated until there are 100 actions or so, to be more than noise.
	repeat := max(1, 100/c.N)
	for i := range repeat {
		began := time.Now()
		if err := b.one(ctx, s, c, "g"+strconv.FormatInt(i, 10)); err != nil {
			return nil, err
		}
		latencies = append(latencies, time.Since(began))
	}
	return b.end(ctx, c, repeat, [][]time.Duration{latencies})
}

// sleeping is many runs that sleep.
type sleeping struct{}

func (sleeping) Name() string { return "sleeping" }
func (sleeping) About() string {
	return "many runs that sleep: starts per second, memory of each, and how late they wake up"
}

func (sleeping) Cases(full bool) []Case {
	list := []Case{{Name: "1,000 runs", N: 1000}}
	if full {
		list = append(list, Case{Name: "100,000 runs", N: 100_000, OnlySettle: true})
	}
	for i := range list {
		list[i].Program, list[i].Unit = "sleeper", runs
	}
	return list
}

// startRate is about how many runs all engines can start per second; the sleep has to be longer than the start of all.
const startRate = 100

func (sleeping) Run(ctx context.Context, s System, c Case, b *Budget) (*harness.Round, error) {
	count := c.N
	seconds := 5 + count/startRate
	if c.OnlySettle {
		seconds = 5 + count/500
	}
	c.N = seconds
	before := harness.OwnUsage(true).Heap
	due := make([]time.Time, count)
	if err := b.Meter.Begin(ctx); err != nil {
		return nil, err
	}
	if err := inParallel(ctx, count, func(ctx context.Context, i int64) error {
		err := s.Start(ctx, c.Program, fmt.Sprintf("%s-%d", b.Run, i), seconds)
		due[i] = time.Now().Add(time.Duration(seconds) * time.Second) // at the latest
		return err
	}); err != nil {
		return nil, err
	}
	r, err := b.Meter.End(ctx, count, nil)
	if err != nil {
		return nil, err
	}
	memory := float64(int64(harness.OwnUsage(true).Heap)-int64(before)) / float64(count)
	asleep := time.Until(due[0]) > 0
	late := make([]time.Duration, count)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2000)
	for i := range count {
		g.Go(func() error {
			select {
			case <-time.After(time.Until(due[i].Add(-500 * time.Millisecond))):
			case <-gctx.Done():
			}
			err := b.result(gctx, s, c, fmt.Sprintf("%s-%d", b.Run, i))
			late[i] = max(time.Since(due[i]), 0)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	r.Extra = map[string]float64{"late_p50_ms": quantile(late, 0.5), "late_p99_ms": quantile(late, 0.99)}
	if asleep { // all of them slept at the same time
		r.Extra["bytes_per_run"] = memory
	}
	return r, nil
}
