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

// Code that does not return cannot be stopped in Go, and the core that has called it cannot go on.
// So the host is given up, as if its process had died, and another one is made out of the log;
// what the code does to its transaction after that, it does to a core that nobody asks for a
// commit any more (docs/adr/0034).
//
//	after the limit             the context of the handler ends (space.Tx.Host)
//	if it returns then          the attempt has failed, and is made again as after any error
//	                            that may pass
//	after the limit and a grace the host is given up
//
// Time is counted in looks (package runlimit).

const (
	// nodeRest is for how long a node is held back that was given up; it is doubled each time, up
	// to longestNodeRest.
	nodeRest        = time.Minute
	longestNodeRest = time.Hour
)

// limiter is how an underWay holds code to its limit. All of it is guarded by its lock.
type limiter struct {
	host *host
	runlimit.Looks
	over bool // the limit was reached
	full bool // it would have been given up, but for runlimit.MaxAbandoned
	// cancelled says that the log has a mark by which the event of the handler ends as cancelled
	// (space.CancelDoc): nothing that the handler does takes effect any more.
	cancelled bool

	ctx   context.Context // that the handler has asked for
	leave context.CancelFunc
}

// moves notes that code begins. u.mu is held.
func (u *underWay) moves(limit time.Duration) {
	u.over, u.full = false, false
	u.Begin(limit, u.check)
	if u.cancelled { // the handler goes on, and a node of it begins
		u.over = true
		u.End(u.check)
	}
}

// cancel ends the attempt at an event that is marked in the log, if it is under way, as at its limit: the context
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

// check looks at whether what is under way has been so for too long.
func (u *underWay) check() {
	if abandoned := u.judge(); abandoned != nil {
		u.host.abandon(abandoned)
	}
}

// judge is check without its consequences for others. It returns what is given up.
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
	if !u.host.env.counters.abandoned.Add() { // the next look may find room
		u.tellFull()
		return nil
	}
	u.host.serving.givenUp.Store(true)
	o := &space.Overrun{Stream: u.stream, Event: u.event, Limit: u.Limit}
	if n := len(u.nodes); n > 0 && !u.cancelled { // a node that had time left is not held back for it
		o.Stream, o.Event, o.Node = "", "", u.nodes[n-1]
	}
	return o
}

// tellFull tells an operator, once, that what is under way is not given up for want of room. u.mu is held.
func (u *underWay) tellFull() {
	if !u.full {
		u.full = true
		u.host.env.cfg.Logger.Error("a handler or node has not returned within its limit and is not given up, as too many were that have not returned since; restart the worker",
			slices.Concat([]any{"space", u.host.space}, u.what(), []any{"limit", u.Limit, "given_up", runlimit.MaxAbandoned})...)
	}
}

// returned takes in that code has come back. That of a host that was given up goes no further.
func (u *underWay) returned(handler bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.host.serving.givenUp.Load() {
		runtime.Goexit() // which unlocks it
	}
	u.Return()
	if !handler {
		u.nodes = u.nodes[:len(u.nodes)-1]
		u.Limit = u.host.env.cfg.RunLimit // of the one that it stands in, if it does
		if u.idle() {
			u.rest()
		}
		return nil
	}
	var err error
	late := u.over && !u.cancelled // the commit of what is cancelled is refused: its head has moved
	if late || u.ctx != nil && errors.Is(u.ctx.Err(), context.DeadlineExceeded) {
		err = space.Transient(&space.LimitError{Stream: u.stream, Event: u.event, Limit: u.Limit})
	}
	u.rest()
	return err
}

// rest notes that no code is under way any more. u.mu is held.
func (u *underWay) rest() {
	u.stream, u.event, u.nodes, u.over = "", "", u.nodes[:0], false
	u.cancelled = false
	u.endContext()
	u.ctx = nil
}

// leaves notes that the goroutine of the host ends, and reports whether that was given up. One that has
// not been, and is in code, was ended by that.
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

// Context is one that ends when the handler or node that is under way is to return: its limit is
// reached, or the space is taken away. It ends with the attempt, too. Nodes that stand in each other
// have one. Its deadline is by the clock, so code that has asked for it is held to that, too.
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

// guard is what the core is told of this.
func (h *host) guard() space.Guard {
	return space.Guard{Used: h.code.used, Returned: h.code.returned, Host: &h.code}
}

// serving is the goroutine of a host, as far as others have to do with it.
type serving struct {
	givenUp atomic.Bool
	ending  sync.Once
	left    func() // called when the host is given up, instead of when it ends
}

// serve runs the host, and calls then when it has ended or was given up. Of one that was given up
// the goroutine goes on, and nobody waits for it.
func (h *host) serve(tasks *sync.WaitGroup, then func()) {
	tasks.Add(1)
	ended := func() {
		defer tasks.Done()
		then()
	}
	h.serving.left = ended
	go func() { // ends with the host, or when the code returns that it was given up for
		defer func() { // code may have ended the goroutine
			if h.code.leaves() {
				h.env.counters.abandoned.Done()
				return
			}
			go ended() // which tasks waits for; a panic does not
		}()
		h.run()
	}()
}

// end says that the host has ended.
func (h *host) end() {
	h.serving.ending.Do(func() {
		h.cancel()
		close(h.done)
	})
}

// abandon gives the host up for code that does not return.
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
		h.unsaved = err // what it has done and not saved, the next owner reads from the log
		h.mu.Unlock()
		p.mu.Lock()
		p.overruns.note(h.space, o, time.Now())
		p.mu.Unlock()
	}
	h.end()
	go h.serving.left() // ends with the partition, or the attachment
}

// overruns are what the hosts of a partition were given up for, by space.
type overruns map[string]*overran

// overran is what the hosts of a space were given up for: the last event, and nodes.
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

// of is what the next host of a space is to know: of nodes, for how long they are to rest yet. The event
// is told once: from then on the log has it.
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
