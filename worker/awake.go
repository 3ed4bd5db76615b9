package worker

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// awake is the list of the spaces that a worker has in memory. It decides which of them
// leave, and when another may be loaded:
//
//	a space that has been at rest for idle leaves
//	beyond limit, the spaces that have rested longest make room for requested ones
//	maxLoading are loaded at a time; more wait in order, as names
//
// Only a space at rest is asked to leave. A busy space will come to rest, so
// others wait for that. A held space (it is observed, or waits for a time) may stay
// for long, and if there are many of those, the limit is exceeded. Events of a loaded space
// do not pass through here, except for a lock when the space comes to rest and when
// it becomes busy again.
type awake struct {
	limit int           // 0: none
	idle  time.Duration // negative: no limit

	mu      sync.Mutex
	hosts   int // in memory or being loaded
	loading int
	leaving int       // asked to leave, but still in memory
	held    int       // neither busy nor at rest
	resting list.List // of *host, the one that has rested longest first
	queue   []wish
}

// wish is a space that waits to be loaded.
type wish struct {
	p     *partition
	space string
}

// rest is the state of a host in awake, guarded by awake's lock.
type rest struct {
	place   *list.Element // nil if the host does not rest, or is leaving
	since   time.Time
	leaving bool
	held    bool
}

// maxLoading is the number of spaces that are loaded at a time: enough to keep the store
// busy, few enough to leave capacity for loaded spaces.
const maxLoading = 64

// admit reports whether a space may be loaded now. If not, it queues the space, and
// calls partition.admitted when the space may be loaded.
func (a *awake) admit(p *partition, space string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 && a.room() {
		a.hosts++
		a.loading++
		return true
	}
	a.queue = append(a.queue, wish{p, space})
	a.press()
	return false
}

// room reports whether one more space may be loaded. a.mu is held.
func (a *awake) room() bool {
	return a.loading < maxLoading && (a.limit == 0 || a.hosts < a.most())
}

// most is the number of spaces that may be in memory: enough that some can come and go beside
// held ones. a.mu is held.
func (a *awake) most() int { return max(a.limit, a.held+min(a.limit, maxLoading)) }

// press asks hosts to leave to make room for waiting spaces. a.mu is held.
func (a *awake) press() {
	if a.limit == 0 {
		return
	}
	wanted := a.hosts - a.leaving + min(len(a.queue), maxLoading)
	for ; wanted > a.most() && a.resting.Len() > 0; wanted-- {
		a.dismiss(a.resting.Front().Value.(*host))
	}
}

// dismiss asks a host to leave. a.mu is held.
func (a *awake) dismiss(h *host) {
	a.resting.Remove(h.rest.place)
	h.rest.place, h.rest.leaving = nil, true
	a.leaving++
	h.dismissed.Store(true)
	h.inbox.rouse()
}

// loaded records that a host is loaded, or that loading failed.
func (a *awake) loaded() {
	a.mu.Lock()
	a.loading--
	a.mu.Unlock()
	a.serve()
}

// rests says that a host has come to rest, now.
func (a *awake) rests(h *host) {
	a.mu.Lock()
	if h.rest.place != nil {
		a.resting.Remove(h.rest.place)
	}
	a.hold(h, false)
	if !h.rest.leaving {
		h.rest.since = time.Now()
		a.line(h)
	}
	a.mu.Unlock()
	a.serve()
}

// line queues a host that has come to rest behind the hosts that did so before it. Hosts that
// came to rest at the same instant, as after a change of their program, are ordered by name. a.mu is held.
func (a *awake) line(h *host) {
	e := a.resting.Back()
	for ; e != nil; e = e.Prev() {
		if o := e.Value.(*host); !o.rest.since.Equal(h.rest.since) || o.space < h.space {
			h.rest.place = a.resting.InsertAfter(h, e)
			return
		}
	}
	h.rest.place = a.resting.PushFront(h)
}

// stirs records that a host is no longer at rest: it has work, or is held.
func (a *awake) stirs(h *host, held bool) {
	a.mu.Lock()
	waits := a.forget(h)
	a.hold(h, held)
	a.mu.Unlock()
	if waits || held {
		a.serve() // a waiting space counted on its leaving
	}
}

// hold counts a host as held or not. a.mu is held.
func (a *awake) hold(h *host, held bool) {
	switch {
	case held && !h.rest.held:
		a.held++
	case !held && h.rest.held:
		a.held--
	}
	h.rest.held = held
}

// forget removes a host from the list, and reports whether it had been asked to leave.
// a.mu is held.
func (a *awake) forget(h *host) (leaving bool) {
	if h.rest.place != nil {
		a.resting.Remove(h.rest.place)
	}
	leaving = h.rest.leaving
	if leaving {
		a.leaving--
		h.dismissed.Store(false)
	}
	h.rest.place, h.rest.leaving = nil, false
	return leaving
}

// left records that a host has ended.
func (a *awake) left(h *host) {
	a.mu.Lock()
	a.forget(h)
	a.hold(h, false)
	a.hosts--
	a.mu.Unlock()
	a.serve()
}

// serve admits waiting spaces as far as there is room. No lock of a partition may be
// held.
func (a *awake) serve() {
	for {
		next, ok := a.next()
		if !ok {
			return
		}
		a.admitted(next)
	}
}

// admitted starts the host of a space for which there is room. No lock of a partition may be held.
func (a *awake) admitted(next wish) {
	if !next.p.admitted(next.space) {
		a.mu.Lock()
		a.hosts--
		a.loading--
		a.mu.Unlock()
	}
}

func (a *awake) next() (w wish, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.press()
	if len(a.queue) == 0 || !a.room() {
		return w, false
	}
	w = a.queue[0]
	if a.queue = a.queue[1:]; len(a.queue) == 0 {
		a.queue = nil
	}
	a.hosts++
	a.loading++
	return w, true
}

// sweep periodically asks hosts to leave that have rested for long enough, until ctx ends.
func (a *awake) sweep(ctx context.Context) {
	if a.idle < 0 {
		return
	}
	t := time.NewTicker(min(max(a.idle/4, time.Millisecond), time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if ctx.Err() == nil { // a killed worker does nothing more
				a.dismissBefore(now.Add(-a.idle))
			}
		}
	}
}

func (a *awake) dismissBefore(when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.resting.Len() > 0 {
		h := a.resting.Front().Value.(*host)
		if h.rest.since.After(when) {
			return
		}
		a.dismiss(h)
	}
}
