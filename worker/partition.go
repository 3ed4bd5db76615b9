package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// positionLane names the saved position up to which a partition's lane has been
// handled completely: where the next owner starts to read.
const positionLane = "lane"

// partition serves the spaces of one partition: it reads the lane, hands events
// and leases to the spaces' hosts, and has them saved now and then.
type partition struct {
	w      *Worker
	number int

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	hosts map[string]*host
	// asleep are the spaces without a host that are not done with their lane: those
	// without a program, and those whose host has ended.
	asleep map[string]backlog
	closed bool // no new hosts
	leases map[leaseKey]lease
	// read is the lane sequence up to which events were handed to hosts, saved the
	// position that was saved last.
	read  uint64
	saved uint64
}

// backlog is what a space without a host has left to do: it is done with its lane
// up to done, and events were delivered up to last.
type backlog struct{ done, last uint64 }

type leaseKey struct{ space, doc, watcher string }

type lease struct{ until time.Time }

// maxLease bounds a lease, whatever its observer asks for.
const maxLease = 10 * LeaseTTL

func startPartition(w *Worker, number int) *partition {
	p := &partition{w: w, number: number, hosts: map[string]*host{}, asleep: map[string]backlog{}, leases: map[leaseKey]lease{}}
	p.ctx, p.cancel = context.WithCancel(w.ctx)
	p.keep("follow leases", func(ctx context.Context) error {
		return w.bus.FollowLeases(ctx, number, p.lease)
	})
	p.keep("follow lane", p.followLane)
	p.tasks.Go(p.tick)     // ends with p.ctx
	p.tasks.Go(p.callRoll) // ends within two seconds, or with p.ctx
	return p
}

// env is what the partition's hosts have around them.
func (p *partition) env() *env {
	return &env{ctx: p.ctx, bus: p.w.bus, horizon: p.w.horizon, cfg: &p.w.cfg, tasks: &p.tasks, counters: &p.w.counters, runs: p.w.runs}
}

func (p *partition) keep(what string, f func(ctx context.Context) error) {
	p.tasks.Go(func() { retry(p.ctx, p.w.cfg, what, f) })
}

func (p *partition) followLane(ctx context.Context) error {
	from, err := p.w.bus.LoadPosition(ctx, p.number, positionLane)
	if err != nil {
		return err
	}
	end, err := p.w.bus.LaneEnd(ctx, p.number)
	if err != nil {
		return err
	}
	if end < from {
		return fmt.Errorf("the lane ends at %d, but its events were handled up to %d: the stream has lost messages (a power cut without fsync, or an old backup); what is sent to it now would be taken for old", end, from)
	}
	p.mu.Lock()
	p.read, p.saved = max(p.read, from), max(p.saved, from)
	from = p.read
	p.mu.Unlock()
	return p.w.bus.FollowLane(ctx, p.number, from, p.deliver)
}

// deliver hands an event to its space, waking it if it sleeps. It waits for room as
// long as the host makes progress, which slows the reader down to what the spaces can
// do; a host that stands still has the event left in the stream instead, so that it
// does not hold up the others. Nothing that others need is held meanwhile.
func (p *partition) deliver(m model.Message) {
	for patient := true; ; {
		h := p.take(&m, patient)
		if h == nil {
			return
		}
		patient = h.waitForRoom()
	}
}

// take puts an event into its space's inbox, or notes that it waits. It returns the
// host if that has no room; without patience the event is then left in the stream.
func (p *partition) take(m *model.Message, patient bool) *host {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, waits := p.asleep[m.Space]
	switch h := p.hostOf(m.Space, waits); {
	case h == nil:
		if !waits {
			b.done = m.Seq - 1
		}
		b.last = m.Seq
		p.asleep[m.Space] = b
	case h.tryOffer(*m):
	case patient:
		return h
	default:
		h.leave(m.Seq)
	}
	p.read = m.Seq
	return nil
}

// hostOf returns the host of a space and starts it if need be; nil if the space
// is not of this partition or runs no program. That there is none is logged, unless
// it is known. p.mu is held.
func (p *partition) hostOf(space string, known bool) *host {
	if h := p.hosts[space]; h != nil {
		return h
	}
	if p.closed || p.ctx.Err() != nil || model.PartitionOf(space, p.w.bus.Partitions()) != p.number {
		return nil
	}
	program, err := p.w.cfg.Programs(space)
	if err != nil || program == nil {
		if !known {
			p.w.cfg.Logger.Error("space has no program to run; its events wait", "space", space, "error", err)
		}
		return nil
	}
	b, behind := p.asleep[space]
	if !behind {
		b.done = p.read
	}
	delete(p.asleep, space)
	h := newHost(p.env(), space, program, b)
	p.hosts[space] = h
	for k := range p.leases { // any order: each counts once
		if k.space == space {
			h.observe(k.doc, true)
		}
	}
	p.tasks.Go(func() { // ends when the host is done with the space
		h.run()
		p.forget(h)
	})
	return h
}

// forget drops a host that has ended. If the space is still ours to serve, the
// next event or lease wakes it again; so that one that has events already is not
// forgotten, it is woken after a moment, by when the membership has settled.
func (p *partition) forget(h *host) {
	p.mu.Lock()
	if p.hosts[h.space] == h {
		delete(p.hosts, h.space)
		if b := h.backlog(); b.done != allDone {
			p.asleep[h.space] = b
		}
	}
	p.mu.Unlock()
	if h.handedOver() {
		return
	}
	_ = pause.For(p.ctx, p.w.cfg.Heartbeat)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, behind := p.asleep[h.space]; behind || p.leased(h.space) {
		p.hostOf(h.space, false)
	}
}

// leased reports whether anybody observes the space. p.mu is held.
func (p *partition) leased(space string) bool {
	for k := range p.leases { // any order: whether there is one
		if k.space == space {
			return true
		}
	}
	return false
}

// lease takes in somebody's wish to observe a document.
func (p *partition) lease(l model.Lease) {
	if l.Check() != nil {
		return // nobody can own that
	}
	k := leaseKey{l.Space, l.Doc, l.Watcher}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, had := p.leases[k]
	switch {
	case l.TTL <= 0 && had:
		p.endLease(k)
	case l.TTL > 0:
		p.leases[k] = lease{until: time.Now().Add(min(l.TTL, maxLease))}
		switch h := p.hosts[l.Space]; {
		case h == nil:
			p.hostOf(l.Space, had) // which observes everything that is leased
		case !had:
			h.observe(l.Doc, true)
		}
	}
}

func (p *partition) endLease(k leaseKey) {
	delete(p.leases, k)
	if h := p.hosts[k.space]; h != nil {
		h.observe(k.doc, false)
	}
}

// tick does what is due now and then: it ends leases, saves spaces and the lane
// position, and purges the lane.
func (p *partition) tick() {
	t := time.NewTicker(p.w.cfg.Checkpoint)
	defer t.Stop()
	leases := time.NewTicker(LeaseTTL / 6)
	defer leases.Stop()
	var purged purge
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-leases.C:
			p.expireLeases(now)
		case <-t.C:
			for _, h := range p.all() {
				h.checkpoint()
			}
			p.savePosition(p.ctx)
			p.purge(p.ctx, &purged)
		}
	}
}

// callRoll asks observers to say again what they observe: the last owner took its
// list of leases with it. The first answers may come before this worker listens, so
// it asks once more, and once more.
func (p *partition) callRoll() {
	for _, after := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		_ = pause.For(p.ctx, after)
		if p.ctx.Err() != nil {
			return
		}
		if err := p.w.bus.CallRoll(p.number); err != nil {
			p.w.cfg.Logger.Warn("call roll", "partition", p.number, "error", err)
		}
	}
}

func (p *partition) expireLeases(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, l := range p.leases { // any order: each on its own
		if now.After(l.until) {
			p.endLease(k)
		}
	}
}

func (p *partition) all() []*host {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*host, 0, len(p.hosts))
	for _, h := range p.hosts { // any order: each on its own
		out = append(out, h)
	}
	return out
}

// savePosition saves how far the lane is done with: every event up to it is
// handled, and what it caused within its space too. That is a fact about the log,
// so it stays true whoever owns the partition by the time it is written.
func (p *partition) savePosition(ctx context.Context) {
	p.mu.Lock()
	done := p.read
	hosts := make([]*host, 0, len(p.hosts))
	for _, h := range p.hosts { // any order: only the minimum is kept
		hosts = append(hosts, h)
	}
	for _, b := range p.asleep { // any order: only the minimum is kept
		done = min(done, b.done)
	}
	saved := p.saved
	p.mu.Unlock()
	for _, h := range hosts {
		done = min(done, h.laneDone())
	}
	if done <= saved {
		return
	}
	if err := p.w.bus.SavePosition(ctx, p.number, positionLane, done); err != nil {
		if ctx.Err() == nil {
			p.w.cfg.Logger.Warn("save lane position", "partition", p.number, "error", err)
		}
		return
	}
	p.mu.Lock()
	p.saved = max(p.saved, done)
	p.mu.Unlock()
}

// drain stops the partition in good order: no new work, what is under way is
// finished and saved. What is not by the end of ctx is cut off; of a handler that
// never returns, the goroutine stays.
func (p *partition) drain(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var done sync.WaitGroup
	var unsaved collected
	for _, h := range p.all() {
		done.Go(func() { unsaved.add(h.drain()) })
	}
	err := wait(ctx, &done)
	if ctx.Err() == nil && p.ctx.Err() == nil {
		p.savePosition(p.ctx)
	}
	p.cancel()
	return errors.Join(unsaved.err(), err, wait(ctx, &p.tasks))
}

// collected are errors of several goroutines, of which some may go on.
type collected struct {
	mu   sync.Mutex
	list []error
}

func (c *collected) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, err)
}

func (c *collected) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.list...)
}
