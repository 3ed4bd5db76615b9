package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// AttachConfig configures an attachment.
type AttachConfig struct {
	// Config has the options and the logger; its ID names the runtime in the log. Programs is not called.
	Config
	// Space is the space, and Runs the program that it runs here, whose cores have a graph.
	Space string
	Runs  Program
	// Events makes the attachment handle the space's events as well.
	Events bool
}

// Attachment is a runtime that takes part in one space beside its owner, in the process of an application. It
// runs the same code over the same log: its transactions apply at once to its own copy of the space, its
// nodes run as far as documents are observed here, and commits travel in both directions through the log. No
// runtime is in charge: a commit that does not follow all earlier commits is refused, undone, and retried on
// top of them. All methods are safe for concurrent use.
type Attachment struct {
	bus  Bus // not the bus of a session
	host *host
	// ctx ends with the attachment, which then waits for tasks.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	counters counters
	// read is the lane sequence up to which events were passed to the host; only the
	// lane reader uses it.
	read uint64
}

// Attach joins a space, and returns when the join is in the log. The caller owns the bus, which must outlive
// the attachment.
func Attach(ctx context.Context, bus Bus, cfg AttachConfig) (*Attachment, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	own := &cfg.Config
	own.Programs = func(string) (Program, error) { return nil, nil } // not called: the host has its program
	if err := own.fill(); err != nil {
		return nil, err
	}
	if n := bus.MaxPayload(); n < minPayload {
		return nil, fmt.Errorf("attach %s: the server takes messages of %d bytes (max_payload), a commit needs %d at least", cfg.ID, n, minPayload)
	}
	outer := bus
	bus = port.Session(bus)
	a := &Attachment{bus: outer}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	e := &env{ctx: a.ctx, bus: bus, horizon: bus.Horizon(), cfg: own, tasks: &a.tasks, clock: &serverclock.Clock{}, counters: &a.counters}
	a.host = newHost(e, cfg.Space, cfg.Runs, laneBacklog{})
	a.host.start.joins, a.host.entered = true, make(chan struct{})
	a.host.call(func() { a.host.remote.attend(a.host.integrator(), true) })
	if cfg.Events {
		a.keep("follow lane", a.followLane)
	}
	lease := a.lease()
	lease.Renew()                              // before anything is in the log: the attachment may be closed before the first tick
	a.host.serve(&a.tasks, a.cancel)           // ends with the host, and cancels the attachment then
	a.tasks.Go(func() { a.keepLease(&lease) }) // ends with a.ctx
	a.keep("answer roll calls", a.answerRollCalls)
	var err error
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

// check returns an error for an invalid configuration, before anything is in the log.
func (c *AttachConfig) check() error {
	if err := model.CheckName("attachment", c.ID); err != nil {
		return err
	}
	if err := model.CheckName("space", c.Space); err != nil {
		return fmt.Errorf("attach %s: %w", c.ID, err)
	}
	return nil
}

// Transact makes a transaction and returns when it is in the log, on top of all earlier commits. do makes it in the
// core and returns its number. It may be called several times: whenever the commit of another runtime has undone the
// transaction, on the new state, at once and then after growing pauses, for as long as the conflict window.
//
// If ctx ends first, the transaction may or may not be in the log; it is not retried.
func (a *Attachment) Transact(ctx context.Context, by string, do func(Graph) (uint64, error)) error {
	if err := a.submit(ctx, &direct{ctx: ctx, by: by, do: do, done: make(chan error, 1)}); err != nil {
		return fmt.Errorf("space %s: %w", a.host.space, err)
	}
	return nil
}

// submit makes the loop run a transaction, and waits for the outcome.
func (a *Attachment) submit(ctx context.Context, d *direct) error {
	h := a.host
	h.call(func() { h.graph.directs.waiting = append(h.graph.directs.waiting, d) })
	select {
	case err := <-d.done:
		return err
	case <-h.done:
		select {
		case err := <-d.done: // at the last moment
			return err
		default:
			return h.whyEnded()
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Get returns a document as it is here, including changes that are not in the log yet. A derived
// document has the value of its last use; Observe it to keep it current.
func (a *Attachment) Get(ctx context.Context, doc string) (v model.Value, err error) {
	err = a.do(ctx, func() { v = a.host.graph.core.Value(doc) })
	return v, err
}

// Observe keeps a document current here, with all its inputs, until Unobserve
// has been called as often as Observe.
func (a *Attachment) Observe(ctx context.Context, doc string) error {
	var refused error
	if err := a.do(ctx, func() { refused = a.host.graph.core.Observe(doc) }); err != nil {
		return err
	}
	return refused
}

// Unobserve cancels one Observe.
func (a *Attachment) Unobserve(ctx context.Context, doc string) error {
	return a.do(ctx, func() { a.host.graph.core.Unobserve(doc) })
}

// Counts returns the attachment's counts of what is in the log.
func (a *Attachment) Counts() Counts { return a.counters.read() }

// Done is closed when the attachment has ended, by Close or because of an error.
func (a *Attachment) Done() <-chan struct{} { return a.host.done }

// Close finishes running work and ends the attachment. Transactions that could not run yet end with
// model.ErrStopped. Work that is not finished when ctx ends is cut off. All work is cut off if no server can
// be reached for as long as a handover may take; Close then returns port.ErrNoServer.
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

// Kill ends the attachment like the end of its process: nothing is finished.
func (a *Attachment) Kill() { a.cancel() }

// end stops everything that runs.
func (a *Attachment) end() {
	a.cancel()
	a.tasks.Wait()
}

// do runs f in the loop, and waits for it.
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

// lease informs the owner that an attachment exists, so that the owner follows the log. It is
// not cancelled: the owner must see the last commits as well, and the lease expires by itself.
func (a *Attachment) lease() history.Lease {
	return history.Lease{Bus: a.host.env.bus, Space: a.host.space, Watcher: a.host.env.cfg.ID + "-" + a.host.appends.nonce, Logger: a.host.env.cfg.Logger}
}

func (a *Attachment) keepLease(l *history.Lease) {
	t := time.NewTicker(model.LeaseTTL / 3)
	defer t.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-t.C:
		}
		if err := port.Over(a.host.env.bus); err != nil { // a runtime that appends nothing would not detect it otherwise
			a.host.fail("stay attached", err)
			return
		}
		l.Renew()
		a.host.code.warnLate(time.Now())
	}
}

func (a *Attachment) answerRollCalls(ctx context.Context) error {
	l := a.lease()
	return l.AnswerRollCalls(ctx)
}

// followLane passes the events of the space to the host. It reads the events of all spaces of the
// partition, since a lane is one stream. It starts at the first event that is not done,
// unless that event belongs to a space that was set aside.
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
		if m.Space != a.host.space || a.host.inbox.tryOffer(m) {
			return
		}
		if !a.host.inbox.waitForRoom(a.host.ctx.Done(), mostCredit) || !a.host.inbox.tryOffer(m) {
			a.host.inbox.leave(m.Seq)
		}
	})
}
