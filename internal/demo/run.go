package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/examples/flights/audit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// Result is the result of a run.
type Result struct {
	Verdict *audit.Verdict
	Report  Report
	// Watched are the watched airports, and Ranking is their ranking by the space nation.
	Watched []string
	Ranking []flights.Rank
	Tally   flights.Tally
	// Flights is the size of the input, Partitions the number of logs read for the verdict.
	Flights, Partitions int
	// Notes are the events of workers.
	Notes []Note
	// Processes is set if the workers were processes of their own.
	Processes bool
	// Elapsed is the time from the first send until everything was handled and every watched
	// document was current.
	Elapsed time.Duration
	// Stalled is what was missing when the run gave up waiting, or "".
	Stalled string
}

const (
	// heartbeat makes a dead worker noticed within half a second.
	heartbeat = 250 * time.Millisecond
	// checkpoint bounds how far the STATE buckets trail the logs.
	checkpoint = 500 * time.Millisecond
	// stopTimeout is how long an orderly end may take.
	stopTimeout = 30 * time.Second
)

// run is a run in progress.
type run struct {
	o      Options
	place  place
	screen Screen

	tally   flights.Tally
	watched []string
	logs    *logs
	watches *watches
	sent    atomic.Int64

	mu      sync.Mutex
	phase   Phase
	workers []string
	notes   []Note
	began   time.Time // of the sending
	took    time.Duration
}

// Run runs the demonstration. The error is about a run that could not be completed; whether a
// completed one is verified is in the result.
func Run(ctx context.Context, o Options, screen Screen) (res *Result, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.fill()
	r := &run{o: o, screen: screen, phase: Starting, tally: flights.Plain(o.Flights)}
	r.watched = r.tally.Busiest(watchedAirports)
	r.logs = newLogs(o.Flights, time.Now())
	r.watches = newWatches(r.watched, r.tally, r.logs.changed)
	if r.place, err = choosePlace(&o); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.place.remove()) }()
	screen.Start(r.plan(), r.snapshot)
	defer screen.Stop()
	d, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop(ctx, d)) }()
	r.set(func() { r.workers = d.Workers() })
	res = &Result{Processes: o.Processes, Watched: r.watched, Tally: r.tally, Flights: len(o.Flights), Partitions: o.Partitions}
	return res, r.play(ctx, d, res)
}

// deployment is the part of a deployment that a run needs, in this process or in several.
type deployment interface {
	fleet
	Bus() *bus.Bus
	Client() *settle.Client
	Runs() map[worker.RunKey]uint64
	StopWorkers(ctx context.Context) error
	Stop(ctx context.Context) error
}

func (r *run) start(ctx context.Context) (deployment, error) {
	if r.o.Processes {
		return startProcesses(ctx, r.config(), r.o.Program)
	}
	cfg := r.config()
	var err error
	if cfg.Programs, err = programs(r.o.Program); err != nil {
		return nil, err
	}
	return settle.Start(ctx, cfg)
}

func (r *run) config() settle.Config {
	return settle.Config{
		Workers: r.o.Workers,
		Server:  r.place.server(r.o.Fsync), Bus: r.place.bus(r.o.Partitions),
		Options: worker.Options{Heartbeat: heartbeat, Checkpoint: checkpoint}, Tracer: r.o.Tracer,
	}
}

// play sends, waits and verifies.
func (r *run) play(ctx context.Context, d deployment, res *Result) error {
	stalled, err := r.handle(ctx, d)
	if err != nil {
		return err
	}
	res.Stalled, res.Elapsed = stalled, r.took
	r.set(func() { r.phase = Saving })
	if err := stopWorkers(ctx, d); err != nil {
		return err
	}
	r.set(func() { r.phase = Verifying })
	return r.verify(ctx, d, res)
}

// handle runs all concurrent parts until everything is handled and every watched document is
// current. stalled is what was missing when it gave up waiting.
func (r *run) handle(ctx context.Context, d deployment) (stalled string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks, ctx := errgroup.WithContext(ctx)
	for p := range r.o.Partitions {
		tasks.Go(func() error { return r.logs.follow(ctx, d.Bus(), p) })
	}
	tasks.Go(func() error { return r.watches.run(ctx, d.Client()) })
	if err := r.configure(ctx, d.Client()); err != nil {
		cancel()
		return "", failure(tasks.Wait(), err)
	}
	r.set(func() { r.phase, r.began = Running, time.Now() })
	sent, killed := make(chan error, 1), make(chan struct{})
	go func() { sent <- r.send(ctx, d.Client()) }() // ends when all is answered, or with the deployment
	tasks.Go(func() error {
		defer close(killed)
		return r.chaos(ctx, d)
	})
	stalled, err = r.wait(ctx, sent, killed)
	r.set(func() { r.took = time.Since(r.began) })
	cancel()
	return stalled, failure(tasks.Wait(), err)
}

// failure returns the first cause: the error of a task, if there is one, since the others follow
// from it.
func failure(task, own error) error {
	if task != nil && !errors.Is(task, context.Canceled) {
		return task
	}
	return own
}

// configure tells the space nation which airports to rank.
func (r *run) configure(ctx context.Context, c *settle.Client) error {
	rc, err := c.Call(ctx, settle.Outgoing{
		Space: flights.Nation, Stream: flights.StreamConfigure, ID: settle.ID("configure"),
		Payload: flights.Configure{Airports: r.watched},
	})
	if err == nil && rc.Outcome != model.Handled {
		err = fmt.Errorf("the event was %s: %s", rc.Outcome, rc.Error)
	}
	if err != nil {
		return fmt.Errorf("configure the ranking: %w", err)
	}
	return nil
}

// chunk is the number of departures that are sent before they are all sent again, as by a client
// without knowledge of which ones arrived.
const chunk = 256

// send sends all departures in the order of the input, each Duplicate times.
func (r *run) send(ctx context.Context, c *settle.Client) error {
	sender := c.Sender()
	count := func(_ model.SendResult, err error) {
		if err == nil {
			r.sent.Add(1)
		}
	}
	for part := range slices.Chunk(r.o.Flights, chunk) {
		for range r.o.Duplicate {
			for i := range part {
				f := &part[i]
				e := settle.Outgoing{Space: f.Origin, Stream: flights.StreamDeparture, ID: settle.ID(f.ID), Payload: f.Departure()}
				if err := sender.Send(ctx, e, count); err != nil {
					return err
				}
			}
		}
	}
	return sender.Flush(ctx)
}

// wait returns when everything is sent, killed, handled and shown, or when nothing has entered the
// logs for Patience.
func (r *run) wait(ctx context.Context, sent <-chan error, killed <-chan struct{}) (stalled string, err error) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for sent != nil || killed != nil || !r.logs.done() || !r.watches.current() {
		select {
		case err := <-sent:
			if sent = nil; err != nil {
				return "", fmt.Errorf("send departures: %w", err)
			}
		case <-killed:
			killed = nil
		case <-r.logs.changed:
		case <-look.C:
			if r.logs.quietFor(time.Now()) < r.o.Patience {
				continue
			}
			if sent != nil {
				return "", fmt.Errorf("the server answers no sends, and nothing was handled for %v", r.o.Patience)
			}
			return r.missing(), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "", nil
}

// missing describes what a stalled run waits for.
func (r *run) missing() string {
	s := r.snapshot()
	what := "a watched document that is not current"
	if s.Handled < s.Total {
		what = fmt.Sprintf("%d departures and arrivals", s.Total-s.Handled)
	}
	return fmt.Sprintf("nothing entered the logs for %v; still missing: %s", r.o.Patience, what)
}

// verify reads back the stored data and checks it.
func (r *run) verify(ctx context.Context, d deployment, res *Result) error {
	stored, err := audit.Read(ctx, d.Bus().JetStream(), r.place.prefix)
	if err != nil {
		return fmt.Errorf("read back what is stored: %w", err)
	}
	facts := audit.Run{Flights: r.o.Flights, Watched: r.watched, UnobservedRuns: r.unobserved(d)}
	facts.Punctuality, facts.Ranking = r.watches.last()
	if res.Verdict, err = audit.Judge(facts, stored); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	res.Ranking = r.watches.ranking()
	r.set(func() { res.Notes = r.notes })
	res.report(int(r.sent.Load()))
	return nil
}

// unobserved counts the runs of unobserved computations, on all workers, dead ones included.
func (r *run) unobserved(d deployment) int {
	n := uint64(0)
	for k, runs := range d.Runs() {
		if k.Node == flights.DocPunctuality && !slices.Contains(r.watched, k.Space) {
			n += runs
		}
	}
	return int(n)
}

// stop ends the deployment, whatever the result of the run.
func (r *run) stop(ctx context.Context, d deployment) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	r.set(func() {
		if r.phase == Running {
			r.phase = Saving // it was interrupted
		}
	})
	err := d.StopWorkers(ctx)
	if r.place.leavesStreams() {
		err = errors.Join(err, audit.Remove(ctx, d.Bus().JetStream(), r.place.prefix, r.o.Partitions))
	}
	return errors.Join(err, d.Stop(ctx))
}

func stopWorkers(ctx context.Context, d deployment) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := d.StopWorkers(ctx); err != nil {
		return fmt.Errorf("stop the workers: %w", err)
	}
	return nil
}

// set changes the state that the screen shows.
func (r *run) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// note passes an event to the screen.
func (r *run) note(n Note) {
	s := r.snapshot()
	n.Share = float64(s.Handled) / float64(s.Total)
	r.set(func() {
		r.notes = append(r.notes, n)
		switch n.Kind {
		case Killed:
			r.workers = slices.DeleteFunc(slices.Clone(r.workers), func(id string) bool { return id == n.Worker })
		case Joined:
			r.workers = append(slices.Clone(r.workers), n.Worker)
		}
	})
	r.screen.Note(n)
}

func (r *run) plan() Plan {
	return Plan{
		Flights: len(r.o.Flights), Airports: len(r.tally), Workers: r.o.Workers, Processes: r.o.Processes, Partitions: r.o.Partitions,
		Server: r.place.describe(r.o.Fsync),
	}
}

func (r *run) snapshot() Snapshot {
	s := Snapshot{Sent: int(r.sent.Load()), ToSend: len(r.o.Flights) * r.o.Duplicate, Total: r.logs.total}
	r.set(func() {
		s.Phase, s.Workers = r.phase, r.workers
		switch {
		case r.took > 0:
			s.Elapsed = r.took
		case !r.began.IsZero():
			s.Elapsed = time.Since(r.began)
		}
	})
	r.watches.snapshot(&s)
	r.logs.snapshot(&s)
	return s
}
