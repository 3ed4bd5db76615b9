package replica

import (
	"container/heap"

	"github.com/settlehq/settle/model"
)

// Queue orders waiting events, the next one first. Events that no longer wait may stay in it; they are
// dropped when they are first.
type Queue struct{ h byTime }

// Len returns the number of entries, including those that no longer wait.
func (q *Queue) Len() int { return len(q.h) }

// Add inserts an event.
func (q *Queue) Add(w *model.Waiting) { heap.Push(&q.h, w) }

// First returns the first event for which waits returns true, nil if there is none.
func (q *Queue) First(waits func(*model.Waiting) bool) *model.Waiting {
	for len(q.h) > 0 && !waits(q.h[0]) {
		heap.Pop(&q.h)
	}
	if len(q.h) == 0 {
		return nil
	}
	return q.h[0]
}

// Take removes the event that First returned.
func (q *Queue) Take() { heap.Pop(&q.h) }

type byTime []*model.Waiting

func (h byTime) Len() int           { return len(h) }
func (h byTime) Less(i, j int) bool { return h[i].Before(h[j]) }
func (h byTime) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byTime) Push(w any)        { *h = append(*h, w.(*model.Waiting)) }

func (h *byTime) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
