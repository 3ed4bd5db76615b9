package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
)

// host runs one space: a loop that passes inputs to the core, carries out the core's
// requests, and sets the one timer. The core belongs to the goroutine of run; all
// others go through the inbox.
type host struct {
	env   *env
	space string
	core  Core
	start beginning
	*lifetime
	inbox *inbox
	looks looks
	loop  *loop // of the components below

	code Code
	// The space in its log, its bucket and its lane.
	appends appends
	remote  remoteCommits
	saver   saver
	lane    laneReads
	// graph is the demand of others for documents of the space, and its own for theirs; nil without a graph.
	graph  *graphParts
	gauge  gauge
	traced traced
	// Whether the space stays in memory, and what its partition knows about it.
	resident  resident
	idle      idleness
	published published
}

// beginning is the state that a host starts with.
type beginning struct {
	program Program
	// wanted is the program that the space was last assigned. It is guarded by the
	// partition's lock.
	wanted Program
	// joins reports that the host attaches to its space instead of taking it over. Such a
	// host saves nothing.
	joins bool
	// behind, if not 0, is the lane sequence up to which events of the space were delivered before this host
	// existed: they must be read again.
	behind uint64
	// lookup reports that the space was loaded to be read or watched.
	lookup bool
	// overruns are the reasons why earlier hosts of the space were given up; Until is relative to now.
	overruns []Overrun
}

// appends are the commits that a host appends to the log, one at a time.
type appends struct {
	inFlight bool
	// nonce distinguishes this host's appends from those of any other host that the space has had under the
	// same worker id, which a lagging replica may not show: the log recognizes an append by its id.
	nonce string
}

// published is a host's progress as other goroutines may read it.
type published struct {
	// due is when the space must be woken in case the host ends, in milliseconds since
	// 1970; 0 for never, unknownDue if that is not known.
	due atomic.Int64
	// timers is the number of events that wait for a time.
	timers atomic.Int64
	// oldest is when the oldest event that has not ended was stored, in milliseconds since 1970; 0 if there is none, or without metrics.
	oldest atomic.Int64
	// missed is the last record of jobs whose times were passed over; only the loop uses it.
	missed Missed
}

// env is the surroundings of a host: its worker's partition, or its attachment. ctx ends with that, which
// then waits for tasks.
type env struct {
	ctx      context.Context
	bus      Bus
	horizon  time.Duration // how long the deployment remembers events
	cfg      *Config
	tasks    *sync.WaitGroup
	counters *counters
	clock    *serverclock.Clock
	// home and residency are nil in an attachment.
	home      home
	residency *residency
}

// home is the host's interface to its partition.
type home interface {
	// able records that a space is served, unable that it could not be loaded, and overran that its host was given up.
	able(space string)
	unable(space string)
	overran(space string, o *Overrun)
	// lost records that the store has lost data of a space, isRefused reports whether a space is refused for
	// that reason, and accepted records that it can be served, in which case the partition restarts if the
	// space was refused.
	lost(*model.LossError)
	isRefused(space string) bool
	accepted(space string) (wasRefused bool)
	// comparison waits until the lane is compared with the log, and returns the range that is in doubt.
	comparison(ctx context.Context) (*truncation.Range, error)
	// appended counts bytes that a space appends to the log.
	appended(bytes int)
	// leave evicts a host, unless it is still needed.
	leave(*host) bool
	// isUnborn records that the space of a host has no log, unless there is something to handle for it, and
	// exists that it has one.
	isUnborn(h *host, behind *disallowedLog) bool
	exists(space string)
}

// newHost returns a host, not running yet, of a space with the backlog b.
func newHost(e *env, name string, program Program, b laneBacklog) *host {
	h := &host{
		env: e, space: name, start: beginning{program: program, wanted: program, behind: b.last}, lifetime: newLifetime(e.ctx),
		inbox: newInbox(b, &e.counters.backlog, e.cfg.BacklogBytes), appends: appends{nonce: rand.Text()},
	}
	h.published.due.Store(unknownDue)
	h.gauge = newGauge(e.cfg.measures, e.cfg.Spans != nil)
	h.traced.to, h.traced.space = e.cfg.Spans, name
	h.loop = &loop{
		space: name, ctx: h.ctx, done: h.done, bus: e.bus, cfg: e.cfg,
		beside: e.tasks.Go, call: h.call, wake: h.inbox.wakeLoop, report: h.report, fail: h.fail,
	}
	h.code.loop = h.loop
	h.code.abandoned, h.code.giveUp = &e.counters.abandoned, h.abandon
	h.resident.space, h.resident.wake = name, h.loop.wake
	h.remote.loop, h.remote.seen = h.loop, h.code.cancelMarked
	h.saver.floor.least = e.cfg.LeastMarkers
	readMissed := func() { h.remote.readMissed(h.integrator()) }
	h.saver.init(name, e.bus, h.loop.report, readMissed, func() { h.missedCommits(readMissed) })
	return h
}

// call makes the loop run f.
func (h *host) call(f func()) { h.inbox.call(f) }

// observe adds or removes an observation of a document, or, without a document, records that another
// runtime has attached to the space or detached.
func (h *host) observe(doc string, on bool) {
	attended := func() {}
	if doc == "" && on {
		attended = h.code.awaitMark(h.loop)
	}
	h.call(func() {
		h.idle.active = true
		switch {
		case doc == "":
			attended()
			h.remote.attend(h.integrator(), on)
			return
		case !on:
			h.idle.observed--
			h.graph.core.Unobserve(doc)
			return
		}
		h.idle.observed++
		if err := h.graph.core.Observe(doc); err != nil {
			h.env.cfg.faults.Warn("observe", h.space+" "+doc, "space", h.space, "document", doc, "error", err)
		}
	})
}

// run is the host's goroutine. It ends when the partition does, when another runtime has taken the space
// over, when the space cannot be served, or when it is evicted.
func (h *host) run() {
	defer h.end()
	err := h.activate()
	if h.env.residency != nil {
		h.env.residency.loaded(h.start.lookup)
	}
	if err != nil {
		h.traced.entered(h.started, err)
		h.failToActivate(err)
		return
	}
	h.loaded.Store(true)
	if h.env.home != nil {
		h.env.home.able(h.space)
	}
	h.enter()
	for h.ctx.Err() == nil {
		h.core.Clock(h.env.cfg.Now())
		h.takeIn()
		ready := h.core.Settle(h.now())
		if h.ctx.Err() != nil {
			return // cut off before the end: its work is discarded
		}
		h.publish()
		h.carryOut(ready)
		h.performTasks()
		h.answerReads()
		if h.core.Deposed() {
			h.deposed.Store(true)
			return
		}
		if h.draining && h.finished() || h.considerLeaving(ready) {
			return
		}
		at, due := h.graphAt()
		if !ready.More && !due && !h.inbox.canTake(h.core) {
			h.sleep(earliest(earliest(ready.Wake, at), earliest(h.idle.stays, h.dueIn(ready.Due))))
		}
	}
}

// serve runs the host, and calls then when it has ended or was given up. The goroutine of a host that was
// given up continues, and is not waited for.
func (h *host) serve(tasks *sync.WaitGroup, then func()) {
	tasks.Add(1)
	ended := func() {
		defer tasks.Done()
		then()
	}
	h.gone = ended
	go func() { // ends with the host, or when the code returns that the host was given up for
		defer func() { // code may have ended the goroutine
			left, givenUp := h.code.leaves()
			if givenUp {
				h.env.counters.abandoned.Done()
				return
			}
			if left != nil && h.env.home != nil {
				h.env.home.overran(h.space, left)
			}
			go ended() // tasks waits for this goroutine; it cannot panic
		}()
		h.run()
	}()
}

// abandon gives the host up because of code that does not return.
func (h *host) abandon(o *Overrun) {
	err := h.start.program.LimitError(o)
	h.env.cfg.Logger.Error(h.env.cfg.Terms.Code+" is given up; its "+h.env.cfg.Terms.Space+" is loaded again and goes on, and the goroutine stays until the code returns",
		"space", h.space, "worker", h.env.cfg.ID, "error", err)
	if h.env.home == nil {
		h.failWith(err)
	} else {
		h.noteUnsaved(err) // the next owner reads from the log what is done and not saved
		h.env.home.overran(h.space, o)
	}
	h.end()
	go h.gone() // ends with the partition, or the attachment
}

// earliest returns the earlier of two times, of which 0 is never.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// sleep waits for input or for the time at which a gate opens.
func (h *host) sleep(until time.Duration) {
	if h.graph == nil && !h.appends.inFlight { // a process has very many spaces without a graph, most of them idle
		h.core.ReleaseMemory()
		h.inbox.releaseMemory()
	}
	var timer <-chan time.Time
	if until > 0 {
		t := time.NewTimer(until - h.now())
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-h.inbox.wake:
	case <-timer:
	case <-h.ctx.Done():
	}
}

// takeIn passes the inbox to the core, events only as far as the core
// has room.
func (h *host) takeIn() {
	h.remote.take(h.integrator())
	in, whole := h.inbox.take(h.core)
	if len(in.events) > 0 {
		h.idle.active = true
	}
	for i := range in.events {
		h.gauge.read(&in.events[i])
		h.traced.attribute(&in.events[i])
		h.core.Offer(h.eventOf(&in.events[i]))
	}
	if in.left > 0 {
		h.core.LeftInStream(in.left)
	}
	for _, f := range in.calls {
		f()
	}
	if len(in.events)+len(in.calls) > 0 { // the pass may take long
		h.inbox.offered(&in, h.core)
	}
	h.takeInGraph(&in)
	if whole {
		h.inbox.recycle(in.events)
	}
	h.remote.take(h.integrator()) // unless the calls have made transactions, or until one is answered
	if g := h.graph; g != nil && !h.draining {
		g.directs.make(g.core, h.now())
	}
}

// publish records the progress of the space for other goroutines.
func (h *host) publish() {
	saved := h.core.Seq() <= h.saver.saved || h.unborn.Load()
	h.inbox.done(h.core, h.core.Owned() && h.core.Durable() && saved, h.saver.lane)
	h.saver.clean.Store(saved && !h.saver.unobserved())
	h.publishDue()
	h.published.timers.Store(int64(h.core.WaitForTime()))
	h.published.oldest.Store(h.gauge.oldest())
	if m := h.core.LastMissed(); m != h.published.missed {
		h.published.missed = m
		h.env.counters.missed.note(h.space, m)
	}
}

// carryOut executes the core's requests.
func (h *host) carryOut(r Ready) {
	if h.graph != nil {
		h.graph.carryOut(&r)
	}
	if r.Refill && !h.lane.refilling && h.inbox.queued.hasRoom(h.core) {
		h.lane.refill(h.loop, r.RefillAfter, h.inbox.page(), func(events []model.Message) { h.offerAll(events) })
	}
	h.lane.recall(h.loop, h.core)
	if r.Append != nil {
		h.append(r.Append)
	}
	if g := h.graph; g != nil {
		g.directs.redo(g.core, h.now(), r.Undone)
		g.core.TasksUndone(r.Undone)
	}
}

// fail ends the host with an error.
func (h *host) fail(what string, err error) {
	h.report(what, err)
	h.endWith(fmt.Errorf("%s: %w", what, err))
}

// failToActivate ends a host that failed to load. The load is retried after a pause.
func (h *host) failToActivate(err error) {
	isOver := h.ctx.Err() != nil || errors.Is(err, model.ErrStopped) || errors.Is(err, model.ErrRewound)
	if lost := model.LossOf(err); h.env.home != nil && !isOver && (lost == nil || lost.Kind == model.LossOfCommit) {
		h.env.home.unable(h.space)
	}
	h.fail("activate space", err)
}

// report logs an error, unless the host is just being stopped.
func (h *host) report(what string, err error) {
	if lost := model.LossOf(err); lost != nil && h.env.home != nil {
		h.env.home.lost(lost)
		h.recordUnreadable(err)
		return
	}
	if h.ctx.Err() == nil && !errors.Is(err, model.ErrStopped) && !errors.Is(err, model.ErrRewound) { // the bus has reported a rewind already
		h.env.cfg.faults.Error(what, h.space, "space", h.space, "worker", h.env.cfg.ID, "error", err)
	}
}

// drain makes the host finish running work, save and end. It returns when that is done; the error reports
// that saving failed. A host that is still being loaded has nothing to finish, and might not end by itself
// for long, so it is ended.
func (h *host) drain() error {
	h.call(func() { h.draining = true; h.core.Hold() })
	if !h.loaded.Load() {
		h.cancel()
	}
	select {
	case <-h.done:
	case <-h.ctx.Done():
	}
	return h.notSaved()
}

// finished reports whether a draining host has nothing in flight, and saves.
func (h *host) finished() bool {
	if h.appends.inFlight || h.saver.saving || !h.core.Settled() {
		return false
	}
	if !h.start.joins {
		h.saveRest()
	}
	h.publish()
	return true
}

// handedOver reports whether the host ended because it was drained or stopped, or was evicted, rather than
// because it was deposed or failed.
func (h *host) handedOver() bool { return h.idle.left || h.draining || h.env.ctx.Err() != nil }

// checkpoint saves the space if it has changed. It does not block the loop.
func (h *host) checkpoint() {
	if h.saver.asked.Swap(true) {
		return // the loop has not processed the last request yet
	}
	h.call(func() {
		h.saver.asked.Store(false)
		c, ok := h.saver.due(h.core, h.nextDue)
		if !ok {
			return
		}
		h.saver.saving = true
		saved := h.traced.saves()
		h.env.tasks.Go(func() { // ends with the save
			err := h.saver.save(h.ctx, &c)
			saved(len(c.Docs), err)
			h.call(func() { h.saver.settle(h.core, c, err) })
		})
	})
}

// saveRest saves the remaining changes, as the last act of a draining host.
func (h *host) saveRest() {
	c, ok := h.saver.due(h.core, h.nextDue)
	if !ok {
		return
	}
	saved := h.traced.saves()
	err := h.saver.save(h.ctx, &c)
	saved(len(c.Docs), err)
	h.saver.settle(h.core, c, err)
	if err != nil && !errors.Is(err, model.ErrOutdated) {
		h.noteUnsaved(fmt.Errorf("save space %s: %w", h.space, err))
	}
}
