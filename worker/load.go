package worker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/space"
)

// Load is a space for which much waits.
type Load struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Events were read and are not handled; more of them may wait in the lane, even if there are none
	// of these.
	Events int `json:"events"`

	// unread says that events wait in the lane that the space has no room for. What it is not known to
	// be done with is at most as many events as span.
	unread bool
	span   uint64
}

// Late is a space whose timers, jobs or delayed events are due and not handled.
type Late struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Waiting events of the space wait for their time, or are late; Since is when the first of them
	// was due, by the worker's clock.
	Waiting int       `json:"waiting"`
	Since   time.Time `json:"since"`
}

// Missed are times of a job that were passed over: one event, which was due At, stands for them,
// or they are skipped, as its CatchUp says.
type Missed struct {
	Space string    `json:"space"`
	Cron  string    `json:"cron"`
	Times int       `json:"times"`
	At    time.Time `json:"at"`
}

// missedLog are the last of those of a worker.
type missedLog struct {
	mu  sync.Mutex
	all []Missed
}

func (l *missedLog) note(name string, m space.Missed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(was Missed) bool { return was.Space == name && was.Cron == m.Cron })
	l.all = append(l.all, Missed{name, m.Cron, m.Times, time.UnixMilli(m.At).UTC()})
	if len(l.all) > maxLoads {
		l.all = l.all[1:]
	}
}

func (l *missedLog) newest() []Missed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Watches are the live queries that a worker answers.
type Watches struct {
	// Open are those that it answers now, of Limit at most; Refused found no room.
	Open    int    `json:"open"`
	Limit   int    `json:"limit"`
	Refused uint64 `json:"refused,omitzero"`
	// Space and Document are those that most of them are of, and Most is how many.
	Space    string `json:"space,omitzero"`
	Document string `json:"document,omitzero"`
	Most     int    `json:"most,omitzero"`
}

const (
	// maxLoads is how many spaces are named of each kind.
	maxLoads = 5
	// lateAfter is how long a timer may be due until it is called late.
	lateAfter = time.Second
)

// waits is what waits for the space of a host, false if it is done with its lane. Of a space for which
// more waits than there is room for, a page is read and handled at a time, so that at times nothing is left
// of what was read; and what is handled counts as not done until it is saved.
func (h *host) waits(partition int) (Load, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := Load{Space: h.space, Partition: partition, Events: len(h.inbox.events) + h.inCore}
	low := h.low.Load()
	if low == allDone {
		return l, l.Events > 0
	}
	l.unread, l.span = h.inbox.left > 0 || h.taken < h.offered, h.last-min(h.last, low)
	return l, true
}

// compareLoads puts the space first for which more waits.
func compareLoads(a, b Load) int {
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

// loadOf names the spaces for which most waits, and those that are late with what is due, the
// oldest first, with how many are.
func loadOf(partitions []*partition, now time.Time) (busiest []Load, late []Late, lateCount int) {
	for _, p := range partitions {
		for _, h := range p.all() {
			if l, some := h.waits(p.number); some {
				busiest = append(busiest, l)
			}
			if due := h.due.Load(); due > atOnce && due <= now.Add(-lateAfter).UnixMilli() {
				late = append(late, Late{h.space, p.number, int(h.timers.Load()), time.UnixMilli(due).UTC()})
			}
		}
	}
	slices.SortFunc(busiest, compareLoads)
	slices.SortFunc(late, func(a, b Late) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space)) })
	return busiest[:min(len(busiest), maxLoads)], late[:min(len(late), maxLoads)], len(late)
}

// nextFew names the spaces that are loaded next, a few of those that wait for it.
func (a *awake) nextFew() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.queue[:min(len(a.queue), maxLoads)] {
		names = append(names, w.space)
	}
	return names
}

// figuresOf are what sidecars add to the worker's figures.
type figuresOf struct {
	mu  sync.Mutex
	add []func(*Figures)
}

// Tell has f add to the figures of the worker, each time that they are asked for.
func (w *Worker) Tell(f func(*Figures)) {
	w.figuresOf.mu.Lock()
	defer w.figuresOf.mu.Unlock()
	w.figuresOf.add = append(w.figuresOf.add, f)
}

func (o *figuresOf) fill(f *Figures) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, add := range o.add {
		add(f)
	}
}
