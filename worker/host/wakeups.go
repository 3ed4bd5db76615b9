package host

import (
	"container/heap"
	"time"

	"github.com/settlehq/settle/model"
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

// unknownDue in host.due means that the space has not been loaded, and in saver.dueAt that
// the saved time is not known.
const unknownDue = -1

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
