package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// With the fault "tasks", the latest seeds have tasks with deadlines (docs/adr/0095): soon, and later than the run lasts. Some of
// the tasks are never done. Clients cancel tasks, and the events of deadlines, and workers die around their time. The promises:
//
//	the timer     is there for each pending task that has a deadline, for no other, and due at that time
//	the end       is the first of that by a performer, a cancellation and the deadline, and takes effect once
//	not before    no task fails with a DeadlineError early
//	not after     no attempt begins once the deadline has passed
//	at rest       no task is pending, whatever its performer does, and no timer of one is left

func (p *plan) deadlines() {
	if !p.isLatest() || !p.has("tasks") {
		return
	}
	for i := range 2 + keyed(p.seed, "times", "deadlines").below(5) {
		c := keyed(p.seed, "deadline", i)
		within := oneOf(c, 40*time.Millisecond, 200*time.Millisecond, time.Second, 3*time.Second)
		within = c.between(within/2, within*2)
		if c.below(6) == 0 {
			within = 2 * far
		}
		start := item{
			at: p.when(c), do: oneOf(c, "queue", "send", "call"), who: anyUser(c), space: p.anySpace(c),
			stream: "start-within", id: fmt.Sprint("l", i+1), payload: fmt.Sprintf(`{"k":%d,"ms":%d}`, 1+c.below(3), within.Milliseconds()),
		}
		p.add(start)
		meanwhile := func() time.Duration { return start.at + c.between(0, min(within, 2*time.Second)*5/4) }
		if c.below(4) == 0 {
			p.add(item{
				at: meanwhile(), do: "send", who: anyUser(c), space: start.space,
				stream: "cancel", id: fmt.Sprint("xl", i+1), payload: fmt.Sprintf("%q", taskKey(start.id, 1)),
			})
		}
		if c.below(4) == 0 {
			p.add(item{at: meanwhile(), do: "spare", who: anyUser(c), space: start.space})
		}
		if c.below(4) > 0 || !p.has("kill") {
			continue
		}
		at := meanwhile()
		for k := range workers {
			who := fmt.Sprint("w", k+1)
			p.add(item{at: at + time.Duration(k), do: "kill", who: who})
			if k == 0 || c.below(2) == 0 {
				p.add(item{at: at + c.between(time.Millisecond, time.Second), do: "start", who: who})
			}
		}
	}
}

// ofDeadlines are the streams: tasks with deadlines that differ from each other, because no two things may happen in one instant.
var ofDeadlines = map[string]func(v view, ev *model.Event) (model.Value, error){
	"start-within": func(v view, ev *model.Event) (model.Value, error) {
		k, _ := ev.Payload.Get("k").AsInt()
		ms, _ := ev.Payload.Get("ms").AsInt()
		for i := range k {
			key := taskKey(ev.ID, i+1)
			v.StartLimited(work, key, taskInput(v.Space(), key), time.Duration(ms+37*i)*time.Millisecond)
		}
		return ranAt(v, "")
	},
}

// StartLimited starts a task that has a deadline.
func (e edited) StartLimited(action, key string, in any, within time.Duration) {
	e.StartTask(action, key, in, space.Deadline(within))
}

func (o *oracle) StartLimited(action, key string, in any, within time.Duration) {
	at := o.Now().Add(within)
	o.Set(action, map[string]any{
		"state": string(space.TaskPending), "n": 1, "in": in, "event": o.event.ID, "until": at.UnixMilli(),
	}, space.PathOfTask(key)...)
	name := deadlineTimer(action, key)
	o.unset(name)
	s := o.send(o.f.space, action, map[string]any{"key": key, "n": 1, "error": deadlineText(within)})
	s.Timer, s.NotBefore, s.Depth = name, at.UnixMilli(), o.timed(at)
}

func deadlineTimer(action, key string) string { return "=task." + action + "." + model.NameOf(key) }

func deadlineText(within time.Duration) string {
	return fmt.Sprintf("%s: the task has not ended within %s", space.DeadlineError, within)
}

// limited is what the log has of the deadlines of a space.
type limited struct {
	until map[string]int64 // when the tasks that have one must end, by key
	ended map[string]bool  // those that their deadline has ended
}

func newLimited() limited { return limited{map[string]int64{}, map[string]bool{}} }

// limitsAgree: after a transaction, a timer is set for each pending task with a deadline, for no other, and for that time.
func (f *fold) limitsAgree(tx *model.Tx, after map[string]model.Value) {
	if _, ok := after[work]; !ok && len(tx.Cancels) == 0 {
		return
	}
	n := 0
	for key, entry := range f.docs[work].Get("tasks").All() {
		t := space.TaskOf(key, entry)
		if t.Until == 0 {
			continue
		}
		n++
		f.limited.until[key] = t.Until
		slot, set := f.agenda.timers[deadlineTimer(work, key)]
		if !set || t.State != space.TaskPending || f.agenda.bySlot[slot].NotBefore != t.Until {
			f.wrong("deadlines", "%s: task %s is %s, and has a deadline at %d; its timer is set: %v", tx.By, key, t.State, t.Until, set)
		}
	}
	if timers := f.deadlineTimers(); len(timers) != n {
		f.wrong("deadlines", "%s: %d tasks have a deadline, and these timers are set: %v", tx.By, n, timers)
	}
}

// deadlineTimers returns the names of the timers of deadlines that are set.
func (f *fold) deadlineTimers() (list []string) {
	for name := range f.agenda.timers { // any order: sorted below
		if _, is := space.TaskOfTimer(name); is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// passed checks the event of a deadline, which has ended the task or was cancelled by an operator.
func (f *fold) passed(tx *model.Tx, ev *model.Event, was *space.Task) {
	key := was.Key
	is := f.task(ev.Stream, key)
	switch {
	case ev.Timer == "":
		return
	case was.State != space.TaskPending || was.Until != ev.NotBefore:
		f.wrong("deadlines", "task %s was %s with a deadline at %d when the timer for %d was handled", key, was.State, was.Until, ev.NotBefore)
	case tx.Receipt.Outcome == model.Cancelled:
		f.w.count("deadlines that an operator has cancelled")
		if is.State != space.TaskPending || is.Until != 0 {
			f.wrong("deadlines", "the deadline of task %s was cancelled, and it is %+v", key, is)
		}
	case is.State != space.TaskFailed:
		f.wrong("deadlines", "the deadline of task %s has passed (%s), and it is %s", key, tx.Receipt.Outcome, is.State)
	default:
		f.limited.ended[key] = true
		f.w.count("tasks that their deadline has ended")
		if f.w.outside.tried[f.space+"/"+work+"/"+key] > 0 {
			f.w.count("tasks that their deadline has ended after an attempt")
		}
	}
}

// isStuck reports whether no attempt at a task ever succeeds: one with a deadline that passes during the run. w.mu is held.
func (f *fold) isStuck(key string) bool {
	t := f.task(work, key)
	return t.Until > 0 && !f.w.isFar(t.Until) && keyed(f.w.plan.seed, "stuck", f.space, key).below(3) == 0
}

// checkBegun: no attempt at a task begins when its deadline has passed. w.mu is held.
func (w *world) checkBegun(f *fold, key string) {
	if t := f.task(work, key); t.Until > 0 && t.Until <= w.wall() {
		w.violate("deadlines", "space %s: an attempt at %s begins at %d; its deadline was at %d", f.space, key, w.wall(), t.Until)
	}
}

// checkDeadlines: at rest, no timer of a deadline is left, and the tasks that a deadline has ended have its error.
func (w *world) checkDeadlines(f *fold) {
	if list := f.deadlineTimers(); len(list) > 0 {
		w.violate("deadlines", "space %s: no task is pending, and these timers are set: %v", f.space, list)
	}
	for key, until := range f.limited.until { // any order: each on its own
		t := f.task(work, key)
		late := f.limited.ended[key]
		switch {
		case t.State == space.TaskPending || t.Until != 0:
			w.violate("deadlines", "space %s: %s is %s, with a deadline at %d", f.space, key, t.State, t.Until)
		case late && (t.State != space.TaskFailed || t.At != 0 && t.At < until):
			w.violate("deadlines", "space %s: %s is %s since %d; its deadline has ended it, which was at %d", f.space, key, t.State, t.At, until)
		case !late:
			w.count("tasks that have ended before their deadline")
		case w.isFar(until):
			w.violate("deadlines", "space %s: the deadline of %s has ended it at %d, and was at %d", f.space, key, t.At, until)
		}
	}
}

// spared returns the event of a deadline that waits in a space: the one that has waited for longest.
func (w *world) spared(name string) (id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*waiting
	for _, x := range w.folds[name].agenda.bySlot { // any order: sorted below
		if _, is := space.TaskOfTimer(x.Timer); is && x.Stream == work {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return slices.MinFunc(list, func(a, b *waiting) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Nth, b.Nth)) }).ID
}

// sometimesLatest is what must happen in some of the latest seeds of a run.
var sometimesLatest = []string{
	"deadlines that an operator has cancelled",
	"tasks that have ended before their deadline",
	"tasks that their deadline has ended",
	"tasks that their deadline has ended after an attempt",
}
