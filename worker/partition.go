package worker

import (
	"context"
	"sync"
	"time"

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
	// asleep is, for spaces without a host that are not done with their lane, how
	// far they are: those without a program, and those whose host has ended.
	asleep map[string]uint64
	closed bool // no new hosts
	leases map[leaseKey]lease
	// read is the lane sequence up to which events were handed to hosts, saved the
	// position that was saved last.
	read  uint64
	saved uint64
}

type leaseKey struct{ space, doc, watcher string }

type lease struct{ until time.Time }

func startPartition(w *Worker, number int) *partition {
	p := &partition{w: w, number: number, hosts: map[string]*host{}, asleep: map[string]uint64{}, leases: map[leaseKey]lease{}}
	p.ctx, p.cancel = context.WithCancel(w.ctx)
	p.keep("follow leases", func(ctx context.Context) error {
		return w.bus.FollowLeases(ctx, number, p.lease)
	})
	p.keep("follow lane", p.followLane)
	p.tasks.Go(p.tick) // ends with p.ctx
	return p
}

func (p *partition) keep(what string, f func(ctx context.Context) error) {
	p.tasks.Go(func() { retry(p.ctx, p.w.cfg, what, f) })
}

func (p *partition) followLane(ctx context.Context) error {
	from, err := p.w.bus.LoadPosition(ctx, p.number, positionLane)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.read, p.saved = max(p.read, from), max(p.saved, from)
	from = p.read
	p.mu.Unlock()
	return p.w.bus.FollowLane(ctx, p.number, from, p.deliver)
}

// deliver hands an event to its space, waking it if it sleeps.
func (p *partition) deliver(m model.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hostOf(m.Space)
	switch _, waits := p.asleep[m.Space]; {
	case h != nil:
		h.offer(m)
	case !waits:
		p.asleep[m.Space] = m.Seq - 1
	}
	p.read = m.Seq
}

// hostOf returns the host of a space and starts it if need be; nil if the space
// is not of this partition or runs no program. p.mu is held.
func (p *partition) hostOf(space string) *host {
	if h := p.hosts[space]; h != nil {
		return h
	}
	if p.closed || p.ctx.Err() != nil || model.PartitionOf(space, p.w.bus.Partitions()) != p.number {
		return nil
	}
	program, err := p.w.cfg.Programs(space)
	if err != nil || program == nil {
		p.noProgram(space, err)
		return nil
	}
	done, behind := p.asleep[space]
	if !behind {
		done = p.read
	}
	delete(p.asleep, space)
	h := newHost(p, space, program, done)
	h.behind = behind
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

// noProgram says once per space that its events wait. p.mu is held.
func (p *partition) noProgram(space string, err error) {
	if _, known := p.asleep[space]; !known {
		p.w.cfg.Logger.Error("space has no program to run; its events wait", "space", space, "error", err)
	}
}

// forget drops a host that has ended. If the space is still ours to serve, the
// next event or lease wakes it again; so that one that has events already is not
// forgotten, it is woken after a moment, by when the membership has settled.
func (p *partition) forget(h *host) {
	p.mu.Lock()
	if p.hosts[h.space] == h {
		delete(p.hosts, h.space)
		if done := h.laneDone(); done != allDone {
			p.asleep[h.space] = done
		}
	}
	p.mu.Unlock()
	if h.handedOver() {
		return
	}
	pause(p.ctx, p.w.cfg.Heartbeat)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hostOf(h.space)
}

// lease takes in somebody's wish to observe a document.
func (p *partition) lease(l model.Lease) {
	k := leaseKey{l.Space, l.Doc, l.Watcher}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, had := p.leases[k]
	switch {
	case l.TTL <= 0 && had:
		p.endLease(k)
	case l.TTL > 0:
		h := p.hostOf(l.Space)
		if h == nil {
			return
		}
		p.leases[k] = lease{until: time.Now().Add(l.TTL)}
		if !had {
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
// position.
func (p *partition) tick() {
	p.keepCallingRoll()
	t := time.NewTicker(p.w.cfg.Checkpoint)
	defer t.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-t.C:
			p.expireLeases(now)
			for _, h := range p.all() {
				h.checkpoint()
			}
			p.savePosition(p.ctx)
		}
	}
}

// keepCallingRoll asks observers to say again what they observe: the last owner
// took its list of leases with it.
func (p *partition) keepCallingRoll() {
	if err := p.w.bus.CallRoll(p.number); err != nil {
		p.w.cfg.Logger.Warn("call roll", "partition", p.number, "error", err)
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
	for _, upTo := range p.asleep { // any order: only the minimum is kept
		done = min(done, upTo)
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
// finished and saved.
func (p *partition) drain() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var done sync.WaitGroup
	for _, h := range p.all() {
		done.Go(h.drain)
	}
	done.Wait()
	if p.ctx.Err() == nil {
		p.savePosition(p.ctx)
	}
	p.cancel()
	p.tasks.Wait()
}
