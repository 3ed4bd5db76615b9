package settletest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// FleetOptions configures a fleet. A zero field selects its default.
type FleetOptions struct {
	// Workers is the initial number of workers; default 3.
	Workers int
	// Seed is the seed of the first run; Seeds is the number of runs, each a subtest with the next seed;
	// default 1 and 1. A seed decides which requests are lost and which workers die. The Go scheduler decides
	// how goroutines interleave, so reproducing a failure may take a few repetitions (-count).
	Seed  uint64
	Seeds int
	// Faults is how many of a thousand requests to the servers are lost, how many lose their acknowledgement,
	// and how many arrive twice; default 10 of each, negative for none.
	Faults int
	// Partitions is the number of partitions; default 4.
	Partitions int
}

func (o *FleetOptions) fill() {
	def := func(field *int, v int) {
		if *field == 0 {
			*field = v
		}
	}
	def(&o.Workers, 3)
	def(&o.Seeds, 1)
	def(&o.Faults, 10)
	def(&o.Partitions, 4)
	if o.Seed == 0 {
		o.Seed = 1
	}
}

// Fleet is a deployment in one process and in virtual time: workers, a coordinator and a server in memory,
// with lost requests and acknowledgements. It is slower and less exact than a World, because things happen
// concurrently. Use it to find races, and to check that a program does not depend on which worker runs it.
type Fleet struct {
	t    *testing.T
	o    FleetOptions
	opts options
	// Rand is seeded from the seed of the run, for random choices of the test itself.
	Rand *rand.Rand

	programs simkit.Programs
	server   *membus.Server
	client   *membus.Bus
	workers  []*member
	started  int

	mu       sync.Mutex
	problems []Problem
	faults   *rand.Rand
	posted   []posted
	// undelivered are the events that were reported because their space has no program.
	undelivered map[posted]bool
}

// member is a worker with its own connection, so that it can be killed alone.
type member struct {
	*worker.Worker
	id  string
	bus *membus.Bus
}

// RunFleet runs a test in a fleet, once per seed. After test returns, RunFleet waits until the
// fleet is at rest, and fails the test unless every event was handled exactly once.
func RunFleet[P Source](t *testing.T, programs P, o FleetOptions, test func(f *Fleet), opts ...Option) {
	t.Helper()
	o.fill()
	of := programsOf(programs)
	for i := range o.Seeds {
		seed := o.Seed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, of, o, seed, opts)
				defer f.end()
				test(f)
				f.Rest()
			})
		})
	}
}

func newFleet(t *testing.T, of simkit.Programs, o FleetOptions, seed uint64, opts []Option) *Fleet {
	f := &Fleet{
		t: t, o: o, programs: of, undelivered: map[posted]bool{},
		Rand: rand.New(rand.NewPCG(seed, 1)), faults: rand.New(rand.NewPCG(seed, 2)),
	}
	for _, set := range opts {
		set(&f.opts)
	}
	begin := f.opts.world.Start
	if begin.IsZero() {
		begin = simkit.Start
	}
	pass(time.Until(begin)) // the clock of the bubble starts in 2000
	f.server = membus.NewServer(membus.Config{Partitions: o.Partitions})
	f.client = f.server.Connect("test")
	b := f.server.Connect("coordinator")
	c := coordinator.New(b, coordinator.Config{})
	c.Start()
	t.Cleanup(func() { c.Stop(); b.Close(); f.client.Close() })
	for range o.Workers {
		f.Start()
	}
	return f
}

// end stops the workers.
func (f *Fleet) end() {
	for _, m := range f.workers {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_ = m.Stop(ctx) // unsaved documents are in the log
		cancel()
		m.bus.Close()
	}
	f.workers = nil
}

// Start starts one more worker, and returns its id.
func (f *Fleet) Start() string {
	f.t.Helper()
	f.started++
	id := fmt.Sprintf("w%d", f.started)
	b := f.server.Connect(id)
	b.Inject(f.fate)
	settings := f.opts.world.Space
	cfg := worker.Config{
		ID: id, Programs: f.programs, Build: "settletest", OnError: f.noteError,
		Options:          worker.Options{Limits: settings.Limits, Budgets: settings.Budgets},
		CheckIdempotency: !f.opts.world.Lenient, Rehearsals: settings.Rehearsals,
	}
	var answers *live.Server // before the worker is started
	cfg.Computed = func(ctx context.Context, space, document string) (bool, error) {
		return answers.Computed(ctx, space, document)
	}
	w, err := worker.New(b, cfg)
	if err == nil {
		answers = live.NewServer(b, w, live.Config{})
		err = w.Start(f.t.Context())
	}
	if err != nil {
		f.t.Fatalf("settletest: start worker %s: %v", id, err)
	}
	w.Beside(answers.Run)
	f.workers = append(f.workers, &member{w, id, b})
	return id
}

// fate decides what happens to a request.
func (f *Fleet) fate(membus.Op) membus.Fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch n := f.faults.IntN(1000); {
	case n < f.o.Faults:
		return membus.DropAck
	case n < 2*f.o.Faults:
		return membus.DropRequest
	case n < 3*f.o.Faults:
		return membus.Duplicate
	}
	return membus.Deliver
}

// Kill kills a random worker, as SIGKILL would, and returns its id. If it was the last one, another
// is started.
func (f *Fleet) Kill() string {
	f.t.Helper()
	m := f.removeAny()
	m.Worker.Kill()
	m.bus.Kill()
	f.startIfNone()
	return m.id
}

// removeAny removes a random running worker.
func (f *Fleet) removeAny() *member {
	i := f.Rand.IntN(len(f.workers))
	m := f.workers[i]
	f.workers = slices.Delete(f.workers, i, i+1)
	return m
}

func (f *Fleet) startIfNone() {
	if len(f.workers) == 0 {
		f.Start()
	}
}

// Leave shuts down a random worker, and returns its id. If it was the last one, another is started.
func (f *Fleet) Leave() string {
	f.t.Helper()
	m := f.removeAny()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.Stop(ctx); err != nil {
		f.t.Errorf("settletest: worker %s cannot stop: %v", m.id, err)
	}
	m.bus.Close()
	f.startIfNone()
	return m.id
}

// Advance lets virtual time pass, at most 24 hours at once: the workers of a fleet send heartbeats, renew leases
// and save documents while it passes, which takes a minute or more per day. A program that waits for days is
// tested in a World, whose Advance goes from one due time to the next.
func (f *Fleet) Advance(d time.Duration) {
	f.t.Helper()
	if err := checkAdvance(d); err != nil {
		f.t.Fatal(err)
	}
	pass(d)
}

// mostAdvance keeps a test from running into the timeout of go test, which says nothing about its cause.
const mostAdvance = 24 * time.Hour

func checkAdvance(d time.Duration) error {
	if d > mostAdvance {
		return fmt.Errorf("settletest: a fleet advances by at most %s at once, not by %s: its workers run all the time, a heartbeat a second; test what takes longer in a World (settletest.New), where Advance takes no time", mostAdvance, d)
	}
	return nil
}

// noteError records errors of nodes, and of handlers that are not idempotent. Other errors of
// handlers are in receipts.
func (f *Fleet) noteError(i space.ErrorInfo) {
	kind := simkit.NodeError
	var violation *space.IdempotencyError
	switch {
	case errors.As(i.Err, &violation):
		kind = simkit.NotIdempotent
	case i.Node == "" || i.Transient:
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, Problem{
		Space: i.Space, Kind: kind, Node: i.Node, Stream: i.Stream, Event: i.Event, Err: i.Err, Stack: i.Stack,
	})
}

// report fails the test with the recorded problems.
func (f *Fleet) report() {
	f.t.Helper()
	f.mu.Lock()
	problems := f.problems
	f.problems = nil
	f.mu.Unlock()
	for _, p := range problems {
		if !f.opts.expected(p) {
			f.t.Errorf("settletest: %s", p)
		}
	}
}
