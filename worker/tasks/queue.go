package tasks

import (
	"container/heap"
	"time"
)

// queue holds the tasks of an action without a running attempt: those that wait for a time, and those that could begin.
// Of the latter, the one with the highest priority is first, and the older one of several. But every oldestEvery-th that begins is the
// oldest of all, so that a task of low priority is begun, at the latest, when oldestEvery times as many have begun as were there before it.
type queue struct {
	later pile // by time
	ready pile // by priority
	aged  pile // the same tasks as in ready, by age
	begun int
}

// oldestEvery is how often the oldest task begins, whatever its priority.
const oldestEvery = 8

func newQueue() queue {
	return queue{
		later: pile{kind: byTime, before: func(a, b *task) bool { return a.at < b.at || a.at == b.at && a.order < b.order }},
		ready: pile{kind: byPriority, before: func(a, b *task) bool {
			return a.Priority > b.Priority || a.Priority == b.Priority && a.order < b.order
		}},
		aged: pile{kind: byAge, before: func(a, b *task) bool { return a.order < b.order }},
	}
}

// push adds a task that can begin at its time.
func (q *queue) push(t *task) { heap.Push(&q.later, t) }

// remove removes a task, if it is there: one that is not pending any more, or begins.
func (q *queue) remove(t *task) {
	for _, p := range []*pile{&q.later, &q.ready, &q.aged} {
		if at := t.places[p.kind]; at > 0 {
			heap.Remove(p, at-1)
		}
	}
}

// first returns the task that is to begin next, nil if none can.
func (q *queue) first(now time.Duration) *task {
	for len(q.later.tasks) > 0 && q.later.tasks[0].at <= now {
		t := heap.Pop(&q.later).(*task)
		heap.Push(&q.ready, t)
		heap.Push(&q.aged, t)
	}
	switch {
	case len(q.ready.tasks) == 0:
		return nil
	case q.begun%oldestEvery == oldestEvery-1:
		return q.aged.tasks[0]
	}
	return q.ready.tasks[0]
}

// begin removes a task that begins.
func (q *queue) begin(t *task) {
	q.remove(t)
	q.begun++
}

// postpone lets a task wait for a time.
func (q *queue) postpone(t *task, at time.Duration) {
	q.remove(t)
	t.at = at
	q.push(t)
}

// next returns when the next task can begin: 0 for now. It returns false if there is none.
func (q *queue) next() (at time.Duration, is bool) {
	switch {
	case len(q.ready.tasks) > 0:
		return 0, true
	case len(q.later.tasks) > 0:
		return q.later.tasks[0].at, true
	}
	return 0, false
}

func (q *queue) len() int { return len(q.later.tasks) + len(q.ready.tasks) }

// Kinds of piles.
const (
	byTime = iota
	byPriority
	byAge
	kinds
)

// pile is a heap of tasks, which know their places in it.
type pile struct {
	tasks  []*task
	before func(a, b *task) bool
	kind   int
}

func (p *pile) Len() int           { return len(p.tasks) }
func (p *pile) Less(i, j int) bool { return p.before(p.tasks[i], p.tasks[j]) }

func (p *pile) Swap(i, j int) {
	p.tasks[i], p.tasks[j] = p.tasks[j], p.tasks[i]
	p.tasks[i].places[p.kind], p.tasks[j].places[p.kind] = i+1, j+1
}

func (p *pile) Push(x any) {
	t := x.(*task)
	p.tasks = append(p.tasks, t)
	t.places[p.kind] = len(p.tasks)
}

func (p *pile) Pop() any {
	n := len(p.tasks) - 1
	t := p.tasks[n]
	p.tasks[n] = nil
	p.tasks = p.tasks[:n]
	t.places[p.kind] = 0
	return t
}
