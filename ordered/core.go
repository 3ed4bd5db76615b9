package ordered

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// core is one key: its ledger, which is all of the protocol, and the handlers that are called for its events.
// It does no I/O and has no clock; a key's goroutine owns it.
type core struct {
	*ledger.Ledger
	cfg  *Config
	code *running
	// overran is what an earlier host of the key was given up for, nil for nothing.
	overran *overrun
}

const (
	// shortestPause and longestPause are the pauses after conflicts, and longestPause bounds the pause after an attempt that
	// ended with its process.
	shortestPause, longestPause = 25 * time.Millisecond, time.Second
)

// forLedgers configures the ledgers of all keys. The limits that Config does not have are the defaults of spaces.
func (c *Config) forLedgers(maxPayload int) error {
	c.ledger = ledger.Config{Runtime: c.id, PauseMin: shortestPause, PauseMax: longestPause, Limits: ledger.Limits{
		MaxCommitBytes: maxPayload / 2, MaxChain: c.MaxChain, EventRetries: c.Attempts, RetryMin: c.RetryMin, RetryMax: c.RetryMax,
	}}
	return c.ledger.Fill()
}

// newCore makes the core of a key out of its confirmed state.
func newCore(cfg *Config, rep *replica.Replica, code *running, overran *overrun) *core {
	c := &core{cfg: cfg, code: code, overran: overran}
	c.Ledger = ledger.New(&cfg.ledger, ledger.Host{Attempt: c.attempt, Lost: c.lost, Unconverged: c.unconverged}, rep)
	if overran != nil && !overran.noted {
		c.Overran(overran.stream, overran.event, overran.recorded)
	}
	return c
}

// work handles up to n events at a time, and reports whether there may be more to do at once.
func (c *core) work(n int, now time.Duration, wall time.Time) bool {
	c.Tick(now)
	c.Clock(wall)
	if !c.Begins() {
		return false
	}
	c.BeginPass()
	c.TakeTurn() // what found no room is handled first: nothing else is
	for range n {
		if c.Full() || c.Next() != ledger.Handled {
			return false
		}
	}
	return true
}

// attempt calls the handler of an event and says what came of it.
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
	c.code.begins(ev, c.AttemptRecorded(ev.Stream, ev.ID))
	result, err := call(h, tx, ev)
	if late := c.code.returned(); late != nil {
		err = late
	}
	if err == nil {
		err = tx.err
	}
	v, bad := model.Of(result)
	if err == nil && bad != nil {
		err = fmt.Errorf("result: %w", bad)
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
		if p := recover(); p != nil {
			err = fmt.Errorf("handler of %s panicked: %v", ev.Stream, p)
		}
	}()
	handed := *ev // the handler may change it
	return h(tx, &handed)
}

// lost is the error of an event whose handler did not come back from any of its attempts.
func (c *core) lost(_ *model.Event, tries int, overran bool) error {
	if overran {
		return c.overran.error(tries)
	}
	return fmt.Errorf("the handler never came back: the process ended, or it was given up, in each of %d attempts", tries)
}

// unconverged reports an event that has met conflicts for too long.
func (c *core) unconverged(ev *model.Event, conflicts int) {
	c.cfg.faults.Warn("handle an event: other runtimes change its key meanwhile, again and again", ev.Space,
		"key", ev.Space, "stream", ev.Stream, "event", ev.ID, "conflicts", conflicts)
}

// recorded takes in that the log has a commit: an attempt that it counts is not to be counted again by the
// next life.
func (c *core) recorded(commit *model.Commit) {
	if t := commit.Trying; t != nil && c.overran != nil && c.overran.event == t.Event && receipts.By(c.overran.stream) == t.By {
		c.overran.noted = true
	}
}

// owned reports whether the key was taken over, and by no other runtime since.
func (c *core) owned() bool { return c.Entered() }

// asks reports whether the key can be taken over: it is not, and that is not under way.
func (c *core) asks() bool {
	return c.Phase() == ledger.Outside || c.Phase() == ledger.Deposed
}
