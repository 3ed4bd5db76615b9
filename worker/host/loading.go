package host

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// hostOf returns the host of a space that has something to handle, and starts it if necessary; nil if the space
// is not of this partition or runs no program, or if others are loaded first: then it is started
// later. A missing program is logged, unless it is known. p.mu is held.
func (p *servedPartition) hostOf(space string, known bool) *host {
	return p.hostFor(space, known, false)
}

// lookupHost is hostOf for a space that is only to be read or watched. p.mu is held.
func (p *servedPartition) lookupHost(space string, known bool) *host {
	return p.hostFor(space, known, true)
}

func (p *servedPartition) hostFor(space string, known, lookup bool) *host {
	if h := p.hosts[space]; h != nil {
		switch {
		case lookup || !h.unborn.Load():
			return h
		case p.closed: // nothing that it handles is stored: the event is for the next owner
			delete(p.hosts, space)
			h.endWith(model.ErrElsewhere)
			return nil
		}
		return p.begins(h)
	}
	if _, waits := p.waiting[space]; waits {
		if !lookup && p.residency.promote(space) {
			return p.promoted(space)
		}
		return nil
	}
	program := p.programOf(space, known)
	if program == nil {
		return nil
	}
	if p.putOff(space) {
		return nil
	}
	if !p.residency.admit(loadRequest{space, p.admitted, lookup}) {
		p.waiting[space] = nil
		return nil
	}
	return p.startHost(space, program, lookup)
}

// programOf returns the program that a space should run, nil if the space must not have a host. p.mu is held.
func (p *servedPartition) programOf(name string, known bool) Program {
	if p.closed || p.ctx.Err() != nil || model.PartitionOf(name, p.bus.Partitions()) != p.number {
		return nil
	}
	program, err := p.cfg.Programs(name)
	if err != nil || program == nil {
		if !known {
			log := p.cfg.Logger.With("space", name)
			if err != nil {
				log = log.With("error", err)
			}
			log.Error("space has no program to run; its events wait")
		}
		return nil
	}
	return program
}

// ask calls f with the host of a space, which is loaded if necessary: at once, or when
// its turn has come; with nil if there will be no host. f is called with p.mu
// held, so that its input reaches the host before the host leaves. lookup reports that the space is
// only to be read.
func (p *servedPartition) ask(space string, lookup bool, f func(*host)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hostFor(space, true, lookup)
	if _, waits := p.waiting[space]; waits {
		p.waiting[space] = append(p.waiting[space], f)
		return nil
	}
	switch {
	case h != nil:
		f(h)
		return nil
	case p.closed || p.ctx.Err() != nil:
		return model.ErrElsewhere
	}
	return fmt.Errorf("space %s: %w", space, model.ErrNoProgram)
}

// admitted starts the host of a space whose turn has come. It returns false if the space
// needs no host any more.
func (p *servedPartition) admitted(space string, lookup bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	asks := p.waiting[space]
	delete(p.waiting, space)
	h := p.startWaiting(space, len(asks) > 0, lookup)
	for _, f := range asks {
		f(h)
	}
	return h != nil
}

// promoted starts the host of a space that waited to be looked at and now has something to handle. p.mu is held.
func (p *servedPartition) promoted(space string) (h *host) {
	asks := p.waiting[space]
	delete(p.waiting, space)
	if program := p.programOf(space, true); program != nil {
		h = p.startHost(space, program, false)
	} else {
		p.residency.giveBack(false)
	}
	for _, f := range asks {
		f(h)
	}
	return h
}

func (p *servedPartition) startWaiting(space string, asked, lookup bool) *host {
	_, behind := p.asleep[space]
	if !behind && !asked && !p.leases.any(space) {
		return nil
	}
	program := p.programOf(space, true)
	if program == nil {
		return nil
	}
	return p.startHost(space, program, lookup)
}

// startHost starts the host of a space that residency has admitted. p.mu is held.
func (p *servedPartition) startHost(space string, program Program, lookup bool) *host {
	b, behind := p.asleep[space]
	if !behind {
		b.done = p.read
	}
	delete(p.asleep, space)
	h := newHost(&p.env, space, program, b)
	h.start.lookup = lookup
	p.hosts[space] = h
	p.tenure.activations++
	p.counters.activations.Add(1)
	for k := range p.leases.of[space] { // any order: each counts once
		h.observe(k.doc, true)
	}
	h.start.overruns = p.overruns.of(space, time.Now())
	h.serve(p.tasks, func() { p.forget(h) }) // ends when the host is done with the space
	return h
}

// forget drops a host that has ended. If this worker still serves the space, the next event or lease loads it
// again; a space that already has events is loaded again after a moment, when the membership has settled.
func (p *servedPartition) forget(h *host) {
	p.mu.Lock()
	if p.hosts[h.space] == h {
		delete(p.hosts, h.space)
		p.noteDue(h)
		if b := h.inbox.backlog(); b.done != allDone {
			p.asleep[h.space] = b
			p.noteFailure(h)
		}
		p.failings.rests(h.space, time.Now(), p.duels.ended(h, p.cfg.Heartbeat))
	}
	p.mu.Unlock()
	h.inbox.unload() // it cannot be found any more
	p.residency.left(&h.resident)
	p.cfg.Left(h.space)
	p.bus.Forget(h.space)
	if h.handedOver() {
		return
	}
	p.returns.after(p.ctx, p.cfg.Heartbeat, h.space, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, behind := p.asleep[h.space]; behind || p.leases.any(h.space) {
			p.hostFor(h.space, false, !behind)
		}
	})
}

// putOff delays a space that could not be served until the next attempt is due, like a space that waits for
// its turn; it returns false if no delay is needed. p.mu is held.
func (p *servedPartition) putOff(space string) bool {
	left := p.failings.left(space, time.Now())
	if left == 0 {
		return false
	}
	p.waiting[space] = nil
	p.tasks.Go(func() { // ends with p.ctx
		p.returns.after(p.ctx, left, space, func() {
			if again := (loadRequest{space, p.admitted, false}); p.residency.admit(again) {
				p.residency.admitted(again)
			}
		})
	})
	return true
}

// listDue reads the items of the saved states: at once, and again when no replica can lag that far any more.
func (p *servedPartition) listDue(ctx context.Context) error {
	select {
	case <-p.wakeups.placed:
	case <-ctx.Done():
		return nil
	}
	for _, then := range []time.Duration{port.StaleLeader, 0} {
		list, err := p.bus.DueSpaces(ctx, p.number)
		if err != nil {
			return err
		}
		p.mu.Lock()
		for _, due := range list {
			if at, known := p.wakeups.at[due.Space]; p.hosts[due.Space] == nil && !p.wakeups.served[due.Space] && (!known || due.At < at) {
				p.wakeups.set(due.Space, due.At)
			}
		}
		p.mu.Unlock()
		_ = pause.For(ctx, then)
	}
	p.mu.Lock()
	p.wakeups.served = nil
	p.mu.Unlock()
	<-ctx.Done()
	return nil
}

// wakeDue wakes spaces when they are due.
func (p *servedPartition) wakeDue() {
	for p.ctx.Err() == nil {
		next := p.wakeThose()
		t := time.NewTimer(nap(next, p.cfg.Now()))
		if next == 0 {
			t.Stop() // nothing waits
		}
		select {
		case <-p.wakeups.changed:
		case <-t.C:
		case <-p.ctx.Done():
		}
		t.Stop()
	}
}

// wakeThose wakes the due spaces, and returns when the next one will be due.
func (p *servedPartition) wakeThose() (next int64) {
	now := p.cfg.Now().UnixMilli()
	for {
		p.mu.Lock()
		space, next := p.wakeups.take(now)
		if space != "" && p.hosts[space] == nil {
			// If the host fails, the space is retried.
			p.wakeups.set(space, now+maxNap.Milliseconds())
		}
		p.mu.Unlock()
		if space == "" {
			return next
		}
		_ = p.ask(space, false, func(*host) {}) // a space without a program waits, like its events
	}
}

// noteDue records the remaining work of a host that is about to end. A space whose host was deposed or failed
// is not woken again at once; one that was evicted at rest is woken at its time. p.mu is held.
func (p *servedPartition) noteDue(h *host) {
	at := h.published.due.Load()
	if soon := p.cfg.Now().Add(p.cfg.Heartbeat).UnixMilli(); at > 0 && at < soon && !h.idle.left {
		at = soon
	}
	switch {
	case at != unknownDue:
		if p.wakeups.served != nil {
			p.wakeups.served[h.space] = true
		}
		p.wakeups.set(h.space, at)
	case p.wakeups.at[h.space] != 0:
		p.wakeups.set(h.space, p.cfg.Now().Add(maxNap).UnixMilli())
	}
}

// lease processes a request to observe a document.
func (p *servedPartition) lease(l model.Lease) {
	if l.Check() != nil {
		return // no worker can own such a space
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.TTL <= 0 {
		p.endLease(l.Space, leaseKey{l.Doc, l.Watcher})
		return
	}
	had, ok := p.leases.renew(l, time.Now())
	if !ok {
		p.cfg.faults.Warn("observations are passed over: the partition has as many as it may have", "", "worker", p.cfg.ID, "partition", p.number, "observations", maxLeases)
		return
	}
	switch h := p.hosts[l.Space]; {
	case h == nil:
		p.lookupHost(l.Space, had) // its new host observes every leased document
	case l.Doc == "" && h.unborn.Load() && !p.closed:
		p.begins(h) // another runtime joins, which is in the log
	case !had:
		h.observe(l.Doc, true)
	}
}

func (p *servedPartition) endLease(space string, k leaseKey) {
	if had := p.leases.end(space, k); !had {
		return
	}
	if h := p.hosts[space]; h != nil {
		h.observe(k.doc, false)
	}
}

func (p *servedPartition) expireLeases(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for space, of := range p.leases.of { // any order: each on its own
		for k, until := range of { // any order: each on its own
			if now.After(until) {
				p.endLease(space, k)
			}
		}
	}
}

// retryLost wakes the refused spaces: nothing else might, and an operator may have
// accepted their loss.
func (p *servedPartition) retryLost() {
	lost := p.losses.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range lost {
		if lost[i].Space != "" {
			p.hostOf(lost[i].Space, true)
		}
	}
}
