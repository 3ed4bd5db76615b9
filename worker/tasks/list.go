package tasks

import (
	"container/heap"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// List is the tasks of one space that are done here. It belongs to the loop of who serves the
// space.
type List struct {
	host    Host
	core    *space.Space
	program *space.Program
	actions []*performing
	order   int
}

// Host is who serves the space, and does for its tasks what cannot be done by the loop.
type Host struct {
	Space string
	// Ctx ends when the space is not served any more, and all attempts with it.
	Ctx context.Context
	// Slots bound the attempts of the process.
	Slots *Slots
	// Now is the time by the clock of the loop.
	Now func() time.Duration
	// Go has a function run beside the loop, Call has one run by it.
	Go, Call func(func())
	// Send stores an event in a lane.
	Send func(model.Message) error
	// Report tells the operator of an error that passes.
	Report func(what string, err error)
	Logger *slog.Logger
	// Warn tells the operator of what may be so again and again: what, and of which task.
	Warn func(what, of string, about ...any)
}

// New makes the list of a space, of which nothing is known yet.
func New(host Host) *List { return &List{host: host} }

// performing is an action of which tasks are done here.
type performing struct {
	spec *space.ActionSpec
	how  *Performer
	// doc is the document that shows what is pending, as of revision seen.
	doc     model.Value
	seen    uint64
	pending map[string]*task
	queue   queue
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

// Look takes in what the log says of tasks.
func (l *List) Look(core *space.Space) {
	l.core = core
	if p := core.Program(); p != l.program {
		l.change(p)
	}
	for _, a := range l.actions {
		doc, seq := core.Confirmed(a.spec.Pending())
		if seq != a.seen {
			l.lookAt(a, doc)
			a.seen = seq
		}
	}
}

// change takes in that the space runs another program. What is under way goes on; what the
// program does not know any more is let go.
func (l *List) change(p *space.Program) {
	old := l.actions
	l.program, l.actions = p, nil
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
		l.actions = append(l.actions, a)
	}
	for _, a := range old {
		for _, t := range a.pending { // any order: all of them
			t.drop()
		}
	}
}

// lookAt compares what is pending with what was.
func (l *List) lookAt(a *performing, doc model.Value) {
	changed := model.Diff("", a.spec.Entries(a.doc), a.spec.Entries(doc))
	a.doc = doc
	entries := a.spec.Entries(doc)
	for i := range changed {
		if len(changed[i].Path) == 0 { // there were none before, or there are none any more
			for key := range a.pending { // any order: each on its own
				l.lookAtTask(a, key, entries.Get(key))
			}
			for key, entry := range entries.All() {
				l.lookAtTask(a, key, entry)
			}
			return
		}
		key := changed[i].Path[0]
		l.lookAtTask(a, key, entries.Get(key))
	}
}

func (l *List) lookAtTask(a *performing, key string, entry model.Value) {
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
	l.order++
	is.Attempts = l.attemptsAt(a, &is)
	t = &task{Task: is, order: l.order}
	a.pending[key] = t
	heap.Push(&a.queue, t)
}

// attemptsAt is how many attempts at a task have failed, by what the log says.
func (l *List) attemptsAt(a *performing, t *space.Task) int {
	if !a.spec.Input {
		return t.Attempts
	}
	doc, _ := l.core.Confirmed(a.spec.Name)
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

// Pending reports whether any task is to be done here.
func (l *List) Pending() bool {
	return slices.ContainsFunc(l.actions, func(a *performing) bool { return len(a.pending) > 0 })
}

// Perform begins what is to be done now.
func (l *List) Perform() {
	now := l.host.Now()
	for _, a := range l.actions {
		for a.underWay < a.limit {
			t := a.queue.next()
			if t == nil || t.at > now {
				break
			}
			heap.Pop(&a.queue)
			a.underWay++
			l.begin(a, t)
		}
	}
}

// Next is when the next task is to be looked at, 0 if none waits for a time.
func (l *List) Next() (at time.Duration) {
	for _, a := range l.actions {
		if t := a.queue.next(); t != nil && a.underWay < a.limit {
			if first := max(t.at, 1); at == 0 || first < at {
				at = first
			}
		}
	}
	return at
}

// begin makes an attempt at a task, or tells again how it has ended.
func (l *List) begin(a *performing, t *task) {
	ctx, cancel := context.WithCancel(l.host.Ctx)
	t.cancel = cancel
	told, name, how := t.told, a.spec.Name, a.how // as of now: another program may have another function
	do := func() *space.Completion { return l.attempt(ctx, name, how, t) }
	if t.ended != nil {
		do = func() *space.Completion { return t.ended }
	}
	l.host.Go(func() { // ends with ctx at the latest, as far as Do does
		c := do()
		if c != nil {
			c = l.tell(ctx, name, c, told)
		}
		l.host.Call(func() {
			cancel()
			a.underWay--
			t.cancel = nil
			l.attempted(a, t, c)
		})
	})
}

// attempted takes in what has come of an attempt, nil if nothing has.
func (l *List) attempted(a *performing, t *task, c *space.Completion) {
	switch {
	case t.gone:
		return
	case c == nil: // the space is given away
		t.at = l.host.Now() + a.how.pause(1)
	case c.Attempt > 0:
		t.Attempts = c.Attempt
		t.at = l.host.Now() + a.how.pause(c.Attempt)
	default:
		t.ended = c
		t.at = l.host.Now() + tellAgain<<min(t.told, 10)
		t.told++
	}
	heap.Push(&a.queue, t)
}
