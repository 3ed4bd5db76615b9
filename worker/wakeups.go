package worker

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
)

// Events may wait for a time (docs/adr/0018) while their space is not loaded or
// its worker is gone. So each such space has one small item in its saved state,
// with the time at which it must be woken. The item is saved with the checkpoint, before the mark, and
// the lane position of the partition does not pass unsaved items: each waiting event is found again
// through this item or through the lane. The owner of a partition lists the items
// when it begins; afterwards its own hosts report their times.
//
// The clock is the worker's, Config.Now, and may jump. So no sleep is longer
// than maxNap without a look at the clock.

// maxNap is how long a sleeper may miss a jump of the clock.
const maxNap = 10 * time.Second

// nap returns how long to sleep until a wall time, in milliseconds since 1970.
func nap(at int64, now time.Time) time.Duration {
	ms := at - now.UnixMilli()
	if ms >= maxNap.Milliseconds() {
		return maxNap
	}
	return max(time.UnixMilli(at).Sub(now), 0)
}

// atOnce as the time of a due item means that there is work to do now.
const atOnce = 1

// wakeups are the spaces of a partition that must be woken at a time. They are guarded by the
// partition's lock, except for changed.
type wakeups struct {
	// at is the known time of each space, 0 for one that needs no waking.
	at   map[string]int64
	heap wakeupHeap
	// placed is closed when the lane position is known: items that are listed afterwards are not older.
	placed  chan struct{}
	changed chan struct{}
	// served are the spaces that have had a host here before the list was complete: the times that their
	// hosts reported are newer than the listed ones. nil when the list is complete.
	served map[string]bool
}

// wakeup is a time at which to check a space. If a space has several, only the one that
// matches at counts.
type wakeup struct {
	at    int64
	space string
}

func newWakeups() wakeups {
	return wakeups{at: map[string]int64{}, served: map[string]bool{}, placed: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// place records that the lane position is known. The partition's lock is held.
func (d *wakeups) place() {
	select {
	case <-d.placed:
	default:
		close(d.placed)
	}
}

// set records when a space without a host must be woken. The partition's lock is held.
func (d *wakeups) set(space string, at int64) {
	if at == 0 {
		delete(d.at, space)
		return
	}
	d.at[space] = at
	heap.Push(&d.heap, wakeup{at, space})
	d.tidy()
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// tidy drops obsolete entries once they are most of the heap.
func (d *wakeups) tidy() {
	if len(d.heap) < 2*len(d.at)+64 {
		return
	}
	d.heap = d.heap[:0]
	for space, at := range d.at { // any order: a heap is made of them
		d.heap = append(d.heap, wakeup{at, space})
	}
	heap.Init(&d.heap)
}

// take removes a space that is due by now, "" if there is none, and returns when the next one
// will be, 0 if none waits.
func (d *wakeups) take(now int64) (space string, next int64) {
	for len(d.heap) > 0 {
		w := d.heap[0]
		switch {
		case d.at[w.space] != w.at:
			heap.Pop(&d.heap)
		case w.at > now:
			return "", w.at
		default:
			heap.Pop(&d.heap)
			return w.space, 0
		}
	}
	return "", 0
}

// listDue reads the items of the saved states: at once, and again when no replica can be
// behind any more.
func (p *partition) listDue(ctx context.Context) error {
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
func (p *partition) wakeDue() {
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
func (p *partition) wakeThose() (next int64) {
	now := p.cfg.Now().UnixMilli()
	for {
		p.mu.Lock()
		space, next := p.wakeups.take(now)
		if space != "" && p.hosts[space] == nil {
			// If the host fails, the space is tried again.
			p.wakeups.set(space, now+maxNap.Milliseconds())
		}
		p.mu.Unlock()
		if space == "" {
			return next
		}
		_ = p.ask(space, func(*host) {}) // a space without a program waits, like its events
	}
}

// noteDue records the remaining work of a host that is about to end. A space whose host was deposed or
// failed is not woken again at once; one that has left at rest is woken at its time. p.mu
// is held.
func (p *partition) noteDue(h *host) {
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

// unknownDue in host.due means that the space has not been loaded, and in saver.dueAt that
// the saved time is not known.
const unknownDue = -1

// publishDue records when the space must be woken in case this host ends.
func (h *host) publishDue() {
	at := h.nextDue()
	if h.core.FollowsUp() {
		at = atOnce
	}
	h.published.due.Store(at)
}

// dueIn returns when to read the clock again for an event that waits for a time, 0 for none.
func (h *host) dueIn(at int64) time.Duration {
	if at == 0 {
		return 0
	}
	return h.now() + max(nap(at, h.env.cfg.Now()), 1)
}

// announce saves a wake-up time for the events that a commit of an attached runtime will
// leave waiting, or as follow-ups, and sends the commit then. Once the commit is in the log, no runtime
// may be left to save the time, and no event of the lane leads to the space.
//
// The time also covers events that wait already: the item replaces one of an earlier state, which may
// have been saved a moment ago.
func (h *host) announce(a *space.Append) {
	at := h.leavesToDo(a.Commit)
	if next := h.core.NextDue(); next != 0 {
		at = min(at, next)
	}
	if h.core.FollowsUp() {
		at = atOnce
	}
	h.env.tasks.Go(func() { // ends when the item is saved, or with the host
		for dry := 0; ; dry++ {
			_ = pause.For(h.ctx, pause.Backoff(dry))
			_, err := h.saver.saveEarlier(h.ctx, at, a.Expect+1)
			if err == nil {
				h.call(func() { h.send(a) })
				return
			}
			if h.ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
				return
			}
			if !allAre(err, model.ErrOutdated) {
				h.report("save when the space is due", err)
			}
		}
	})
}

// leavesToDo returns the function leavesToDo of a commit, including the tasks that the commit may start.
func (h *host) leavesToDo(c *model.Commit) int64 {
	for i := range c.Txs {
		if slices.ContainsFunc(c.Txs[i].Writes, func(w model.Write) bool { return h.core.Program().HoldsTasks(w.Doc) }) {
			return atOnce
		}
	}
	return leavesToDo(c)
}

// leavesToDo returns the earliest time at which a commit leaves work in its space, 0
// if it leaves none.
func leavesToDo(c *model.Commit) int64 {
	var at int64
	for i := range c.Txs {
		for j := range c.Txs[i].Sends {
			s := &c.Txs[i].Sends[j]
			if s.To != c.Space {
				continue
			}
			wants := int64(atOnce)
			if s.Slot > 0 {
				wants = s.NotBefore
			}
			if at == 0 || wants < at {
				at = wants
			}
		}
	}
	return at
}

// wakeupHeap is a heap with the earliest time first.
type wakeupHeap []wakeup

func (h wakeupHeap) Len() int { return len(h) }
func (h wakeupHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].space < h[j].space
}
func (h wakeupHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *wakeupHeap) Push(w any)   { *h = append(*h, w.(wakeup)) }

func (h *wakeupHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
