package tasks

import (
	"container/heap"
	"time"
)

// queue holds the tasks without a running attempt: those that can begin, ordered by priority, and those that wait for a time.
type queue struct{ due, later taskHeap }

// push adds a task.
func (q *queue) push(t *task) {
	if t.waits = t.at > 0; t.waits {
		heap.Push(&q.later, t)
	} else {
		heap.Push(&q.due, t)
	}
}

// next returns the first task that can begin at a time, nil if there is none.
func (q *queue) next(now time.Duration) *task {
	for len(q.later) > 0 && q.later[0].at <= now {
		t := heap.Pop(&q.later).(*task)
		t.waits = false
		heap.Push(&q.due, t)
	}
	if len(q.due) == 0 {
		return nil
	}
	return q.due[0]
}

// first returns when a task can begin, as far as that is known, and false if there is no task.
func (q *queue) first() (at time.Duration, is bool) {
	switch {
	case len(q.due) > 0:
		return q.due[0].at, true
	case len(q.later) > 0:
		return q.later[0].at, true
	}
	return 0, false
}

// remove removes a task that begins, or is not pending any more. It might stay queued for hours otherwise: a task
// that has ended waits for its outcome to be reported again.
func (q *queue) remove(t *task) {
	switch {
	case t.place < 0:
	case t.waits:
		heap.Remove(&q.later, t.place)
	default:
		heap.Remove(&q.due, t.place)
	}
}

func (q *queue) len() int { return len(q.due) + len(q.later) }

// taskHeap is a heap of tasks, all of which wait for a time or none.
type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case !a.waits && a.priority != b.priority:
		return a.priority > b.priority
	case a.at != b.at:
		return a.at < b.at
	}
	return a.order < b.order
}

func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is for package heap.
func (h *taskHeap) Push(x any) {
	t := x.(*task)
	t.place = len(*h)
	*h = append(*h, t)
}

// Pop is for package heap.
func (h *taskHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.place = -1
	return last
}
