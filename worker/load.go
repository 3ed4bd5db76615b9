package worker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
)

// load is what waits for a space.
type load struct {
	status.Load
	// unread reports that events wait in the lane for which the space has no room. span bounds the number of
	// events that the space is not known to be done with.
	unread bool
	span   uint64
}

// missedLog holds the last of a worker.
type missedLog struct {
	mu  sync.Mutex
	all []status.Missed
}

func (l *missedLog) note(name string, m space.Missed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(was status.Missed) bool { return was.Space == name && was.Cron == m.Cron })
	l.all = append(l.all, status.Missed{Space: name, Cron: m.Cron, Times: m.Times, At: time.UnixMilli(m.At).UTC()})
	if len(l.all) > maxLoads {
		l.all = l.all[1:]
	}
}

func (l *missedLog) newest() []status.Missed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

const (
	// maxLoads is how many spaces of each kind are named.
	maxLoads = 5
	// lateAfter is how long a timer may be due before it counts as late.
	lateAfter = time.Second
)

// waits returns what waits for the space of a host, false if the space is done with its lane. If more waits
// for a space than it has room for, it reads and handles one page at a time, so that at times no event
// that was read is left; and handled events count as not done until they are saved.
func (h *host) waits(partition int) (load, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := load{Load: status.Load{Space: h.space, Partition: partition, Events: len(h.inbox.events) + h.inCore}}
	low := h.low.Load()
	if low == allDone {
		return l, l.Events > 0
	}
	l.unread, l.span = h.inbox.left > 0 || h.taken < h.offered, h.last-min(h.last, low)
	return l, true
}

// compareLoads orders spaces by the number of waiting events, largest first.
func compareLoads(a, b load) int {
	switch {
	case a.unread && !b.unread:
		return -1
	case b.unread && !a.unread:
		return 1
	case a.unread && a.span != b.span:
		return cmp.Compare(b.span, a.span)
	}
	return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.span, a.span), cmp.Compare(a.Space, b.Space))
}

// loadOf returns the spaces with most waiting events, and those with late events, the
// oldest first, with the number of all late spaces.
func loadOf(partitions []*partition, now time.Time) (busiest []status.Load, late []status.Late, lateCount int) {
	var loads []load
	for _, p := range partitions {
		for _, h := range p.all() {
			if l, some := h.waits(p.number); some {
				loads = append(loads, l)
			}
			if due := h.due.Load(); due > atOnce && due <= now.Add(-lateAfter).UnixMilli() {
				late = append(late, status.Late{Space: h.space, Partition: p.number, Waiting: int(h.timers.Load()), Since: time.UnixMilli(due).UTC()})
			}
		}
	}
	slices.SortFunc(loads, compareLoads)
	for _, l := range loads[:min(len(loads), maxLoads)] {
		busiest = append(busiest, l.Load)
	}
	slices.SortFunc(late, func(a, b status.Late) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space)) })
	return busiest, late[:min(len(late), maxLoads)], len(late)
}

// nextFew returns the first few of the spaces that wait to be loaded.
func (a *awake) nextFew() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.queue[:min(len(a.queue), maxLoads)] {
		names = append(names, w.space)
	}
	return names
}

// figuresOf are the additions of sidecars to the worker's figures.
type figuresOf struct {
	mu  sync.Mutex
	add []func(*status.Figures)
}

// Tell registers f, which adds to the figures of the worker at each status request.
func (w *Worker) Tell(f func(*status.Figures)) {
	w.figuresOf.mu.Lock()
	defer w.figuresOf.mu.Unlock()
	w.figuresOf.add = append(w.figuresOf.add, f)
}

func (o *figuresOf) fill(f *status.Figures) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, add := range o.add {
		add(f)
	}
}
