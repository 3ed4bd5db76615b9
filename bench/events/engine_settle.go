package events

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bench/harness"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// settleEngine is Settle: an entity is a space.
type settleEngine struct {
	// workers are in processes of their own; default 1.
	workers int
	// embedded runs server, worker and coordinator in the client's process.
	embedded bool
}

func (e settleEngine) Name() string {
	switch {
	case e.embedded:
		return "Settle, embedded"
	case e.workers > 1:
		return fmt.Sprintf("Settle, %d workers", e.workers)
	}
	return "Settle"
}

func (e settleEngine) About() string {
	switch {
	case e.embedded:
		return "settle.Start with a server of its own: client, worker, coordinator and server are one process"
	case e.workers > 1:
		return fmt.Sprintf("the same with %d workers, each in a process of its own", e.workers)
	}
	return "a program of the SDK; worker and coordinator are one process"
}

// The program.
type (
	addition struct {
		N int64 `json:"n,omitzero"`
	}
	route struct {
		Path []string `json:"path,omitempty"`
	}
	span struct {
		From int `json:"from"`
		To   int `json:"to"`
	}
	inputs struct {
		Prefix string `json:"prefix"`
		N      int    `json:"n"`
	}
)

var (
	stateOf  = settle.NewCell[State]("state")
	inputsOf = settle.NewCell[inputs]("inputs")
	sumOf    = settle.NewDerived[int64]("sum")
	add      = settle.NewRequest[addition, int64]("add")
	hop      = settle.NewStream[route]("hop")
	fill     = settle.NewStream[span]("fill")
	observe  = settle.NewStream[inputs]("observe")
)

func settleProgram() *settle.Program {
	p := settle.NewProgram("bench")
	add.Handle(p, func(tx *settle.Tx, a addition) (int64, error) {
		st := stateOf.Get(tx)
		st.Apply(a.N)
		stateOf.Set(tx, st)
		return st.Count, nil
	})
	hop.Handle(p, func(tx *settle.Tx, r route) error {
		st := stateOf.Get(tx)
		st.Apply(0)
		if len(r.Path) == 0 {
			st.Ended++
		} else {
			hop.Send(tx, settle.To(r.Path[0]), route{r.Path[1:]})
		}
		stateOf.Set(tx, st)
		return nil
	})
	fill.Handle(p, func(tx *settle.Tx, s span) error {
		for i := s.From; i < s.To; i++ {
			tx.Set("d"+strconv.Itoa(i), i)
		}
		return nil
	})
	observe.Handle(p, func(tx *settle.Tx, in inputs) error {
		inputsOf.Set(tx, in)
		return nil
	})
	sumOf.Compute(p, func(v *settle.View) (sum int64, err error) {
		in := inputsOf.Get(v)
		for i := range in.N {
			sum += stateOf.In(in.Prefix + strconv.Itoa(i)).Get(v).Count
		}
		return sum, nil
	})
	return p
}

// prefixOf is the deployment of an engine: the engines at a site share the servers, and nothing else.
func prefixOf(engine string) string {
	return map[string]string{
		"Settle": "one", "Settle, 3 workers": "three", orderedEngine{}.Name(): "ordered",
		"Settle, metrics": "metrics", "Settle, metrics and traces": "traces", "Settle, all traces": "all",
	}[engine]
}

func busConfig(url, engine, name string) bus.Config {
	return bus.Config{URL: url, Prefix: prefixOf(engine), Name: name}
}

// serveSettle is the process of a worker.
func serveSettle(r harness.Role) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stop, err := harness.ServeObserved(ctx, busConfig(r.URL, r.Engine, ""), settle.Always(settleProgram()), r.Quiet, r.Observed)
	if err != nil {
		return err
	}
	if err := harness.ServeRole(); err != nil {
		return err
	}
	return stop()
}

// Start provisions a deployment and starts its workers.
func (e settleEngine) Start(ctx context.Context, at *harness.Site) (System, error) {
	if e.embedded {
		return e.startEmbedded(ctx, at)
	}
	s, err := startSettle(ctx, at, e.Name(), max(e.workers, 1), harness.Observed{})
	if err != nil {
		return nil, err
	}
	return graphSystem{s}, nil
}

func (e settleEngine) startEmbedded(ctx context.Context, at *harness.Site) (System, error) {
	if at.Servers.Size() > 1 {
		return nil, notRun("an embedded server is one server")
	}
	mode := embedded.FsyncInterval
	if at.Always {
		mode = embedded.FsyncAlways
	}
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(settleProgram()), Server: embedded.Config{StoreDir: filepath.Join(at.Dir, "embedded"), Fsync: mode}})
	if err != nil {
		return nil, err
	}
	s := &settleSystem{at: at, client: d.Client(), deployment: d, endings: map[string]*ending{}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return embeddedSystem{graphSystem{s}}, nil
}

// settleSystem is a client of a deployment.
type settleSystem struct {
	at         *harness.Site
	engine     string
	count      int // of workers
	observed   harness.Observed
	bus        *bus.Bus
	client     *settle.Client
	processes  []*harness.Process
	deployment *settle.Deployment // of the embedded engine
	ctx        context.Context    // of the watches that await ends of chains
	cancel     context.CancelFunc
	watches    sync.WaitGroup
	mu         sync.Mutex
	endings    map[string]*ending
}

// graphSystem has computations, too.
type graphSystem struct{ *settleSystem }

// embeddedSystem has no worker that could be restarted alone.
type embeddedSystem struct{ graphSystem }

func (embeddedSystem) Restart(context.Context) error {
	return notRun("the worker is in the client's process")
}

func startSettle(ctx context.Context, at *harness.Site, engine string, workers int, by harness.Observed) (*settleSystem, error) {
	s := &settleSystem{at: at, engine: engine, count: workers, observed: by, endings: map[string]*ending{}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if s.bus, err = bus.Connect(ctx, busConfig(at.Servers.URL(), engine, "client/bench")); err != nil {
		return nil, err
	}
	if err := s.bus.Complete(ctx); err != nil {
		return nil, err
	}
	if s.client, err = settle.NewClient(s.bus, settle.ClientConfig{ID: "bench"}); err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

func (s *settleSystem) Restart(context.Context) error {
	s.stopWorkers()
	for range s.count {
		p, err := harness.StartRole(harness.Role{Engine: s.engine, URL: s.at.Servers.URL(), Size: s.at.Servers.Size(), Quiet: s.at.Quiet, Observed: s.observed})
		if err != nil {
			return err
		}
		s.processes = append(s.processes, p)
	}
	return nil
}

func (s *settleSystem) stopWorkers() (err error) {
	for _, p := range s.processes {
		if failed := p.Stop(); failed != nil {
			err = failed
		}
	}
	s.processes = nil
	return err
}

func (s *settleSystem) Add(ctx context.Context, entity, id string) (int64, error) {
	return add.Call(ctx, s.client.Space(entity), settle.ID(id), addition{})
}

func (s *settleSystem) Post(ctx context.Context, entity, id string) error {
	_, err := add.Post(ctx, s.client.Space(entity), settle.ID(id), addition{})
	return err
}

// flights is how many events of an entity a sender has in flight that does not wait.
const flights = 64

func (s *settleSystem) Pour(ctx context.Context, entities []string, n int) error {
	sender := s.client.Pipeline(flights)
	for i := 1; i < n; i++ {
		for _, e := range entities {
			out, err := add.Outgoing(settle.To(e), settle.ID("p"+strconv.Itoa(i)), addition{int64(i)})
			if err == nil {
				err = sender.Send(ctx, out, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := sender.Flush(ctx); err != nil {
		return err
	}
	return inParallel(ctx, len(entities), func(ctx context.Context, i int) error {
		_, err := add.Call(ctx, s.client.Space(entities[i]), settle.ID("p"+strconv.Itoa(n)), addition{int64(n)})
		return err
	})
}

// ending knows how many chains have ended at an entity.
type ending struct {
	mu      sync.Mutex
	count   int64
	changed chan struct{} // closed, and replaced, at each change
	err     error
}

func (e *ending) set(count int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count, e.err = count, err
	close(e.changed)
	e.changed = make(chan struct{})
}

// await waits for more than count.
func (e *ending) await(ctx context.Context, count int64) error {
	for {
		e.mu.Lock()
		now, changed, err := e.count, e.changed, e.err
		e.mu.Unlock()
		if now > count || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ending watches an entity, from the first call on.
func (s *settleSystem) ending(ctx context.Context, entity string) (*ending, error) {
	s.mu.Lock()
	e, known := s.endings[entity]
	if !known {
		e = &ending{count: -1, changed: make(chan struct{})}
		s.endings[entity] = e
		s.watches.Go(func() {
			for u, err := range stateOf.Watch(s.ctx, s.client.Space(entity)) {
				e.set(u.Value.Ended, err)
			}
		})
	}
	s.mu.Unlock()
	return e, e.await(ctx, -1)
}

func (s *settleSystem) Chain(ctx context.Context, entities []string, id string) error {
	e, err := s.ending(ctx, entities[len(entities)-1])
	if err != nil {
		return err
	}
	e.mu.Lock()
	before := e.count
	e.mu.Unlock()
	if _, err := hop.Post(ctx, s.client.Space(entities[0]), settle.ID(id), route{entities[1:]}); err != nil {
		return err
	}
	return e.await(ctx, before)
}

func (s *settleSystem) State(ctx context.Context, entity string) (State, error) {
	return stateOf.Fetch(ctx, s.client.Space(entity))
}

func (s *settleSystem) Watch(ctx context.Context, entity string, each func(count int64)) error {
	for u, err := range stateOf.Watch(ctx, s.client.Space(entity)) {
		if err != nil {
			return err
		}
		each(u.Value.Count)
	}
	return nil
}

func (s graphSystem) FanIn(ctx context.Context, target, prefix string, n int, each func(sum int64)) error {
	in := s.client.Space(target)
	if err := observe.Call(ctx, in, settle.ID("observe"), inputs{prefix, n}); err != nil {
		return err
	}
	for u, err := range sumOf.Watch(ctx, in) {
		if err != nil {
			return err
		}
		if u.Exists {
			each(u.Value)
		}
	}
	return nil
}

func (s *settleSystem) Fill(ctx context.Context, entity string, n int) error {
	const each = 1000
	g, ctx := errgroup.WithContext(ctx)
	for from := 0; from < n; from += each {
		g.Go(func() error {
			return fill.Call(ctx, s.client.Space(entity), settle.ID("f"+strconv.Itoa(from)), span{from, min(from+each, n)})
		})
	}
	return g.Wait()
}

func (s *settleSystem) Read(ctx context.Context, entity string, i int) (int64, error) {
	v, _, err := s.client.Space(entity).Get(ctx, "d"+strconv.Itoa(i))
	if err != nil {
		return 0, err
	}
	n, is := v.AsInt()
	if !is {
		return 0, fmt.Errorf("document %d is %s", i, v)
	}
	return n, nil
}

func (s *settleSystem) Parts() harness.Parts {
	return harness.Parts{Workers: s.processes, InClient: s.deployment != nil}
}

func (s *settleSystem) Close() error {
	s.cancel()
	s.watches.Wait()
	if s.deployment != nil {
		return s.deployment.Stop(context.Background())
	}
	s.client.Close()
	err := s.stopWorkers()
	s.bus.Close()
	return err
}
