package tasks

import "container/heap"

// queue holds the tasks without a running attempt, ordered by when to check them.
type queue []*task

// next returns the first task, nil if there is none.
func (q queue) next() *task {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

// remove removes a task that is not pending any more. It might stay queued for hours otherwise: a task
// that has ended waits for its outcome to be reported again.
func (q *queue) remove(t *task) {
	if t.place >= 0 {
		heap.Remove(q, t.place)
	}
}

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *queue) Push(x any) {
	t := x.(*task)
	t.place = len(*q)
	*q = append(*q, t)
}

func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	last.place = -1
	return last
}
