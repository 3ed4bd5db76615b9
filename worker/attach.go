package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
)

// AttachConfig says how an application takes part in a space.
type AttachConfig struct {
	// ID names the runtime in the log. It should be unique among those that are alive; if
	// it is not, nothing is lost, but the log does not tell whose a commit was.
	ID string
	// Space is the space, Program the one that its owner runs. Without a program, what
	// others derive can be read here and is computed by them alone; nothing then tells
	// that a document is derived and not to be written.
	Space   string
	Program *space.Program
	// Events has the attachment handle the space's events, too, in a race with the owner
	// and with others that do: each event still takes effect once. Without, it leaves
	// them to those, and the follow-ups that its own transactions send. It needs the Program
	// then: an event for which it has no handler ends refused, whatever the owner has.
	Events bool

	// Settings are those of the space's core; Space, Runtime, WithoutEvents and Trace are
	// filled in. ConflictWindow bounds for how long a transaction is made again.
	Settings space.Config

	// Handover is how long Close goes on while no server can be reached; default 5 s.
	Handover time.Duration

	// OnError, OnConsole, Logger and Tracer are as in Config.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)
	Logger    *slog.Logger
	Tracer    trace.Tracer
}

// Attachment is a runtime that takes part in one space beside its owner, in the process of
// an application (DESIGN 8.4). It runs the same code over the same log: its transactions
// apply at once to its own copy of the space, its computations run as far as they are
// observed here, and what it commits reaches the others through the log, as their commits
// reach it. Nobody is in charge: a commit that does not stand on all that came before is
// refused, undone, and made again on top of that. All methods are safe for concurrent use.
type Attachment struct {
	bus  Bus // not that of a session
	host *host
	// ctx ends with the attachment; tasks are waited for then.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	counters counters
	// read is the lane sequence up to which events were handed to the host; it belongs to
	// who reads the lane.
	read uint64
}

// Attach takes part in a space, and returns when that is in the log. The bus stays the
// caller's, and must outlive the attachment.
func Attach(ctx context.Context, bus Bus, cfg AttachConfig) (*Attachment, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	own, err := cfg.config()
	if err != nil {
		return nil, err
	}
	if n := bus.MaxPayload(); n < minPayload {
		return nil, fmt.Errorf("attach %s: the server takes messages of %d bytes (max_payload), a commit needs %d at least", cfg.ID, n, minPayload)
	}
	outer := bus
	bus = port.Session(bus)
	a := &Attachment{bus: outer}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	e := &env{ctx: a.ctx, bus: bus, horizon: bus.Horizon(), cfg: own, tasks: &a.tasks, clock: &serverclock.Clock{}, counters: &a.counters, runs: newRunCounts()}
	program := cfg.Program
	if program == nil {
		program = space.NewProgram("none")
	}
	a.host = newHost(e, cfg.Space, program, backlog{})
	a.host.joins = true
	a.host.call(func() { a.host.attend(true) })
	if cfg.Events {
		a.keep("follow lane", a.followLane)
	}
	lease := a.lease()
	lease.renew()                              // before anything is in the log: it may be closed before the first tick
	a.host.serve(&a.tasks, a.cancel)           // ends with the host, and ends all else then
	a.tasks.Go(func() { a.keepLease(&lease) }) // ends with a.ctx
	a.keep("answer roll calls", a.answerRollCalls)
	select {
	case <-a.host.entered:
		return a, nil
	case <-a.host.done:
		err = a.host.whyEnded()
	case <-ctx.Done():
		err = ctx.Err()
	}
	a.end()
	return nil, fmt.Errorf("attach %s to space %s: %w", cfg.ID, cfg.Space, err)
}

// check refuses what cannot be, before anything is in the log.
func (c *AttachConfig) check() error {
	if err := model.CheckName("attachment", c.ID); err != nil {
		return err
	}
	if err := model.CheckName("space", c.Space); err != nil {
		return fmt.Errorf("attach %s: %w", c.ID, err)
	}
	if c.Events && c.Program == nil {
		return fmt.Errorf("attach %s to space %s: Events needs the Program that the space's owner runs; without it every event that it wins would be refused", c.ID, c.Space)
	}
	return nil
}

// config is what the host wants of a worker's.
func (c *AttachConfig) config() (*Config, error) {
	cfg := Config{
		ID: c.ID, Programs: func(string) (*space.Program, error) { return nil, nil }, // not asked: there is one
		Handover: c.Handover, Space: c.Settings, OnError: c.OnError, OnConsole: c.OnConsole, Logger: c.Logger, Tracer: c.Tracer,
	}
	cfg.Space.WithoutEvents = !c.Events
	return &cfg, cfg.fill()
}

// Transact makes a transaction and returns when it is in the log, on top of all that was
// there before. f may be called several times: whenever the commit of another runtime has
// undone it, it is made again on what that has left, at once and then after growing pauses,
// for as long as Settings.ConflictWindow. Then the answer is a space.ConvergenceError, of
// which OnError is told, too. An error of f is returned, and f is not called again. by says
// in the log who it was.
//
// f runs in the loop of the space: it must be quick, and must not call the attachment.
// Derived documents are read as they stand, without waiting for what is not up to date.
//
// When ctx ends first, the transaction may be in the log or not; it is not made again.
func (a *Attachment) Transact(ctx context.Context, by string, f func(tx *space.Tx) error) error {
	if err := a.host.submit(ctx, by, f); err != nil {
		return fmt.Errorf("space %s: %w", a.host.space, err)
	}
	return nil
}

// Get returns a document as it stands here, with what is not in the log yet. A derived one
// is as it was when it was last needed by anybody; Observe it to have it kept.
func (a *Attachment) Get(ctx context.Context, doc string) (v model.Value, err error) {
	err = a.do(ctx, func() { v = a.host.core.Value(doc) })
	return v, err
}

// Observe has a document kept up to date here, with all that it is computed from, until
// Unobserve is called as often.
func (a *Attachment) Observe(ctx context.Context, doc string) error {
	var refused error
	if err := a.do(ctx, func() { refused = a.host.core.Observe(doc) }); err != nil {
		return err
	}
	return refused
}

// Unobserve takes one Observe back.
func (a *Attachment) Unobserve(ctx context.Context, doc string) error {
	return a.do(ctx, func() { a.host.core.Unobserve(doc) })
}

// Runs returns how often each node has run here, whether or not that was committed.
func (a *Attachment) Runs() map[string]uint64 {
	out := map[string]uint64{}
	for k, n := range a.host.env.runs.all() { // any order: into a map
		out[k.Node] = n
	}
	return out
}

// Counts returns what the attachment has got into the log.
func (a *Attachment) Counts() Counts { return a.counters.read() }

// Done is closed when the attachment has ended: by Close, or because it could not go on.
func (a *Attachment) Done() <-chan struct{} { return a.host.done }

// Close finishes what is under way and ends the attachment. Transactions that could not
// be made yet end with model.ErrStopped. What is not finished by the end of ctx is cut off, and so
// is everything if no server can be reached for as long as a handover may take; then the error is
// port.ErrNoServer.
func (a *Attachment) Close(ctx context.Context) error {
	limit := a.host.env.cfg.Handover
	ctx, end := port.WhileReachable(ctx, a.bus, limit)
	defer end()
	a.host.call(func() { a.host.draining = true; a.host.core.Hold() })
	select {
	case <-a.host.done:
	case <-ctx.Done():
	}
	a.cancel()
	if cutOff(ctx) {
		ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		return errors.Join(fmt.Errorf("close the attachment to space %s: %w for %v; transactions that were not confirmed may be in the log or not",
			a.host.space, port.ErrNoServer, limit), wait(ended, &a.tasks))
	}
	if err := wait(ctx, &a.tasks); err != nil {
		return fmt.Errorf("close the attachment to space %s: %w", a.host.space, err)
	}
	return nil
}

// Kill ends the attachment as the end of its process would: nothing is finished.
func (a *Attachment) Kill() { a.cancel() }

// end stops all that is running.
func (a *Attachment) end() {
	a.cancel()
	a.tasks.Wait()
}

// do has the loop do something, and waits for that.
func (a *Attachment) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	a.host.call(func() { f(); close(done) })
	select {
	case <-done:
		return nil
	case <-a.host.done:
		return fmt.Errorf("space %s: %w", a.host.space, a.host.whyEnded())
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Attachment) keep(what string, f func(ctx context.Context) error) {
	a.tasks.Go(func() { retry(a.ctx, a.host.env.cfg, what, a.host.space, []any{"space", a.host.space}, f) })
}

// lease tells the owner that there is an attachment, so that it follows the log. It is
// never taken back: the owner is to see the last commits, too, and it runs out by itself.
func (a *Attachment) lease() Watch {
	return Watch{Bus: a.host.env.bus, Space: a.host.space, Watcher: a.host.env.cfg.ID + "-" + a.host.nonce, Logger: a.host.env.cfg.Logger}
}

func (a *Attachment) keepLease(w *Watch) {
	t := time.NewTicker(LeaseTTL / 3)
	defer t.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-t.C:
		}
		if err := port.Over(a.host.env.bus); err != nil { // one that appends nothing would not hear of it
			a.host.fail("stay attached", err)
			return
		}
		w.renew()
		a.host.tellLate()
	}
}

func (a *Attachment) answerRollCalls(ctx context.Context) error {
	w := a.lease()
	return w.answerRollCalls(ctx)
}

// followLane hands the host the events of its space. It reads those of all spaces of the
// partition, from the first that is not done with, unless that is of a space that was set aside: a
// lane is one stream.
func (a *Attachment) followLane(ctx context.Context) error {
	bus := a.host.env.bus
	partition := model.PartitionOf(a.host.space, bus.Partitions())
	from, err := bus.LoadPosition(ctx, partition, positionLane)
	if err != nil {
		return err
	}
	ahead, err := bus.LoadAhead(ctx, partition)
	if err != nil {
		return err
	}
	a.read = max(a.read, from, ahead.DoneWith(a.host.space))
	return bus.FollowLane(ctx, partition, a.read, func(m model.Message) {
		a.read = m.Seq
		if m.Space != a.host.space || a.host.tryOffer(m) {
			return
		}
		if !a.host.waitForRoom(mostCredit) || !a.host.tryOffer(m) {
			a.host.leave(m.Seq)
		}
	})
}
