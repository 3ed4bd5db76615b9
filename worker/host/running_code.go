package host

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/runlimit"
)

// Go cannot stop code that does not return, and the core that has called it cannot continue.
// So the host is given up, as if its process had died, and a new one is built from the log.
// The code may go on to change its transaction, but in a core whose commits are no longer
// sent (docs/adr/0034).
//
//	after the limit             the context of the handler ends (Code.Context)
//	if it returns then          the attempt has failed, and is retried as after any
//	                            transient error
//	after the limit and a grace the host is given up
//
// Time is counted in ticks (package runlimit).

// codeLate is the time after which a handler or a node that has not returned is logged:
// its space makes no progress until it does.
const codeLate = 10 * time.Second

// Code is the application code that a host's loop is in: a handler, or a node, or
// nodes nested in either, when a run computes its inputs. The loop records begin and end, and
// other goroutines check it periodically, so that no run has to read the clock.
type Code struct {
	loop *loop // of the host
	// abandoned counts the goroutines in code that was given up, and giveUp gives the host up. givenUp reports
	// that this has been decided.
	abandoned *runlimit.Abandoned
	giveUp    func(*Overrun)
	givenUp   atomic.Bool

	mu            sync.Mutex
	stream, event string   // of the handler, "" if there is none
	recorded      bool     // the log has a record of the handler's attempt
	nodes         []string // the innermost last
	begun         uint64   // runs that were not nested
	handled       eventName
	limiter
	// base is the log sequence that the present or last handler is based on.
	base atomic.Uint64

	// seen is the value of begun at the last check, first at seenAt; told reports that the run was logged.
	seen     uint64
	seenAt   time.Time
	reported bool
}

// eventName identifies an event of a space.
type eventName struct{ stream, event string }

// Handles records that the handler of an event begins. It is based on the log up to base, recorded reports that the
// log has a record of the attempt, and limit, if not 0, is the limit of the stream.
func (u *Code) Handles(stream, event string, base uint64, recorded bool, limit time.Duration) {
	u.base.Store(base)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stream, u.event, u.recorded = stream, event, recorded
	u.handled = eventName{stream, event}
	u.begun++
	u.moves(cmp.Or(limit, u.loop.cfg.RunLimit))
}

// Runs records that a node begins.
func (u *Code) Runs(node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		u.begun++
	}
	u.nodes = append(u.nodes, node)
	u.moves(u.loop.cfg.RunLimit)
}

func (u *Code) idle() bool { return u.event == "" && len(u.nodes) == 0 }

// late returns, once, code that has not returned since it was first seen, codeLate ago.
func (u *Code) late(now time.Time) (what []any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		return nil
	}
	u.look(now)
	if u.reported || now.Sub(u.seenAt) < codeLate {
		return nil
	}
	u.reported = true
	return u.what()
}

// look records that the present code has been seen. u.mu is held.
func (u *Code) look(now time.Time) {
	if u.seen != u.begun {
		u.seen, u.seenAt, u.reported = u.begun, now, false
	}
}

// since returns the code that the loop is in, and since when it is known to be there: since it was
// first seen there.
func (u *Code) since(now time.Time) (stream, event, node string, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		return "", "", "", now
	}
	u.look(now)
	if n := len(u.nodes); n > 0 {
		node = u.nodes[n-1]
	}
	return u.stream, u.event, node, u.seenAt
}

// last returns the event of the last handler call, whether or not it has returned, and the
// node that the loop is in, "" if it is in none.
func (u *Code) last() (event eventName, node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.nodes); n > 0 {
		node = u.nodes[n-1]
	}
	return u.handled, node
}

// now describes the code that the loop is in, nil if it is in none.
func (u *Code) now() []any {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.what()
}

// running returns the event whose handler the loop is in, "" if it is in none.
func (u *Code) running() (stream, event string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stream, u.event
}

func (u *Code) what() (names []any) {
	if u.event != "" {
		names = append(names, "stream", u.stream, "event", u.event)
	}
	if n := len(u.nodes); n > 0 {
		names = append(names, "node", u.nodes[n-1])
	}
	return names
}

// warnLate logs code that has not returned.
func (u *Code) warnLate(now time.Time) {
	if what := u.late(now); what != nil {
		u.loop.cfg.faults.Warn(u.loop.cfg.Terms.Code+" has not returned; nothing else of its "+u.loop.cfg.Terms.Space+" goes on until it does, and what takes long belongs elsewhere", u.loop.space,
			slices.Concat([]any{"space", u.loop.space}, what, []any{"for", codeLate})...)
	}
}

// limiter holds the limit of the running code. The lock of Code guards all fields.
type limiter struct {
	runlimit.Looks
	over bool // the limit was reached
	full bool // not given up because of runlimit.MaxAbandoned
	// cancelled reports that the log has a mark by which the event of the handler ends as cancelled
	// (ledger.CancelDoc): nothing that the handler still does takes effect.
	cancelled bool

	ctx   context.Context // requested by the handler
	leave context.CancelFunc
}

// moves records that code begins. u.mu is held.
func (u *Code) moves(limit time.Duration) {
	u.over, u.full = false, false
	u.Begin(limit, u.check)
	if u.cancelled { // the handler continues, and a node of it begins
		u.over = true
		u.End(u.check)
	}
}

// cancel ends the running attempt at an event that is marked in the log, as at its limit: the context
// of the handler ends now, and a handler that does not return within the grace is given up. The grace of a handler that
// has reached its limit before is not prolonged.
func (u *Code) cancel(stream, event string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancelled || u.event == "" || u.stream != stream || u.event != event {
		return
	}
	over := u.over
	u.cancelled, u.over = true, true
	if over {
		return
	}
	u.endContext()
	u.End(u.check)
}

// check tests whether the running code has exceeded its limit.
func (u *Code) check() {
	if abandoned := u.findOverrun(); abandoned != nil {
		u.giveUp(abandoned)
	}
}

// findOverrun is check without the consequences for other goroutines. It returns the overrun if code is given up.
func (u *Code) findOverrun() *Overrun {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() || u.givenUp.Load() || u.Limit <= 0 && !u.cancelled {
		u.Looks.Rest()
		return nil
	}
	over, late := u.Look()
	if !over {
		return nil
	}
	u.over = true
	u.endContext()
	if !late {
		return nil
	}
	if !u.abandoned.Add() { // the next tick may find room
		u.logFull()
		return nil
	}
	u.givenUp.Store(true)
	o := &Overrun{Stream: u.stream, Event: u.event, Limit: u.Limit, Recorded: u.recorded}
	if n := len(u.nodes); n > 0 && !u.cancelled { // a node with time left is not held back
		o.Stream, o.Event, o.Node = "", "", u.nodes[n-1]
	}
	return o
}

// logFull logs once that running code is not given up because the maximum is reached. u.mu is held.
func (u *Code) logFull() {
	if !u.full {
		u.full = true
		u.loop.cfg.Logger.Error(u.loop.cfg.Terms.Code+" has not returned within its limit and is not given up, as too many were that have not returned since; restart the "+u.loop.cfg.Terms.Process,
			slices.Concat([]any{"space", u.loop.space}, u.what(), []any{"limit", u.Limit, "given_up", runlimit.MaxAbandoned})...)
	}
}

// Returned records that a handler or a node has returned. In a host that was given up, it ends the goroutine.
// For a handler it returns why the attempt fails whatever the handler has returned; nil if it does not fail.
func (u *Code) Returned(handler bool) *Overrun {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.givenUp.Load() {
		runtime.Goexit() // which unlocks it
	}
	u.Return()
	if !handler {
		u.nodes = u.nodes[:len(u.nodes)-1]
		u.Limit = u.loop.cfg.RunLimit // of the surrounding code, if there is any
		if u.idle() {
			u.clear()
		}
		return nil
	}
	var why *Overrun
	late := u.over && !u.cancelled // the commit of a cancelled event is refused: its head has moved
	if late || u.ctx != nil && errors.Is(u.ctx.Err(), context.DeadlineExceeded) {
		why = &Overrun{Stream: u.stream, Event: u.event, Limit: u.Limit}
	}
	u.clear()
	return why
}

// clear records that no code runs any more. u.mu is held.
func (u *Code) clear() {
	u.stream, u.event, u.nodes, u.over = "", "", u.nodes[:0], false
	u.cancelled = false
	u.endContext()
	u.ctx = nil
}

// leaves records that the goroutine of the host ends, and reports whether the host was given up. If it was
// not, but is in application code, that code has ended the goroutine; leaves then returns the overrun of a
// handler, which counts as one that does not return.
func (u *Code) leaves() (ended *Overrun, givenUp bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.givenUp.Load() {
		return nil, true
	}
	if u.idle() {
		return nil, false
	}
	u.loop.cfg.faults.Error(u.loop.cfg.Terms.Code+" has ended its goroutine (runtime.Goexit, as FailNow of a test does); its "+u.loop.cfg.Terms.Space+" is loaded again and goes on", u.loop.space,
		append([]any{"space", u.loop.space}, u.what()...)...)
	if u.event != "" && len(u.nodes) == 0 {
		ended = &Overrun{Stream: u.stream, Event: u.event, Recorded: u.recorded}
	}
	u.clear()
	return ended, false
}

// Used is called whenever code uses its transaction. It ends the goroutine of code that was given up.
func (u *Code) Used() {
	if u.givenUp.Load() {
		runtime.Goexit()
	}
}

// Context returns a context that ends when the running handler or node must return: its limit is
// reached, or the space is taken away. It also ends with the attempt. Nested nodes
// share one context. Its deadline is by the clock, so code that has requested it is held to that as well.
func (u *Code) Context() context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		return u.loop.ctx // of a transaction of an attachment, which has no limit
	}
	switch {
	case u.ctx != nil:
	case u.Limit > 0:
		u.ctx, u.leave = context.WithTimeout(u.loop.ctx, u.Limit)
	default:
		u.ctx, u.leave = context.WithCancel(u.loop.ctx)
	}
	if u.over {
		u.leave()
	}
	return u.ctx
}

func (u *Code) endContext() {
	if u.ctx != nil {
		u.leave()
	}
}
