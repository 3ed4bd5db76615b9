package tasks

import "container/heap"

// queue has the tasks that nothing is under way for, by when they are to be looked at.
type queue []*task

// next is the first, nil if there is none.
func (q queue) next() *task {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

// remove takes a task out that is not pending any more. It may be there for hours yet: one that
// has been done waits to be told of again.
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
