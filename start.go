package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Config configures a deployment for Start. Programs or Hosted is required.
type Config struct {
	// Programs returns the program of each space.
	Programs Programs
	// Hosted makes the workers run deployed programs, too, as in WorkerConfig.
	Hosted bool
	// Options are what can be tuned of the workers, Starlark and Live as in WorkerConfig.
	worker.Options
	Starlark star.Limits `prefix:"starlark-"`
	Live     live.Config
	// Server configures the embedded server. StoreDir is where its data is kept, by default
	// embedded.DefaultStoreDir. It is ignored if Bus names another server (URL, Context or Server).
	Server embedded.Config
	// Bus configures the connection and names the deployment. Partitions is fixed when a deployment
	// is created.
	Bus bus.Config
	// Workers is the number of workers to start; default 1, negative for none (see AddWorker).
	Workers int
	// Logger receives what an operator should know, such as events that failed. By default warnings
	// and errors go to slog.Default().
	Logger *slog.Logger
	Tracer trace.Tracer
	// OnError and OnConsole are as in WorkerConfig; by default errors and output of user code are
	// logged.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)
	// HTTP serves the documents of all spaces over HTTP, by the first worker, if its Addr is set;
	// see package gateway.
	HTTP gateway.Config `prefix:"http-"`
	// Now is the wall clock by which events become due, for tests; default time.Now.
	Now func() time.Time
}

// Deployment is a server, workers and a coordinator in this process.
type Deployment struct {
	cfg         Config
	server      *embedded.Server // nil when connected to an outside one
	coordinator *coordinator.Coordinator
	coordBus    *bus.Bus
	clientBus   *bus.Bus
	client      *Client
	revoke      func() // removes the announcement of the embedded server's address; nil if there is none

	adding  sync.WaitGroup
	mu      sync.Mutex
	ending  chan struct{} // closed by Stop
	workers []*member
	started int
	dead    []*worker.Worker // and stopped workers, whose counts are still reported
	drains  sync.WaitGroup   // of workers that an operator has asked to stop
}

// member is a worker with its own connection, so that it can be killed alone.
type member struct {
	id string
	w  *worker.Worker
	b  *bus.Bus
	// listed is closed when the deployment has the worker in its list.
	listed chan struct{}
}

// Start runs a deployment. It returns when its workers serve their partitions, or with an error if
// a program has mistakes, the embedded server does not start (because its address is taken, for
// example) or another server cannot be reached. ctx bounds the start only; Stop ends the
// deployment.
func Start(ctx context.Context, cfg Config) (*Deployment, error) {
	if _, err := (&WorkerConfig{Programs: cfg.Programs, Hosted: cfg.Hosted}).own(); err != nil {
		return nil, err
	}
	if cfg.Workers == 0 {
		cfg.Workers = 1
	}
	if cfg.Logger == nil {
		cfg.Logger = defaultLog()
	}
	d := &Deployment{cfg: cfg, ending: make(chan struct{})}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.Stop(ctx))
	}
	d.announce()
	return d, nil
}

func (d *Deployment) start(ctx context.Context) error {
	var err error
	if d.cfg.Bus.URL == "" && d.cfg.Bus.Context == "" && d.cfg.Bus.Server == nil {
		if d.cfg.Server.StoreDir == "" {
			d.cfg.Server.StoreDir = embedded.DefaultStoreDir
		}
		if d.server, err = embedded.Start(ctx, d.cfg.Server); err != nil {
			return fmt.Errorf("start the embedded server: %w", err)
		}
		d.cfg.Bus.Server = d.server
	}
	if d.clientBus, err = d.connect(ctx, "client/main"); err != nil {
		return err
	}
	if err := d.clientBus.Complete(ctx); err != nil {
		return err
	}
	if d.client, err = NewClient(d.clientBus, ClientConfig{ID: "main", Logger: d.cfg.Logger, Tracer: d.cfg.Tracer}); err != nil {
		return err
	}
	if d.coordBus, err = d.connect(ctx, "coordinator/c1"); err != nil {
		return err
	}
	d.coordinator = coordinator.New(d.coordBus, coordinator.Config{
		ID: "c1", Host: hostname(), Version: d.coordBus.ProgramVersion(), Connection: d.coordBus.ConnectionName(), Logger: d.cfg.Logger, Tracer: d.cfg.Tracer,
	})
	d.coordinator.Start()
	for range d.cfg.Workers {
		if _, err := d.AddWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// announce writes the embedded server's address into the store directory, if it listens.
func (d *Deployment) announce() {
	if d.server == nil || d.server.ClientURL() == "" {
		return
	}
	p := devserver.Server{NATS: d.server.ClientURL(), PID: os.Getpid()}
	if d.cfg.HTTP.Addr != "" {
		p.HTTP = "http://" + d.cfg.HTTP.Addr
	}
	var err error
	if d.revoke, err = p.Announce(d.cfg.Server.StoreDir); err != nil {
		d.cfg.Logger.Warn("settle commands in this directory will not find the server", "error", err)
	}
}

func (d *Deployment) connect(ctx context.Context, name string) (*bus.Bus, error) {
	cfg := d.cfg.Bus
	cfg.Name = name
	if cfg.Logger == nil {
		cfg.Logger = d.cfg.Logger
	}
	return bus.Connect(ctx, cfg)
}

var errEnding = fmt.Errorf("the deployment is being stopped: %w", model.ErrStopped)

// AddWorker starts one more worker and returns its id. During and after Stop it fails with
// model.ErrStopped.
func (d *Deployment) AddWorker(ctx context.Context) (string, error) {
	id, ok := d.newID()
	if !ok {
		return "", errEnding
	}
	defer d.adding.Done()
	return id, d.add(ctx, id)
}

// RestartWorker starts a worker again that KillWorker or an operator (`settle drain`) has stopped, under its id, as a supervisor of processes does. The error is
// model.ErrStopped during and after Stop.
func (d *Deployment) RestartWorker(ctx context.Context, id string) error {
	d.mu.Lock()
	switch {
	case d.stopped() != nil:
		d.mu.Unlock()
		return errEnding
	case slices.ContainsFunc(d.workers, func(m *member) bool { return m.id == id }):
		d.mu.Unlock()
		return fmt.Errorf("worker %s is running", id)
	}
	d.adding.Add(1)
	d.mu.Unlock()
	defer d.adding.Done()
	return d.add(ctx, id)
}

// add starts a worker. The caller has added it to d.adding.
func (d *Deployment) add(ctx context.Context, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-d.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	m, err := d.startWorker(ctx, id)
	if err != nil {
		return errors.Join(d.stopped(), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.workers = append(d.workers, m) // Stop waits for this call, and stops it
	close(m.listed)
	return nil
}

// newID returns the id of a new worker and adds it to d.adding; false if the deployment is being
// stopped.
func (d *Deployment) newID() (id string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped() != nil {
		return "", false
	}
	d.adding.Add(1)
	d.started++
	return "w" + strconv.Itoa(d.started), true
}

// firstWorker is the id of the first worker.
const firstWorker = "w1"

func (d *Deployment) stopped() error {
	select {
	case <-d.ending:
		return errEnding
	default:
		return nil
	}
}

func (d *Deployment) startWorker(ctx context.Context, id string) (*member, error) {
	b, err := d.connect(ctx, "worker/"+id)
	if err != nil {
		return nil, err
	}
	m := &member{id: id, b: b, listed: make(chan struct{})}
	cfg := d.cfg.worker(id)
	cfg.OnDrain = func(*worker.Worker) { d.drain(m) }
	m.w, err = StartWorker(ctx, b, cfg)
	if err != nil {
		b.Kill()
		return nil, fmt.Errorf("start worker %s: %w", id, err)
	}
	return m, nil
}

// drain stops a worker that an operator has asked to stop. RestartWorker starts it again.
func (d *Deployment) drain(m *member) {
	select {
	case <-m.listed:
	case <-d.ending:
		return
	}
	d.mu.Lock()
	at := slices.Index(d.workers, m)
	if at < 0 || d.stopped() != nil {
		d.mu.Unlock()
		return // it is being stopped
	}
	d.workers = slices.Delete(slices.Clone(d.workers), at, at+1)
	d.drains.Add(1)
	d.mu.Unlock()
	defer d.drains.Done()
	last, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := m.w.Stop(last); err != nil {
		d.cfg.Logger.Warn("worker was not stopped in good order", "worker", m.id, "error", err)
	}
	m.b.Close()
	d.retire(m)
}

// worker returns the configuration of a worker of the deployment.
func (cfg *Config) worker(id string) WorkerConfig {
	var web gateway.Config
	if id == firstWorker {
		web = cfg.HTTP
	}
	return WorkerConfig{
		ID: id, Programs: cfg.Programs, Hosted: cfg.Hosted, Options: cfg.Options, Starlark: cfg.Starlark, Live: cfg.Live, HTTP: web,
		Logger: cfg.Logger, Tracer: cfg.Tracer, OnError: cfg.OnError, OnConsole: cfg.OnConsole, Now: cfg.Now,
	}
}

// Workers returns the ids of the running workers.
func (d *Deployment) Workers() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]string, len(d.workers))
	for i, m := range d.workers {
		ids[i] = m.id
	}
	return ids
}

// KillWorker stops a worker as a crash of its process would: it does not leave the fleet or save
// its spaces, and its connection is closed. It reports whether there was a worker of that id.
func (d *Deployment) KillWorker(id string) bool {
	m := d.remove(id)
	if m == nil {
		return false
	}
	m.w.Kill()
	m.b.Kill()
	d.retire(m)
	return true
}

func (d *Deployment) remove(id string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, m := range d.workers {
		if m.id == id {
			d.workers = append(d.workers[:i:i], d.workers[i+1:]...)
			return m
		}
	}
	return nil
}

// retire keeps a stopped worker for its counts. A killed worker may still be ending, so they are read
// on demand.
func (d *Deployment) retire(m *member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = append(d.dead, m.w)
}

// Runs returns how often each computation ran, summed over all workers of this process, stopped
// ones included.
func (d *Deployment) Runs() map[worker.RunKey]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	workers := slices.Clone(d.dead)
	for _, m := range d.workers {
		workers = append(workers, m.w)
	}
	sum := map[worker.RunKey]uint64{}
	for _, w := range workers {
		for k, n := range w.Runs() { // any order: sums
			sum[k] += n
		}
	}
	return sum
}

// Stats returns the memory statistics of each running worker, by worker id.
func (d *Deployment) Stats() map[string]worker.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	stats := make(map[string]worker.Stats, len(d.workers))
	for _, m := range d.workers {
		stats[m.id] = m.w.Stats()
	}
	return stats
}

// Counts sums up the commits, receipts and refused appends of the running workers.
func (d *Deployment) Counts() worker.Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	var sum worker.Counts
	for _, m := range d.workers {
		c := m.w.Counts()
		sum.Commits += c.Commits
		sum.Receipts += c.Receipts
		sum.Refused += c.Refused
	}
	return sum
}

// Client returns a client of the deployment. Stop closes it.
func (d *Deployment) Client() *Client { return d.client }

// Bus returns the client's bus.
func (d *Deployment) Bus() *bus.Bus { return d.clientBus }

// Server returns the embedded server, nil when connected to an outside one.
func (d *Deployment) Server() *embedded.Server { return d.server }

// Stop ends the deployment in good order: workers save their spaces and leave, the coordinator
// ends, the embedded server shuts down. Events that are not handled yet wait for the next start. It
// waits for a running handler until that returns, is abandoned (RunLimit), or ctx ends; after 5 s
// it logs which handler it waits for. A handler that is cut off leaves nothing of its transaction.
func (d *Deployment) Stop(ctx context.Context) error {
	d.mu.Lock()
	if d.stopped() == nil {
		close(d.ending)
	}
	d.mu.Unlock()
	d.adding.Wait() // each ends, because its context has
	err := d.StopWorkers(ctx)
	d.drains.Wait() // none begins any more
	if d.coordinator != nil {
		d.coordinator.Stop()
	}
	if d.client != nil {
		d.client.Close()
	}
	for _, b := range []*bus.Bus{d.coordBus, d.clientBus} {
		if b != nil {
			b.Close()
		}
	}
	if d.revoke != nil {
		d.revoke()
	}
	if d.server != nil {
		d.server.Shutdown()
	}
	return err
}

// StopWorkers makes the workers save their spaces and leave. After it has returned without an
// error, the STATE buckets are up to date with the logs.
func (d *Deployment) StopWorkers(ctx context.Context) error {
	d.mu.Lock()
	members := d.workers
	d.workers = nil
	d.mu.Unlock()
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			errs[i] = m.w.Stop(ctx)
			m.b.Close()
			d.retire(m)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
