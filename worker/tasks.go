package worker

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Tasks are work outside of a space (space.ActionSpec, docs/adr/0029). The owner does them:
//
//	the log says   a task is pending        looked for in the confirmed documents, whenever
//	                                        one that holds tasks has another revision
//	attempt        Performer.Do             a goroutine each, so many per action and space, and
//	                                        per worker
//	told           an event to the action   through the lane, as from anybody, under an id that
//	                                        follows from the task
//	the log says   it is not pending
//
// What is speculative is never looked at, so nothing is done for a transaction that may be
// undone. A task that is in the log is found by whoever serves the space, until an event in the
// log has ended it: as long as one is pending, the space stays in memory, and what is saved of
// it says that it wants to be woken at once, like one with a follow-up (see due.go).
//
// Nothing here has to be exact for that: of an event that is told twice, by two owners, the lane
// keeps one, and one about a task that has ended does nothing.

// tasks belong to the host's loop.
type tasks struct {
	program *space.Program
	actions []*performing
	order   int
}

// performing is an action of which tasks are done here.
type performing struct {
	spec *space.ActionSpec
	how  *Performer
	// doc is the document that shows what is pending, as of revision seen.
	doc     model.Value
	seen    uint64
	pending map[string]*task
	queue   taskQueue
	underWay,
	limit int
}

// task is one that is pending.
type task struct {
	space.Task
	// at is when it is to be looked at again, order who comes first of several.
	at    time.Duration
	order int
	// cancel ends the attempt that is under way, nil if none is.
	cancel context.CancelFunc
	// ended is what has come of it, nil if nothing has yet, told how often that was said.
	ended *space.Completion
	told  int
	// place is where it is in the queue, -1 if something is under way for it.
	place int
	// gone says that it is not pending any more.
	gone bool
}

// tellAgain is when it is told again how a task has ended that is still pending, doubled each
// time: the event may have been refused by a program that did not know the action.
const tellAgain = 30 * time.Second

// lookAtTasks takes in what the log says of tasks.
func (h *host) lookAtTasks() {
	if h.core == nil || h.joins {
		return
	}
	if p := h.core.Program(); p != h.tasks.program {
		h.tasks.change(p)
	}
	for _, a := range h.tasks.actions {
		doc, seq := h.core.Confirmed(a.spec.Pending())
		if seq != a.seen {
			h.lookAt(a, doc)
			a.seen = seq
		}
	}
}

// change takes in that the space runs another program. What is under way goes on; what the
// program does not know any more is let go.
func (ts *tasks) change(p *space.Program) {
	old := ts.actions
	ts.program, ts.actions = p, nil
	for _, spec := range p.Actions() {
		how, ok := spec.Host.(*Performer)
		if !ok {
			continue // somebody else does them
		}
		a := &performing{pending: map[string]*task{}}
		if i := slices.IndexFunc(old, func(a *performing) bool { return a.spec.Name == spec.Name && a.spec.Input == spec.Input }); i >= 0 {
			a = old[i]
			old = slices.Delete(old, i, i+1)
		}
		a.spec, a.how, a.limit = spec, how, how.atATime()
		ts.actions = append(ts.actions, a)
	}
	for _, a := range old {
		for _, t := range a.pending { // any order: all of them
			t.drop()
		}
	}
}

// lookAt compares what is pending with what was.
func (h *host) lookAt(a *performing, doc model.Value) {
	changed := model.Diff("", a.spec.Entries(a.doc), a.spec.Entries(doc))
	a.doc = doc
	entries := a.spec.Entries(doc)
	for i := range changed {
		if len(changed[i].Path) == 0 { // there were none before, or there are none any more
			for key := range a.pending { // any order: each on its own
				h.lookAtTask(a, key, entries.Get(key))
			}
			for key, entry := range entries.All() {
				h.lookAtTask(a, key, entry)
			}
			return
		}
		key := changed[i].Path[0]
		h.lookAtTask(a, key, entries.Get(key))
	}
}

func (h *host) lookAtTask(a *performing, key string, entry model.Value) {
	is, pending := a.spec.PendingTask(key, entry)
	t := a.pending[key]
	if t != nil && (!pending || is.N != t.N) {
		delete(a.pending, key)
		a.queue.remove(t)
		t.drop()
		t = nil
	}
	if t != nil || !pending {
		return
	}
	h.tasks.order++
	is.Attempts = h.attemptsAt(a, &is)
	t = &task{Task: is, order: h.tasks.order}
	a.pending[key] = t
	heap.Push(&a.queue, t)
}

// attemptsAt is how many attempts at a task have failed, by what the log says.
func (h *host) attemptsAt(a *performing, t *space.Task) int {
	if !a.spec.Input {
		return t.Attempts
	}
	doc, _ := h.core.Confirmed(a.spec.Name)
	if known := space.TaskOf(t.Key, doc.At(space.PathOfTask(t.Key))); known.N == t.N {
		return known.Attempts
	}
	return 0
}

// drop ends what is under way for a task that is not pending any more.
func (t *task) drop() {
	t.gone = true
	if t.cancel != nil {
		t.cancel()
	}
}

// pending reports whether any task is to be done here.
func (ts *tasks) pending() bool {
	return slices.ContainsFunc(ts.actions, func(a *performing) bool { return len(a.pending) > 0 })
}

// nextDue is when the space wants to be woken should this host end, 0 for never.
func (h *host) nextDue() int64 {
	h.lookAtTasks()
	if h.tasks.pending() {
		return atOnce
	}
	return h.core.NextDue()
}

// performTasks begins what is to be done now.
func (h *host) performTasks() {
	h.lookAtTasks()
	if h.draining || !h.core.Owned() || !h.tasks.pending() {
		return
	}
	now := h.now()
	for _, a := range h.tasks.actions {
		for a.underWay < a.limit {
			t := a.queue.next()
			if t == nil || t.at > now {
				break
			}
			heap.Pop(&a.queue)
			a.underWay++
			h.begin(a, t)
		}
	}
}

// tasksAt is when the next task is to be looked at, 0 if none waits for a time.
func (h *host) tasksAt() (at time.Duration) {
	if h.draining || !h.core.Owned() {
		return 0
	}
	for _, a := range h.tasks.actions {
		if t := a.queue.next(); t != nil && a.underWay < a.limit {
			at = earliest(at, max(t.at, 1))
		}
	}
	return at
}

// begin makes an attempt at a task, or tells again how it has ended.
func (h *host) begin(a *performing, t *task) {
	ctx, cancel := context.WithCancel(h.ctx)
	t.cancel = cancel
	told, name, how := t.told, a.spec.Name, a.how // as of now: another program may have another function
	do := func() *space.Completion { return h.attempt(ctx, name, how, t) }
	if t.ended != nil {
		do = func() *space.Completion { return t.ended }
	}
	h.env.tasks.Go(func() { // ends with ctx at the latest, as far as Do does
		c := do()
		if c != nil {
			c = h.tell(ctx, name, c, told)
		}
		h.call(func() {
			cancel()
			a.underWay--
			t.cancel = nil
			h.attempted(a, t, c)
		})
	})
}

// attempted takes in what has come of an attempt, nil if nothing has.
func (h *host) attempted(a *performing, t *task, c *space.Completion) {
	switch {
	case t.gone:
		return
	case c == nil: // the space is given away
		t.at = h.now() + a.how.pause(1)
	case c.Attempt > 0:
		t.Attempts = c.Attempt
		t.at = h.now() + a.how.pause(c.Attempt)
	default:
		t.ended = c
		t.at = h.now() + tellAgain<<min(t.told, 10)
		t.told++
	}
	heap.Push(&a.queue, t)
}

// taskQueue has the tasks that nothing is under way for, by when they are to be looked at.
type taskQueue []*task

// next is the first, nil if there is none.
func (q taskQueue) next() *task {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

// remove takes a task out that is not pending any more. It may be there for hours yet: one that
// has been done waits to be told of again.
func (q *taskQueue) remove(t *task) {
	if t.place >= 0 {
		heap.Remove(q, t.place)
	}
}

func (q taskQueue) Len() int { return len(q) }
func (q taskQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q taskQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *taskQueue) Push(x any) {
	t := x.(*task)
	t.place = len(*q)
	*q = append(*q, t)
}

func (q *taskQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	last.place = -1
	return last
}
