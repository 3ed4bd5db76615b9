package ordered

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/host"
)

// program is what all keys of a server run: the handlers.
type program struct {
	cfg *Config

	mu     sync.Mutex
	ledger *ledger.Config // of the last cores that were made, which share it
}

// Label returns the name of the program, for the log.
func (p *program) Label() (name, version string) { return p.cfg.Name, "" }

// MadeByReads is false: a space of handlers alone is not read.
func (p *program) MadeByReads(string) bool { return false }

// LimitError returns the error of a handler that has not returned within its limit.
func (p *program) LimitError(o *host.Overrun) error { return &limitError{o, 0} }

// NewCore makes the core of a key.
func (p *program) NewCore(of *host.Access, _ model.SpaceState, r *replica.Replica) (host.Core, error) {
	cfg, err := p.configured(of.Limits)
	if err != nil {
		return nil, err
	}
	return newCore(p.cfg, cfg, r, of.Code), nil
}

const (
	// shortestPause and longestPause are the pauses after conflicts; longestPause also bounds the pause after
	// an attempt that ended with its process.
	shortestPause, longestPause = 25 * time.Millisecond, time.Second
)

// configured returns the configuration of ledgers with the limits, which only change with the server.
func (p *program) configured(limits ledger.Limits) (*ledger.Config, error) {
	if err := limits.Fill(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ledger == nil || p.ledger.Limits != limits {
		p.ledger = &ledger.Config{Runtime: p.cfg.id, PauseMin: shortestPause, PauseMax: longestPause, Limits: limits}
	}
	return p.ledger, nil
}

// core is one key: its ledger, which is the whole protocol, and the handlers that are called for its events.
// It does no I/O and has no clock; the loop of its host owns it.
type core struct {
	ledger.Hosted
	ledger *ledger.Ledger
	cfg    *Config
	code   code
	// at is the time of the last step.
	at time.Duration
	// overran is the last code for which an earlier host of the key was given up, nil for none.
	overran *host.Overrun
}

// code records which handler runs, and ends a handler that is given up. host.Code implements it.
type code interface {
	Handles(stream, event string, base uint64, recorded bool, limit time.Duration)
	Returned(handler bool) *host.Overrun
	Used()
	Context() context.Context
}

// newCore makes the core of a key from its confirmed state.
func newCore(cfg *Config, own *ledger.Config, r *replica.Replica, code code) *core {
	c := &core{cfg: cfg, code: code}
	c.ledger = ledger.New(own, ledger.Host{Attempt: c.attempt, Lost: c.lost, Unconverged: c.unconverged}, r)
	c.Hosted = c.ledger.Hosted()
	return c
}

// batch is how many events are handled before the answers of the log are checked.
const batch = 64

// Settle handles events, and returns what the host must do for the key.
func (c *core) Settle(now time.Duration) host.Ready {
	l := c.ledger
	l.Tick(now)
	c.at = now
	if l.Begins() {
		c.handle()
	}
	r := host.Ready{Append: l.Append(), Due: l.Due(), More: l.Begins() && !l.Full() && l.HasWork()}
	if l.Head() != nil && l.NotBefore() > now {
		r.Wake = l.NotBefore()
	}
	if after, ok := l.Lane().Refill(); ok && l.Begins() {
		r.Refill, r.RefillAfter = true, after
	}
	return r
}

func (c *core) handle() {
	c.ledger.BeginPass()
	c.ledger.TakeTurn() // events without room are handled first: nothing else is
	for range batch {
		if c.ledger.Full() || c.ledger.Next() != ledger.Handled {
			return
		}
	}
}

// Confirm records that the append in flight is in the log at seq.
func (c *core) Confirm(seq uint64) error {
	_, err := c.ledger.Confirm(seq)
	return err
}

// Refuse records that the append in flight was refused, Integrate adds the commits of other runtimes, and
// Resume follows the last of them.
func (c *core) Refuse()                                   { c.ledger.Refuse() }
func (c *core) Integrate(entries ...model.LogEntry) error { return c.ledger.Integrate(entries...) }
func (c *core) Resume()                                   { c.ledger.Resume() }

// Durable reports whether all work is done, and in the log.
func (c *core) Durable() bool {
	return c.Deposed() || c.ledger.Running() && c.ledger.Lane().Quiet() && c.Settled()
}

// Throttled and LastMissed concern effects and jobs, which a key does not have.
func (c *core) Throttled() time.Duration { return 0 }
func (c *core) LastMissed() host.Missed  { return host.Missed{} }

// StuckAt returns the event at which the key stands still, and why.
func (c *core) StuckAt(clock func(time.Duration) string) (s status.Stuck, waits bool) {
	head, waits := c.ledger.HeadInfo()
	if !waits {
		s.Cause, s.Reason = status.CauseTurn, "it waits for its turn: another server has it, or it is at work"
		return s, false
	}
	s.Stream, s.Event = head.Event.Stream, head.Event.ID
	switch until := c.ledger.NotBefore(); {
	case until > c.at && head.Attempts > 0:
		s.Cause, s.Reason = status.CauseRetry, fmt.Sprintf("an error that may pass has ended %d of at most %d attempts, the next is at %s: %s", head.Attempts, c.cfg.Attempts, clock(until), head.Reason)
	case until > c.at:
		s.Cause, s.Reason = status.CauseRetry, "tried again at "+clock(until)+", after a conflict, or an attempt whose process has ended"
	default:
		s.Cause, s.Reason = status.CauseTurn, "is to be handled"
	}
	return s, true
}

// Overran records that an earlier host of the key was given up because of a handler.
func (c *core) Overran(o host.Overrun) {
	c.overran = &o
	c.ledger.Overran(o.Stream, o.Event, o.Recorded)
}

// attempt calls the handler of an event and returns the outcome.
func (c *core) attempt(ev *model.Event) *ledger.Attempt {
	tx := &Tx{core: c}
	a := &tx.attempt
	a.Event, a.Trace = ev, ev.Trace
	h := c.cfg.Handlers[ev.Stream]
	switch {
	case ev.Invalid != "":
		a.Receipt = receipts.Refused(ev, ev.Invalid)
		return a
	case h == nil && ev.Stream == model.Undelivered:
		a.Receipt = receipts.Handled(ev, model.Value{})
		return a
	case h == nil:
		a.Receipt = receipts.Refused(ev, "there is no handler for stream "+ev.Stream)
		return a
	}
	c.code.Handles(ev.Stream, ev.ID, c.Seq(), c.AttemptRecorded(ev.Stream, ev.ID), c.cfg.Within[ev.Stream])
	result, err := call(h, tx, ev)
	if late := c.code.Returned(true); late != nil {
		err = Transient(&limitError{late, 0})
	}
	if err == nil {
		err = tx.err
	}
	v, bad := model.Of(result)
	if err == nil && bad != nil {
		err = fmt.Errorf("result: %w", bad)
	}
	if no := (*receipts.Rejection)(nil); errors.As(err, &no) && !isTransient(err) {
		tx.drop()
		a.Receipt = receipts.Rejected(ev, no)
		return a
	}
	if err != nil {
		tx.drop()
		a.Receipt, a.Err, a.MayPass = receipts.Failed(ev, err), err, isTransient(err)
		return a
	}
	a.Receipt = receipts.Handled(ev, v)
	return a
}

func call(h Handler, tx *Tx, ev *model.Event) (result any, err error) {
	defer func() {
		tx.ended = true
		if p := recover(); p != nil {
			err = fmt.Errorf("handler of %s panicked: %v", ev.Stream, p)
		}
	}()
	handed := *ev // the handler may change it
	return h(tx, &handed)
}

// lost returns the error of an event whose handler did not return from any attempt.
func (c *core) lost(_ *model.Event, tries int, overran bool) error {
	if overran {
		return &limitError{c.overran, tries}
	}
	return fmt.Errorf("the handler never came back: the process ended, or it was given up, in each of %d attempts", tries)
}

// unconverged reports an event that has had conflicts for too long.
func (c *core) unconverged(ev *model.Event, conflicts int) {
	c.cfg.faults.Warn("handle an event: other runtimes change its key meanwhile, again and again", ev.Space,
		"key", ev.Space, "stream", ev.Stream, "event", ev.ID, "conflicts", conflicts)
}

// limitError reports a handler that has not returned in tries attempts, or has returned too late if tries is
// 0.
type limitError struct {
	*host.Overrun
	tries int
}

func (e *limitError) Error() string {
	times := ""
	if e.tries > 0 {
		times = fmt.Sprintf(" in any of %d attempts", e.tries)
	}
	if e.Limit == 0 {
		return fmt.Sprintf("event %s: the handler of stream %s has not returned%s: it has ended its goroutine (runtime.Goexit, as FailNow of a test does)", e.Event, e.Stream, times)
	}
	return fmt.Sprintf("event %s: the handler of stream %s has not returned within %s%s. Divide what takes long over several events, or do it elsewhere and send an event when it is done; ordered.Config has RunLimit, and Within for one stream", e.Event, e.Stream, e.Limit, times)
}
