package worker

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/host"
	"github.com/settlehq/settle/worker/tasks"
)

// Bus is everything that a worker needs from the outside world; see package port.
type Bus = port.Bus

// Options are the tunable limits and intervals of a worker; see host.Options.
type Options = host.Options

// Types that a worker reports, see package status.
type (
	Stats          = host.Stats
	PartitionStats = host.PartitionStats
	Counts         = host.Counts
	TakenError     = host.TakenError
	Held           = host.Held
)

// StuckAfter is how long a space holds the position back before it counts as stuck.
const StuckAfter = host.StuckAfter

// Worker hosts the spaces of its partitions, each with a graph. See the package comment.
type Worker struct {
	*host.Worker
	runs     *RunCounts
	profile  *profile
	programs func(space string) (*space.Program, error)
}

// New returns a worker that is not running yet.
func New(bus Bus, cfg Config) (*Worker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	e, err := newEngine(&cfg)
	if err != nil {
		return nil, err
	}
	e.deployment = bus.Prefix()
	if p, is := bus.(port.Performers); is {
		e.offers = tasks.NewOffers(p.Offer)
	}
	w, err := host.New(bus, e.config())
	if err != nil {
		return nil, err
	}
	e.limits = tasks.NewLimits(w)
	w.OnLimits(e.limits.Changed)
	w.AddFigures(e.unsettled.describe)
	w.AddFigures(e.failing.describe)
	w.AddFigures(e.differing.describe)
	w.AddFigures(func(f *status.Figures) { e.failingNodes.describe(f, w.Readers) })
	if e.offers != nil {
		w.AddFigures(e.offers.Describe)
	}
	return &Worker{w, e.runs, e.profile, cfg.Programs}, nil
}

// Runs returns the number of runs of every computation on this worker, whether or not the run was committed.
// The runs of spaces that were evicted long ago are under the zero RunKey.
func (w *Worker) Runs() map[RunKey]uint64 { return w.runs.all() }

// IsInternal reports whether clients may not send on a stream of a space: false if this worker has no program for it.
func (w *Worker) IsInternal(space, stream string) bool {
	if w.programs == nil {
		return false
	}
	p, err := w.programs(space)
	return err == nil && p != nil && p.IsInternal(stream)
}

// engine makes the cores of a worker or of an attachment, and holds what they share.
type engine struct {
	cfg  *Config
	runs *RunCounts
	// deployment is the prefix of the deployment.
	deployment string
	// profile measures runs while there are questions about them.
	profile *profile
	// tally counts for the metrics, nil without a meter.
	tally *tally
	// unsettled are the spaces in which nodes do not converge.
	unsettled unsettled
	differing differing
	// failingNodes are the spaces with computations that are needed and fail.
	failingNodes failingNodes
	// failing are the actions whose tasks fail.
	failing failing
	// performing limits the concurrent attempts at tasks; nil in an attachment.
	performing *tasks.Slots
	// limits are those of the fleet; nil in an attachment.
	limits *tasks.Limits
	// offers hand tasks to performers; nil if the bus cannot, and in an attachment.
	offers *tasks.Offers
}

func newEngine(cfg *Config) (*engine, error) {
	m, err := newTally(cfg.Meter, cfg.Hosted)
	if err != nil {
		return nil, fmt.Errorf("worker %s: make the instruments of its metrics: %w", cfg.ID, err)
	}
	return &engine{cfg: cfg, runs: newRunCounts(), profile: &profile{}, tally: m, performing: tasks.NewSlots(cfg.Performing)}, nil
}

// config returns the configuration of the process that hosts the spaces.
func (e *engine) config() host.Config {
	c := e.cfg
	own := host.Config{
		ID: c.ID, Options: c.Options, Program: c.Program, Host: c.Host, Version: c.Version, Connection: c.Connection,
		Now: c.Now, Logger: c.Logger, Left: e.runs.leaves, UnderWay: e.underWay, BeforeLeaving: c.beforeLeaving, Meter: c.Meter, Access: c.Access,
		Spans: hostSpans(c.Tracer, c.ID), LeastMarkers: c.LeastMarkers, Computed: c.Computed,
	}
	if c.Programs != nil {
		own.Programs = e.programs
	}
	if e.tally != nil {
		own.Observe = e.tally.observe
	}
	return own
}

func (e *engine) programs(name string) (host.Program, error) {
	p, err := e.cfg.Programs(name)
	if p == nil || err != nil {
		return nil, err
	}
	return program{p, e}, nil
}

// underWay lists the attempts at tasks that have not returned.
func (e *engine) underWay() (list [][]any) {
	for _, a := range e.performing.UnderWay() {
		list = append(list, []any{"space", a.Space, "action", a.Action, "key", a.Key})
	}
	return list
}

// program is a program and the engine that makes cores for it.
type program struct {
	*space.Program
	engine *engine
}

// Label returns the name and the version of the program.
func (p program) Label() (name, version string) { return p.Name, p.Version }

// MadeByReads reports whether a read or a watch creates a space.
func (p program) MadeByReads(space string) bool { return p.IsMadeByReads(space) }

// LimitError returns the error of code that has not returned within its limit.
func (p program) LimitError(o *host.Overrun) error { return limitError(o) }

func limitError(o *host.Overrun) error {
	return &space.LimitError{Stream: o.Stream, Event: o.Event, Node: o.Node, Limit: o.Limit}
}

// NewCore makes the core of a space.
func (p program) NewCore(of *host.Access, st model.SpaceState, r *replica.Replica) (host.Core, error) {
	c := &core{of: of, engine: p.engine, clock: runClock{profile: p.engine.profile, space: of.Space}, tracing: tracing{space: of.Space, cfg: p.engine.cfg, spans: newSpans(p.engine.cfg.Tracer, of)}}
	c.load.to, c.load.space = p.engine.tally, of.Space
	if c.load.to != nil {
		context.AfterFunc(of.Ctx, c.load.end)
	}
	var err error
	if c.Space, err = space.New(c.settings(), p.Program, r); err != nil {
		return nil, err
	}
	c.tasks = tasks.New(tasks.Host{
		Deployment: p.engine.deployment, Space: of.Space, Ctx: of.Ctx, Slots: p.engine.performing, Offers: p.engine.offers, Limits: p.engine.limits, Logger: p.engine.cfg.Logger, Warn: of.Warn,
		Now: of.Now, Wall: p.engine.cfg.wall, Go: of.Go, Call: of.Call, Send: of.Send, Report: of.Report, Attempts: c.attempts(), Offered: c.engine.offered,
		Ended: func(end tasks.End) { c.engine.failing.ended(of.Space, &end) },
	})
	context.AfterFunc(of.Ctx, func() { c.engine.failing.left(of.Space) })
	c.Rehydrate(observations(st, c.build()))
	c.OnError(c.onError)
	c.OnConsole(c.onConsole)
	return c, nil
}

// Context returns a context that ends when the code that uses the transaction must return: its limit is
// reached, the space is handed over, or the code has returned. In a space that no worker serves, as in a
// test, it never ends.
func Context(tx *space.Tx) context.Context {
	if of := tx.Guard().Context; of != nil { // see core.settings
		return of()
	}
	return context.Background()
}
