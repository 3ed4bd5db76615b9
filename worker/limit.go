package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/space"
)

// Go cannot stop code that does not return, and the core that has called it cannot continue.
// So the host is given up, as if its process had died, and a new one is built from the log.
// The code may go on to change its transaction, but in a core whose commits are no longer
// sent (docs/adr/0034).
//
//	after the limit             the context of the handler ends (space.Tx.Host)
//	if it returns then          the attempt has failed, and is retried as after any
//	                            transient error
//	after the limit and a grace the host is given up
//
// Time is counted in ticks (package runlimit).

const (
	// nodeRest is how long a node that was given up is held back; it is doubled each time, up
	// to longestNodeRest.
	nodeRest        = time.Minute
	longestNodeRest = time.Hour
)

// limiter holds the limit of an underWay's code. Its lock guards all fields.
type limiter struct {
	host *host
	runlimit.Looks
	over bool // the limit was reached
	full bool // not given up because of runlimit.MaxAbandoned
	// cancelled reports that the log has a mark by which the event of the handler ends as cancelled
	// (space.CancelDoc): nothing that the handler still does takes effect.
	cancelled bool

	ctx   context.Context // requested by the handler
	leave context.CancelFunc
}

// moves records that code begins. u.mu is held.
func (u *underWay) moves(limit time.Duration) {
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
func (u *underWay) cancel(stream, event string) {
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
func (u *underWay) check() {
	if abandoned := u.judge(); abandoned != nil {
		u.host.abandon(abandoned)
	}
}

// judge is check without the consequences for other goroutines. It returns the overrun if code is given up.
func (u *underWay) judge() *space.Overrun {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() || u.host.serving.givenUp.Load() || u.Limit <= 0 && !u.cancelled {
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
	if !u.host.env.counters.abandoned.Add() { // the next tick may find room
		u.tellFull()
		return nil
	}
	u.host.serving.givenUp.Store(true)
	o := &space.Overrun{Stream: u.stream, Event: u.event, Limit: u.Limit, Recorded: u.recorded}
	if n := len(u.nodes); n > 0 && !u.cancelled { // a node with time left is not held back
		o.Stream, o.Event, o.Node = "", "", u.nodes[n-1]
	}
	return o
}

// tellFull logs once that running code is not given up because the maximum is reached. u.mu is held.
func (u *underWay) tellFull() {
	if !u.full {
		u.full = true
		u.host.env.cfg.Logger.Error("a handler or node has not returned within its limit and is not given up, as too many were that have not returned since; restart the worker",
			slices.Concat([]any{"space", u.host.space}, u.what(), []any{"limit", u.Limit, "given_up", runlimit.MaxAbandoned})...)
	}
}

// returned records that code has returned. In a host that was given up, its goroutine ends here.
func (u *underWay) returned(handler bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.host.serving.givenUp.Load() {
		runtime.Goexit() // which unlocks it
	}
	u.Return()
	if !handler {
		u.nodes = u.nodes[:len(u.nodes)-1]
		u.Limit = u.host.env.cfg.RunLimit // of the surrounding code, if there is any
		if u.idle() {
			u.rest()
		}
		return nil
	}
	var err error
	late := u.over && !u.cancelled // the commit of a cancelled event is refused: its head has moved
	if late || u.ctx != nil && errors.Is(u.ctx.Err(), context.DeadlineExceeded) {
		err = space.Transient(&space.LimitError{Stream: u.stream, Event: u.event, Limit: u.Limit})
	}
	u.rest()
	return err
}

// rest records that no code runs any more. u.mu is held.
func (u *underWay) rest() {
	u.stream, u.event, u.nodes, u.over = "", "", u.nodes[:0], false
	u.cancelled = false
	u.endContext()
	u.ctx = nil
}

// leaves records that the goroutine of the host ends, and reports whether the host was given up. If it
// was not, and is in code, that code has ended the goroutine.
func (u *underWay) leaves() (givenUp bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.host.serving.givenUp.Load() {
		return true
	}
	if !u.idle() {
		u.host.env.cfg.faults.Error("a handler or node has ended its goroutine (runtime.Goexit, as FailNow of a test does); the space is loaded again and goes on", u.host.space,
			append([]any{"space", u.host.space}, u.what()...)...)
		u.rest()
	}
	return false
}

// used ends the goroutine of code that was given up.
func (u *underWay) used() {
	if u.host.serving.givenUp.Load() {
		runtime.Goexit()
	}
}

// Context returns a context that ends when the running handler or node must return: its limit is
// reached, or the space is taken away. It also ends with the attempt. Nested nodes
// share one context. Its deadline is by the clock, so code that has requested it is held to that as well.
func (u *underWay) Context() context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		return u.host.ctx // of a transaction of an attachment, which has no limit
	}
	switch {
	case u.ctx != nil:
	case u.Limit > 0:
		u.ctx, u.leave = context.WithTimeout(u.host.ctx, u.Limit)
	default:
		u.ctx, u.leave = context.WithCancel(u.host.ctx)
	}
	if u.over {
		u.leave()
	}
	return u.ctx
}

func (u *underWay) endContext() {
	if u.ctx != nil {
		u.leave()
	}
}

// guard returns the callbacks that the core calls around user code.
func (h *host) guard() space.Guard {
	return space.Guard{Used: h.code.used, Returned: h.code.returned, Host: &h.code}
}

// serving is the state of a host's goroutine that other goroutines use.
type serving struct {
	givenUp atomic.Bool
	ending  sync.Once
	left    func() // called when the host is given up, instead of when it ends
}

// serve runs the host, and calls then when it has ended or was given up. The goroutine of a host that was
// given up continues, and is not waited for.
func (h *host) serve(tasks *sync.WaitGroup, then func()) {
	tasks.Add(1)
	ended := func() {
		defer tasks.Done()
		then()
	}
	h.serving.left = ended
	go func() { // ends with the host, or when the code returns for which the host was given up
		defer func() { // code may have ended the goroutine
			if h.code.leaves() {
				h.env.counters.abandoned.Done()
				return
			}
			go ended() // tasks waits for this goroutine; it cannot panic
		}()
		h.run()
	}()
}

// end records that the host has ended.
func (h *host) end() {
	h.serving.ending.Do(func() {
		h.cancel()
		close(h.done)
	})
}

// abandon gives the host up because of code that does not return.
func (h *host) abandon(o *space.Overrun) {
	err := &space.LimitError{Stream: o.Stream, Event: o.Event, Node: o.Node, Limit: o.Limit}
	h.env.cfg.Logger.Error("a handler or node is given up; the space is loaded again and goes on, and the goroutine stays until the code returns",
		"space", h.space, "worker", h.env.cfg.ID, "error", err)
	switch p := h.env.partition; p {
	case nil:
		h.mu.Lock()
		h.failed = err
		h.mu.Unlock()
	default:
		h.mu.Lock()
		h.unsaved = err // the next owner reads from the log what is done and not saved
		h.mu.Unlock()
		p.mu.Lock()
		p.overruns.note(h.space, o, time.Now())
		p.mu.Unlock()
	}
	h.end()
	go h.serving.left() // ends with the partition, or the attachment
}

// overruns are the reasons why hosts of a partition were given up, by space.
type overruns map[string]*overran

// overran are the reasons for one space: the last event, and nodes.
type overran struct {
	event *space.Overrun
	nodes map[string]*restingNode
}

type restingNode struct {
	space.Overrun
	rest  time.Duration
	until time.Time
}

func (os overruns) note(name string, o *space.Overrun, now time.Time) {
	all := os[name]
	if all == nil {
		all = &overran{nodes: map[string]*restingNode{}}
		os[name] = all
	}
	if o.Node == "" {
		all.event = o
		return
	}
	n := all.nodes[o.Node]
	if n == nil || now.Sub(n.until) > longestNodeRest { // it has been well for long
		n = &restingNode{rest: nodeRest / 2}
		all.nodes[o.Node] = n
	}
	n.Overrun, n.rest = *o, min(2*n.rest, longestNodeRest)
	n.until = now.Add(n.rest)
}

// of returns the overruns for the next host of a space: for each node, how long it is still held back. The event
// is returned once: from then on the log has it.
func (os overruns) of(name string, now time.Time) (out []space.Overrun) {
	all := os[name]
	if all == nil {
		return nil
	}
	if all.event != nil {
		out = append(out, *all.event)
		all.event = nil
	}
	for _, n := range all.nodes { // any order: each by itself
		if o := n.Overrun; n.until.After(now) {
			o.Until = n.until.Sub(now)
			out = append(out, o)
		}
	}
	return out
}
