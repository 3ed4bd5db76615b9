package ordered

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/model"
)

// A handler that does not return cannot be stopped in Go, and the ledger whose transaction it has
// cannot go on. So the host is given up with its ledger, as if its process had died, and another one
// is made out of the log; what the handler does to its transaction after that, nobody asks for a
// commit any more (docs/adr/0034, which is of spaces, and the same).
//
//	after the limit             the context of the handler ends (Tx.Context)
//	if it returns then          the attempt has failed, and is made again as after a Transient error
//	after the limit and a grace the host is given up
//
// The next ledger counts that as an attempt that never came back (ledger.Overran).

// handlerLate is after how long an operator is told of a handler that has not returned.
const handlerLate = 10 * time.Second

// running is the handler that the loop of a host is in. The loop says what begins and ends, and
// others look at it now and then.
type running struct {
	h       *host
	givenUp atomic.Bool

	mu sync.Mutex
	// of is the event that a handler was called with last, busy says that it has not returned, and begun counts
	// the calls.
	of eventName
	// recorded reports that the log has a record of the attempt.
	recorded bool
	busy     bool
	told     bool // an operator was told that it has not returned
	over     bool // the limit was reached
	full     bool // too many are given up already
	begun    uint64
	runlimit.Looks
	ctx    context.Context
	leave  context.CancelFunc
	seen   uint64 // begun, as it was when it was looked at
	seenAt time.Time
}

// overrun is a handler that an earlier host of the key was given up for.
type overrun struct {
	stream, event string
	limit         time.Duration // 0 for one that has ended its goroutine
	recorded      bool          // the log had a record of the attempt
	noted         bool          // the log has counted the attempt since
}

// error says what an event fails with whose handler was given up so many times, 0 for one that has
// returned, too late.
func (o *overrun) error(tries int) error {
	times := ""
	if tries > 0 {
		times = fmt.Sprintf(" in any of %d attempts", tries)
	}
	if o.limit == 0 {
		return fmt.Errorf("event %s: the handler of stream %s has not returned%s: it has ended its goroutine (runtime.Goexit, as FailNow of a test does)", o.event, o.stream, times)
	}
	return fmt.Errorf("event %s: the handler of stream %s has not returned within %s%s. Divide what takes long over several events, or do it elsewhere and send an event when it is done; ordered.Config has RunLimit, and Within for one stream", o.event, o.stream, o.limit, times)
}

// begins notes that a handler is called.
func (r *running) begins(ev *model.Event, recorded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of, r.recorded, r.busy = eventName{ev.Stream, ev.ID}, recorded, true
	r.over, r.full = false, false
	r.begun++
	cfg := &r.h.p.s.cfg
	r.Begin(cmp.Or(cfg.Within[ev.Stream], cfg.RunLimit), r.check)
}

// returned takes in that the handler has come back. One that was given up goes no further. The error
// is what the attempt ends in instead of what it has returned.
func (r *running) returned() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.givenUp.Load() {
		runtime.Goexit() // which unlocks it
	}
	r.Return()
	var err error
	if r.over || r.ctx != nil && errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
		err = Transient(r.what().error(0))
	}
	r.rest()
	return err
}

// used ends the goroutine of a handler that was given up.
func (r *running) used() {
	if r.givenUp.Load() {
		runtime.Goexit()
	}
}

// context is that of the handler. Its deadline is by the clock, so a handler that has asked for it is
// held to that, too.
func (r *running) context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ctx != nil:
	case r.Limit > 0:
		r.ctx, r.leave = context.WithTimeout(r.h.p.ctx, r.Limit)
	default:
		r.ctx, r.leave = context.WithCancel(r.h.p.ctx)
	}
	if r.over || !r.busy {
		r.leave()
	}
	return r.ctx
}

func (r *running) what() *overrun {
	return &overrun{stream: r.of.stream, event: r.of.event, limit: r.Limit, recorded: r.recorded}
}

// rest notes that no handler is under way any more. r.mu is held.
func (r *running) rest() {
	r.busy, r.over = false, false
	if r.ctx != nil {
		r.leave()
		r.ctx = nil
	}
}

// check looks at whether the handler has been under way for too long.
func (r *running) check() {
	if o := r.judge(); o != nil {
		r.h.p.abandon(r.h, o)
	}
}

// judge is check without its consequences for others. It returns what the host is given up for.
func (r *running) judge() *overrun {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy || r.givenUp.Load() || r.Limit <= 0 || r.h.p.ctx.Err() != nil {
		r.Rest()
		return nil
	}
	over, late := r.Look()
	if !over {
		return nil
	}
	if r.over = true; r.ctx != nil {
		r.leave()
	}
	if !late {
		return nil
	}
	if !r.h.p.s.abandoned.Add() { // the next look may find room
		r.tellFull()
		return nil
	}
	r.givenUp.Store(true)
	return r.what()
}

// tellFull tells an operator, once, that the handler is not given up for want of room. r.mu is held.
func (r *running) tellFull() {
	if !r.full {
		r.full = true
		r.h.p.s.cfg.Logger.Error("a handler has not returned within its limit and is not given up, as too many were that have not returned since; restart the server",
			"key", r.h.key, "stream", r.of.stream, "event", r.of.event, "limit", r.Limit, "given_up", runlimit.MaxAbandoned)
	}
}

// leaves notes that the goroutine of the host ends, and returns the handler that has ended it.
func (r *running) leaves() *overrun {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy {
		return nil
	}
	o := r.what()
	o.limit = 0
	r.rest()
	return o
}

// since names the event whose handler the loop is in, "" for none, and since when it is known to be: since it
// was looked at first.
func (r *running) since(now time.Time) (stream, event string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy {
		return "", "", time.Time{}
	}
	if r.seen != r.begun {
		r.seen, r.seenAt, r.told = r.begun, now, false
	}
	return r.of.stream, r.of.event, r.seenAt
}

// eventName tells an event of a key from the others.
type eventName struct{ stream, event string }

// last names the event that a handler was called with last, whether or not it has returned.
func (r *running) last() eventName {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of
}

// tellLate tells an operator, once, of a handler that has not returned.
func (r *running) tellLate(now time.Time) {
	stream, event, since := r.since(now)
	if event == "" || now.Sub(since) < handlerLate {
		return
	}
	r.mu.Lock()
	told := r.told
	r.told = true
	r.mu.Unlock()
	if !told {
		r.h.p.s.cfg.faults.Warn("a handler has not returned; nothing else of its key goes on until it does", r.h.key,
			"key", r.h.key, "stream", stream, "event", event, "for", handlerLate)
	}
}

// start has a host serve its key. Of one that was given up the goroutine goes on, and nobody waits for
// it.
func (p *partition) start(h *host) {
	p.hosts[h.key] = h
	p.s.awake.Add(1)
	p.serving.Add(1)
	go func() { // ends when the key leaves memory, with p.ctx, or when the handler returns that it was given up for
		defer func() { // a handler may have ended the goroutine
			if h.code.givenUp.Load() {
				p.s.abandoned.Done()
				return
			}
			if o := h.code.leaves(); o != nil {
				p.replace(h, o)
			}
			go p.ended(h) // which serving waits for; a panic does not
		}()
		h.run()
	}()
}

func (p *partition) ended(h *host) {
	defer p.serving.Done()
	p.s.awake.Add(-1)
	p.bus.Forget(h.key)
}

// abandon gives a host up for a handler that does not return.
func (p *partition) abandon(h *host, o *overrun) {
	p.replace(h, o)
	p.ended(h)
}

// replace puts another host in the place of one that cannot go on. While the partition is given up there
// is none: the next owner finds the event in the lane.
func (p *partition) replace(h *host, o *overrun) {
	p.s.cfg.Logger.Error("a handler is given up; the key is loaded again and goes on, and the goroutine stays until the handler returns",
		"key", h.key, "server", p.s.cfg.id, "error", o.error(0))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining() || p.ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	next := newHost(p, h.key, h.low.Load())
	next.behind, next.last = h.last, h.last
	h.mu.Unlock()
	next.overran = o
	p.start(next)
}

// tellLate tells of the handlers of the partition that have not returned.
func (p *partition) tellLate(now time.Time) {
	for _, h := range p.all() {
		h.code.tellLate(now)
	}
}

// all are the hosts of the partition.
func (p *partition) all() []*host {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := make([]*host, 0, len(p.hosts))
	for _, h := range p.hosts { // any order: each on its own
		hosts = append(hosts, h)
	}
	return hosts
}
