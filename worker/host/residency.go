package host

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// residency decides which spaces a worker has in memory: which of them
// leave, and when another may be loaded:
//
//	a space that has been at rest for idle leaves
//	beyond limit, the spaces that have rested longest make room for requested ones
//	maxLoading are loaded at a time, maxLookups of them for reads and watches alone, and of those only as many
//	per second as pace allows; more wait in order, as names, and those with an event or a time to handle go first
//
// Only a space at rest is asked to leave. A busy space will come to rest, so
// others wait for that. A held space (it is observed, or waits for a time) may stay
// for long, and if there are many of those, the limit is exceeded. Events of a loaded space
// do not pass through here, except for a lock when the space comes to rest and when
// it becomes busy again.
type residency struct {
	limit int           // 0: none
	idle  time.Duration // negative: no limit
	pace  *rate.Limiter // of lookups; nil: no limit

	mu      sync.Mutex
	hosts   int // in memory or being loaded
	loading int
	lookups int       // of those being loaded, how many are for reads and watches alone
	leaving int       // asked to leave, but still in memory
	held    int       // neither busy nor at rest
	resting list.List // of *resident, the one that has rested longest first
	// queue are the spaces that wait with something to handle, and reads those that are only to be looked at.
	queue, reads []loadRequest
	paused       bool // a timer calls serve at the time of the next lookup
	turn         int  // counts the spaces that next was asked for
}

// loadRequest is a space that waits to be loaded.
type loadRequest struct {
	space string
	// load starts loading the space, and returns false if it need not be loaded any more.
	load func(space string, lookup bool) bool
	// lookup reports that the space has nothing to handle: it is to be read or watched.
	lookup bool
}

// resident is a host as residency sees it. wake wakes the loop of the host, and dismissed asks it to leave.
type resident struct {
	space     string
	wake      func()
	dismissed atomic.Bool
	lruEntry
}

// lruEntry is the place of a host in the order of eviction, guarded by the lock of residency.
type lruEntry struct {
	place   *list.Element // nil if the host does not rest, or is leaving
	since   time.Time
	leaving bool
	held    bool
}

// maxLoading is the number of spaces that are loaded at a time: enough to keep the store
// busy, few enough to leave capacity for loaded spaces.
const maxLoading = 64

// maxLookups is the number of spaces that are loaded at a time for reads and watches alone: a flood of
// those delays the first event of a space by no more than this many.
const maxLookups = 16

// readsTurn is how often one of the reads is loaded while others wait: each so many-th time. Without it, reads would wait for as long as spaces with events
// come, and so would an event that no rule allows, which waits among them and holds back the position of its lane.
const readsTurn = 8

// admit reports whether a space may be loaded now. If not, it queues the request, and
// calls its load when the space may be loaded.
func (r *residency) admit(request loadRequest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ahead := len(r.queue)
	if request.lookup {
		ahead += len(r.reads)
	}
	if ahead == 0 && r.room(request.lookup) && r.paced(request.lookup) {
		r.begin(request.lookup)
		return true
	}
	if request.lookup {
		r.reads = append(r.reads, request)
	} else {
		r.queue = append(r.queue, request)
	}
	r.press()
	return false
}

// begin counts a space as being loaded. r.mu is held.
func (r *residency) begin(lookup bool) {
	r.hosts++
	r.loading++
	if lookup {
		r.lookups++
	}
}

// replace counts a host that takes the place of another one at once, whatever the limits: it has an event.
func (r *residency) replace() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(false)
}

// promote moves a space that waits to be looked at to those that have something to handle. If it returns true, there is
// room for it: it waits no more, and is to be loaded at once.
func (r *residency) promote(space string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.reads, func(w loadRequest) bool { return w.space == space })
	if i < 0 {
		return false
	}
	w := r.reads[i]
	w.lookup = false
	r.reads = slices.Delete(r.reads, i, i+1)
	if len(r.queue) == 0 && r.room(false) {
		r.begin(false)
		return true
	}
	r.queue = append(r.queue, w)
	r.press()
	return false
}

// room reports whether one more space may be loaded. r.mu is held.
func (r *residency) room(lookup bool) bool {
	return r.loading < maxLoading && (!lookup || r.lookups < maxLookups) && (r.limit == 0 || r.hosts < r.most())
}

// paced reports whether it is time to load one more space, for which there is room. If it is not, serve is called when it is.
// r.mu is held.
func (r *residency) paced(lookup bool) bool {
	if !lookup || r.pace == nil {
		return true
	}
	next := r.pace.Reserve()
	wait := next.Delay()
	if wait == 0 {
		return true
	}
	next.Cancel()
	if !r.paused {
		r.paused = true
		time.AfterFunc(wait, r.resume)
	}
	return false
}

// resume serves what has waited for its time.
func (r *residency) resume() {
	r.mu.Lock()
	r.paused = false
	r.mu.Unlock()
	r.serve()
}

// waiting is the number of spaces that wait to be loaded. r.mu is held.
func (r *residency) waiting() int { return len(r.queue) + len(r.reads) }

// most is the number of spaces that may be in memory: enough that some can come and go beside
// held ones. r.mu is held.
func (r *residency) most() int { return max(r.limit, r.held+min(r.limit, maxLoading)) }

// press asks hosts to leave to make room for waiting spaces. r.mu is held.
func (r *residency) press() {
	if r.limit == 0 {
		return
	}
	wanted := r.hosts - r.leaving + min(r.waiting(), maxLoading)
	for ; wanted > r.most() && r.resting.Len() > 0; wanted-- {
		r.dismiss(r.resting.Front().Value.(*resident))
	}
}

// dismiss asks a host to leave. r.mu is held.
func (r *residency) dismiss(h *resident) {
	r.resting.Remove(h.place)
	h.place, h.leaving = nil, true
	r.leaving++
	h.dismissed.Store(true)
	h.wake()
}

// loaded records that a host is loaded, or that loading failed.
func (r *residency) loaded(lookup bool) {
	r.mu.Lock()
	r.ends(lookup)
	r.mu.Unlock()
	r.serve()
}

// ends counts a space as not being loaded any more. r.mu is held.
func (r *residency) ends(lookup bool) {
	r.loading--
	if lookup {
		r.lookups--
	}
}

// rests records that a host has come to rest, now.
func (r *residency) rests(h *resident) {
	r.mu.Lock()
	if h.place != nil {
		r.resting.Remove(h.place)
	}
	r.hold(h, false)
	if !h.leaving {
		h.since = time.Now()
		r.line(h)
	}
	r.mu.Unlock()
	r.serve()
}

// line queues a host that has come to rest after the hosts that did so before it. Hosts that came to rest at
// the same instant, as after a change of their program, are ordered by name. r.mu is held.
func (r *residency) line(h *resident) {
	e := r.resting.Back()
	for ; e != nil; e = e.Prev() {
		if o := e.Value.(*resident); !o.since.Equal(h.since) || o.space < h.space {
			h.place = r.resting.InsertAfter(h, e)
			return
		}
	}
	h.place = r.resting.PushFront(h)
}

// markActive records that a host is no longer at rest: it has work, or is held.
func (r *residency) markActive(h *resident, held bool) {
	r.mu.Lock()
	waits := r.forget(h)
	r.hold(h, held)
	r.mu.Unlock()
	if waits || held {
		r.serve() // a waiting space counted on its leaving
	}
}

// hold counts a host as held or not. r.mu is held.
func (r *residency) hold(h *resident, held bool) {
	switch {
	case held && !h.held:
		r.held++
	case !held && h.held:
		r.held--
	}
	h.held = held
}

// forget removes a host from the list, and reports whether it had been asked to leave.
// r.mu is held.
func (r *residency) forget(h *resident) (leaving bool) {
	if h.place != nil {
		r.resting.Remove(h.place)
	}
	leaving = h.leaving
	if leaving {
		r.leaving--
		h.dismissed.Store(false)
	}
	h.place, h.leaving = nil, false
	return leaving
}

// left records that a host has ended.
func (r *residency) left(h *resident) {
	r.mu.Lock()
	r.forget(h)
	r.hold(h, false)
	r.hosts--
	r.mu.Unlock()
	r.serve()
}

// serve admits waiting spaces as far as there is room. No lock of a partition may be
// held.
func (r *residency) serve() {
	for {
		next, ok := r.next()
		if !ok {
			return
		}
		r.admitted(next)
	}
}

// admitted starts to load a space for which there is room. No lock of a partition may be held.
func (r *residency) admitted(next loadRequest) {
	if !next.load(next.space, next.lookup) {
		r.giveBack(next.lookup)
	}
}

// giveBack returns the room of a space that need not be loaded any more.
func (r *residency) giveBack(lookup bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts--
	r.ends(lookup)
}

func (r *residency) next() (w loadRequest, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.press()
	from := &r.queue
	if r.turn++; len(*from) == 0 || r.turn%readsTurn == 0 && len(r.reads) > 0 && r.room(true) {
		from = &r.reads
	}
	if len(*from) == 0 || !r.room((*from)[0].lookup) || !r.paced((*from)[0].lookup) {
		if from == &r.queue || len(r.queue) == 0 || !r.room(false) {
			return w, false
		}
		from = &r.queue // it was the turn of a read whose time has not come
	}
	w = (*from)[0]
	if *from = (*from)[1:]; len(*from) == 0 {
		*from = nil
	}
	r.begin(w.lookup)
	return w, true
}

// sweep periodically asks hosts to leave that have rested for long enough, until ctx ends.
func (r *residency) sweep(ctx context.Context) {
	if r.idle < 0 {
		return
	}
	t := time.NewTicker(min(max(r.idle/4, time.Millisecond), time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if ctx.Err() == nil { // a killed worker does nothing more
				r.dismissBefore(now.Add(-r.idle))
			}
		}
	}
}

func (r *residency) dismissBefore(when time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.resting.Len() > 0 {
		h := r.resting.Front().Value.(*resident)
		if h.since.After(when) {
			return
		}
		r.dismiss(h)
	}
}

// counts returns how many spaces are in memory or being loaded, how many of them are being loaded and how many rest,
// and how many wait.
func (r *residency) counts() (hosts, loading, resting, waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hosts, r.loading, r.resting.Len(), r.waiting()
}

// nextFew returns the first few of the spaces that wait to be loaded.
func (r *residency) nextFew() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range [][]loadRequest{r.queue, r.reads} {
		for _, w := range of[:min(len(of), maxLoads-len(names))] {
			names = append(names, w.space)
		}
	}
	return names
}
