package replica

import (
	"container/heap"

	"github.com/settlehq/settle/model"
)

// Queue orders events that wait, the one that is next first. Those that wait no more may
// stay in it: they are dropped when they come up.
type Queue struct{ h byTime }

// Len is how many are in it, those included that wait no more.
func (q *Queue) Len() int { return len(q.h) }

// Add puts one into its place.
func (q *Queue) Add(w *model.Waiting) { heap.Push(&q.h, w) }

// First is the first of which waits reports true, nil if there is none.
func (q *Queue) First(waits func(*model.Waiting) bool) *model.Waiting {
	for len(q.h) > 0 && !waits(q.h[0]) {
		heap.Pop(&q.h)
	}
	if len(q.h) == 0 {
		return nil
	}
	return q.h[0]
}

// Take removes what First has returned.
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
