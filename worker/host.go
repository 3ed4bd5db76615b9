package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// host runs one space: a loop that passes inputs to the core, carries out the core's
// requests, and sets the one timer. The core belongs to the goroutine of run; all
// others go through the inbox.
type host struct {
	env     *env
	space   string
	program *space.Program // the program at the start
	core    *space.Space
	started time.Time
	// nonce distinguishes this host's appends from those of any other host that the space has
	// had under the same worker id, which a replica that is behind may not
	// show: an append is recognised in the log by its id.
	nonce string

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	wake   chan struct{} // the inbox is not empty
	room   chan struct{} // the inbox has room again

	mu    sync.Mutex
	inbox inbox
	// last is the highest lane sequence that was delivered to the space.
	last uint64
	// unsaved is why the last save of a draining host failed.
	unsaved error
	// missed is the last record of jobs whose times were passed over; only the loop uses it.
	missed space.Missed
	// timers is the number of events that wait for a time.
	timers atomic.Int64
	// inCore is the number of events that waited in the core, and taken the lane sequence up to which it
	// had them, at the end of the loop's last pass. It was offered the events up to offered: the others
	// were left in the stream.
	inCore         int
	taken, offered uint64
	// queued limits the bytes that wait for the space.
	queued queued
	// spare is the memory of the last batch of events, reused for the next.
	spare []model.Message

	// low is the lane sequence up to which the space has nothing left to do or to
	// save, or allDone.
	low atomic.Uint64
	// due is when the space must be woken in case the host ends, in milliseconds since
	// 1970; 0 for never, unknownDue if that is not known.
	due atomic.Int64

	// wanted is the program that the space was last assigned. It is guarded by the
	// partition's lock.
	wanted *space.Program

	// rest belongs to awake. dismissed reports that the host is asked to leave; a host with
	// toDrain leaves anyway, however its neighbours are drained before it.
	rest      rest
	dismissed atomic.Bool
	toDrain   atomic.Bool
	// told is the standing that awake knows, stirred reports that something has happened since, up to
	// stirredAt in the log. The host does not leave before stays. lastSave reports that it has
	// saved in order to leave. left reports that it has left.
	told                    standing
	stirred, lastSave, left bool
	stirredAt               uint64
	// seen is stirredAt for other goroutines, compared the end of the partition's log up to which
	// the space is known to have no further commits; it belongs to retention.
	seen     atomic.Uint64
	compared uint64
	stays    time.Duration
	observed int // leases of documents

	// doneBefore is the lane sequence up to which the space was done when the host was made, or
	// when it had nothing left to do. Its own cursor may be far behind that, if it seldom
	// receives events.
	doneBefore uint64
	// behind, if not 0, is the lane sequence up to which events of the space were
	// delivered before this host existed: they must be read again.
	behind    uint64
	draining  bool
	appending bool // an append is in flight
	watch     stopwatch
	code      underWay
	serving   serving
	// overruns are the reasons why earlier hosts of the space were given up; Until is relative to now.
	overruns  []space.Overrun
	refilling bool
	recalling bool        // the events handled under reused positions are being read
	dry       int         // number of successive empty reads of the lane
	asked     atomic.Bool // a checkpoint was requested
	clean     atomic.Bool // there was nothing to save
	isLoaded  atomic.Bool // the space has been loaded
	saver     saver
	retained  retained
	mirrors   map[space.Ref]context.CancelFunc
	followed  uint64 // number of mirrored documents so far
	spans     spans
	foreign   foreign
	reads     reads

	// joins reports that the host attaches to its space instead of taking it over. Such a
	// host saves nothing. entered is closed when it has joined.
	joins   bool
	entered chan struct{}
	directs directs
	tasks   *tasks.List
	failed  error // why the host has ended, if it failed
}

// env is the surroundings of a host: its worker's partition, or its
// attachment. ctx ends with that, which then waits for tasks.
type env struct {
	ctx      context.Context
	bus      Bus
	horizon  time.Duration // how long the deployment remembers events
	cfg      *Config
	tasks    *sync.WaitGroup
	counters *counters
	runs     *RunCounts
	// performing limits the concurrent attempts at tasks, nil in an attachment.
	performing *tasks.Slots
	clock      *serverclock.Clock
	// partition and awake are nil in an attachment.
	partition *partition
	awake     *awake
}

// inbox holds the inputs that wait for the loop.
type inbox struct {
	events []model.Message
	bytes  int // of the events
	calls  []func()
	// reads are kept separately: those whose callers have given up are dropped, however long the loop is
	// busy.
	reads []*read
	// mirrored are the present values of foreign documents. A busy loop misses
	// values in between, and nothing piles up.
	mirrored map[space.Ref]mirrored
	// left is the highest lane sequence that was left in the stream because the
	// inbox was full.
	left uint64
}

const (
	// allDone in host.low means that the host does not hold the lane position back.
	allDone = math.MaxUint64
	// readPage is how many log or lane entries are read at a time.
	readPage = 512
)

// newHost returns a host that does not run yet, of a space that has b left to do.
func newHost(e *env, name string, program *space.Program, b backlog) *host {
	h := &host{
		env: e, space: name, program: program, wanted: program, started: time.Now(), nonce: rand.Text(),
		done: make(chan struct{}), wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		entered: make(chan struct{}), mirrors: map[space.Ref]context.CancelFunc{},
		saver: saver{revs: map[string]uint64{}, noted: noted{}},
	}
	h.behind, h.last, h.doneBefore, h.offered = b.last, b.last, b.done, b.last
	h.low.Store(b.done)
	h.due.Store(unknownDue)
	h.ctx, h.cancel = context.WithCancel(e.ctx)
	h.code.host = h
	h.tasks = tasksOf(h)
	h.spans.init(e.cfg.Tracer, name)
	return h
}

// call makes the loop run f.
func (h *host) call(f func()) {
	h.mu.Lock()
	h.inbox.calls = append(h.inbox.calls, f)
	h.mu.Unlock()
	h.rouse()
}

func (h *host) tellRoom() {
	select {
	case h.room <- struct{}{}:
	default:
	}
}

func (h *host) rouse() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// observe adds or removes an observation of a document, or, without a document, records that another
// runtime has attached to the space or detached.
func (h *host) observe(doc string, on bool) {
	attended := func() {}
	if doc == "" && on {
		attended = h.awaitMark()
	}
	h.call(func() {
		h.stirred = true
		switch {
		case doc == "":
			attended()
			h.attend(on)
			return
		case !on:
			h.observed--
			h.core.Unobserve(doc)
			return
		}
		h.observed++
		if err := h.core.Observe(doc); err != nil {
			h.env.cfg.faults.Warn("observe", h.space+" "+doc, "space", h.space, "document", doc, "error", err)
		}
	})
}

// run is the host's goroutine. It ends when the partition does, when another runtime has
// taken the space over, when the space cannot be served, or when it leaves memory.
func (h *host) run() {
	defer h.end()
	err := h.activate()
	if h.env.awake != nil {
		h.env.awake.loaded()
	}
	if err != nil {
		h.failToActivate(err)
		return
	}
	h.isLoaded.Store(true)
	if p := h.env.partition; p != nil {
		p.able(h.space)
	}
	h.enter()
	for h.ctx.Err() == nil {
		h.core.Clock(h.env.cfg.Now())
		h.takeIn()
		ready := h.settle()
		if h.ctx.Err() != nil {
			return // cut off before the end: its work is discarded
		}
		h.publish()
		h.carryOut(ready)
		h.performTasks()
		h.answerReads()
		if h.core.Deposed() || h.draining && h.finished() || h.considerLeaving(ready) {
			return
		}
		at, due := h.directsAt()
		if !ready.More && !due && !h.canTakeIn() {
			h.sleep(earliest(earliest(earliest(ready.Wake, at), h.tasksAt()), earliest(h.stays, h.dueIn(ready.Due))))
		}
	}
}

// enter requests the takeover or the join of the space.
func (h *host) enter() {
	h.core.TermAt(h.env.clock.Millis())
	if h.joins {
		h.core.Attach()
	} else {
		h.core.TakeOver()
	}
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
	var timer <-chan time.Time
	if until > 0 {
		t := time.NewTimer(until - h.now())
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-h.wake:
	case <-timer:
	case <-h.ctx.Done():
	}
}

// now is the core's clock: monotonic, from the host's start.
func (h *host) now() time.Duration { return time.Since(h.started) }

// takeIn passes the inbox to the core, events only as far as the core
// has room.
func (h *host) takeIn() {
	h.takeForeign()
	h.mu.Lock()
	room, bytes := h.queued.room(h.core, h.inbox.events)
	in := h.inbox
	h.inbox = inbox{events: h.spare, bytes: in.bytes - bytes}
	h.spare = nil
	all := len(in.events) <= room
	if !all {
		h.inbox.events, h.inbox.left = in.events[room:], in.left
		in.events, in.left = in.events[:room], 0
	}
	h.mu.Unlock()
	if len(in.events) > 0 {
		h.stirred = true
		h.tellRoom()
	}
	for i := range in.events {
		h.core.Offer(eventOf(&in.events[i], h.env.horizon))
		h.queued.took(eventBytes(&in.events[i]))
	}
	if in.left > 0 {
		h.core.LeftInStream(in.left)
	}
	for _, f := range in.calls {
		f()
	}
	if len(in.events)+len(in.calls) > 0 { // the pass may take long
		h.mu.Lock()
		if n := len(in.events); n > 0 {
			h.offered = in.events[n-1].Seq
		}
		h.offered = max(h.offered, in.left)
		h.countCore()
		h.mu.Unlock()
	}
	h.beginReads(in.reads)
	for ref, m := range in.mirrored { // any order: documents of other spaces are independent
		if m.ctx.Err() == nil {
			h.core.Mirror(ref.Space, ref.Doc, m.value)
		}
	}
	if all {
		h.recycle(in.events)
	}
	h.takeForeign() // unless the calls have made transactions, or after one was answered
	h.makeDirects()
}

// recycle keeps the memory of a processed batch.
func (h *host) recycle(batch []model.Message) {
	clear(batch)
	h.mu.Lock()
	h.spare = batch[:0]
	h.mu.Unlock()
}

// canTakeIn reports whether events wait for which the core has room.
func (h *host) canTakeIn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, _ := h.queued.room(h.core, h.inbox.events)
	return n > 0
}

func (h *host) settle() space.Ready {
	h.spans.beginPass()
	began := h.now()
	ready := h.core.Settle(began)
	h.watch.tell(h.core)
	if h.core.Busy(h.now() - began) {
		found := h.core.Markers()
		last := found[len(found)-1]
		h.env.cfg.faults.Warn("a space does not come to rest: it is at work most of the time", h.space, "space", h.space,
			"at_work", last.Busy.Round(time.Millisecond), "within", max(last.Window, last.Busy).Round(time.Millisecond))
	}
	h.spans.endPass()
	return ready
}

// publish records how far the space is done with its lane. Events that are handled but not
// saved count as not done: if this worker dies, the next one must find the
// event, load the space for it and save.
func (h *host) publish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.countCore()
	h.env.counters.backlog.Add(int64(-h.queued.trim(h.inCore)))
	h.clean.Store(h.core.Seq() <= h.saver.saved && !h.core.Unsaved() && len(h.saver.noted) == 0)
	h.publishDue()
	h.timers.Store(int64(h.core.WaitForTime()))
	if m := h.core.LastMissed(); m != h.missed {
		h.missed = m
		h.env.counters.missed.note(h.space, m)
	}
	switch {
	case len(h.inbox.events) > 0 || h.inbox.left > 0:
	case h.core.Owned() && h.core.Durable() && h.core.Seq() <= h.saver.saved:
		h.low.Store(allDone)
	default:
		h.low.Store(max(h.saver.lane, h.doneBefore))
	}
}

// countCore records how many events the core has. Only the loop calls it, and h.mu is held.
func (h *host) countCore() { h.inCore, h.taken = h.core.Waiting(), h.core.ReadLaneAfter() }

func (h *host) laneDone() uint64 { return h.low.Load() }

// backlog returns what the host has left to do; done is allDone if that is nothing.
func (h *host) backlog() backlog {
	h.mu.Lock()
	defer h.mu.Unlock()
	return backlog{done: h.low.Load(), last: h.last}
}

// carryOut executes the core's requests.
func (h *host) carryOut(r space.Ready) {
	for _, ref := range r.Follow {
		h.follow(ref)
	}
	for _, ref := range r.Unfollow {
		h.unfollow(ref)
	}
	if r.Refill != nil && !h.refilling && h.queued.hasRoom(h.core) {
		h.refill(r.Refill.After)
	}
	h.recall()
	if r.Append != nil {
		h.append(r.Append)
	}
	h.redoDirects(r.Undone)
}

// append sends a commit to the log. The result arrives through the inbox.
func (h *host) append(a *space.Append) {
	h.appending = true
	if p := h.env.partition; p != nil {
		p.retention.appended.Add(int64(len(a.Data)))
	}
	if h.joins && h.leavesToDo(a.Commit) != 0 {
		h.announce(a)
		return
	}
	h.send(a)
}

func (h *host) send(a *space.Append) {
	trace, end := h.spans.beginCommit(a.Commit)
	h.env.bus.Append(model.Append{
		Space: h.space, ID: a.Commit.ID() + "/" + h.nonce, Expect: a.Expect, Data: a.Data, Trace: trace,
	}, func(seq uint64, err error) {
		end(seq, err)
		h.call(func() { h.appended(a.Commit, seq, err) })
	})
}

func (h *host) appended(c *model.Commit, seq uint64, err error) {
	h.appending, h.directs.crowded = false, false
	switch {
	case err == nil:
		h.env.counters.committed(c)
		h.confirmDirects(c)
		h.reads.confirmed++
		if err = h.core.Confirm(seq); c.Join && err == nil {
			close(h.entered)
		}
	case errors.Is(err, model.ErrRefused):
		h.env.counters.refused.Add(1)
		h.reads.refused++
		h.core.Refuse()
		err = h.catchUp()
	}
	if err != nil {
		h.fail("append commit", err)
	}
}

// fail ends the host with an error.
func (h *host) fail(what string, err error) {
	h.report(what, err)
	h.endFor(what, err)
}

// failToActivate ends a host that failed to load. The space is tried again after a pause.
func (h *host) failToActivate(err error) {
	isOver := h.ctx.Err() != nil || errors.Is(err, model.ErrStopped) || errors.Is(err, model.ErrRewound)
	if p := h.env.partition; p != nil && !isOver && isLoss(err) == nil {
		p.unable(h.space)
	}
	h.fail("activate space", err)
}

func (h *host) endFor(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed == nil && h.ctx.Err() == nil {
		h.failed = fmt.Errorf("%s: %w", what, err)
	}
	h.cancel()
}

// whyEnded returns why the host has ended.
func (h *host) whyEnded() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return h.failed
	}
	return model.ErrStopped
}

// report logs an error, unless the host is just being stopped.
func (h *host) report(what string, err error) {
	if lost := isLoss(err); lost != nil && h.env.partition != nil {
		h.env.partition.losses.note(lost)
		return
	}
	if h.ctx.Err() == nil && !errors.Is(err, model.ErrStopped) && !errors.Is(err, model.ErrRewound) { // the bus has reported a rewind already
		h.env.cfg.faults.Error(what, h.space, "space", h.space, "worker", h.env.cfg.ID, "error", err)
	}
}

// drain makes the host finish running work, save and end. It returns when
// that is done; the error reports that saving failed. A host that is still being loaded has nothing to finish, and may not
// end by itself for long; it is ended.
func (h *host) drain() error {
	h.call(func() { h.draining = true; h.core.Hold() })
	if !h.isLoaded.Load() {
		h.cancel()
	}
	select {
	case <-h.done:
	case <-h.ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unsaved
}

// finished reports whether a draining host has nothing in flight, and saves.
func (h *host) finished() bool {
	if h.appending || h.saver.saving || !h.core.Settled() {
		return false
	}
	if !h.joins {
		h.saver.finish(h)
	}
	h.publish()
	return true
}

// handedOver reports whether the host ended because it was drained or stopped, or has
// left, rather than because it was deposed or failed.
func (h *host) handedOver() bool { return h.left || h.draining || h.env.ctx.Err() != nil }
