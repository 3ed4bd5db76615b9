package space

import (
	"fmt"
	"strings"

	"github.com/settlehq/settle/model"
)

// tell is the handler of an action's stream: somebody says what has become of a task.
func (a *ActionSpec) tell(t *Tx, ev *model.Event) (model.Value, error) {
	c, err := readCompletion(ev.Payload)
	if err != nil {
		return model.Value{}, fmt.Errorf("an event of action %s: %w", a.Name, err)
	}
	task, late := a.meant(t, &c)
	if late != "" {
		return model.Object(model.F("ignored", late)), nil
	}
	if c.Attempt > 0 {
		if c.Attempt > task.Attempts {
			task.Attempts, task.Err = c.Attempt, c.Err
			t.writeTask(a.Name, task.entry(), inTasks, task.Key)
		}
		return model.Value{}, nil
	}
	task.State, task.Out, task.Err, task.Unhandled = TaskDone, c.Out, "", false
	if c.Err != "" {
		task.State, task.Err = TaskFailed, c.Err
		if a.Input {
			task.Out = t.Peek(a.Name, inTasks, c.Key, "out") // what came before is better than nothing
		}
	}
	a.end(t, &task)
	if a.Done == nil {
		return model.Value{}, nil
	}
	return model.Value{}, a.Done(t, task)
}

// meant is the task that an event is about, or why that does not wait for it.
func (a *ActionSpec) meant(t *Tx, c *Completion) (task Task, late string) {
	task = a.task(t, c.Key)
	if a.Input {
		if n, wanted := t.Peek(a.Pending(), c.Key).AsInt(); wanted {
			task.N, task.State = n, TaskPending
		}
	}
	switch {
	case task.State == NoTask:
		return task, "there is no such task"
	case c.N != 0 && c.N != task.N:
		return task, "it was started again, or forgotten"
	case task.State == TaskPending || task.Unhandled && c.Attempt == 0:
		return task, ""
	case task.State == TaskCancelled && c.Err == "":
		return task, "" // it was too late
	}
	return task, "it is " + string(task.State)
}

// end keeps a task that has ended.
func (a *ActionSpec) end(t *Tx, task *Task) {
	task.At = t.core.ledger.Wall()
	t.writeTask(a.Name, task.entry(), inTasks, task.Key)
	if a.Input {
		t.writeTask(a.Pending(), model.Value{}, task.Key)
	}
}

// maxTaskError bounds the text that is kept of a task that could not be handled.
const maxTaskError = 300

// endTask ends the task of an event that has failed, in the transaction that says so: nobody
// would say again that it has been done. It writes no more than it must, field by field: what
// has failed may have been too large.
//
// It is the only writer that no bound refuses, so it keeps one itself. In a document without room
// the end of a task is the word failed instead of pending, and that it is unhandled: 15 bytes for
// an entry of 32 and more, so that a document has at most half of its bound beyond it, and fits
// into a message, which takes twice as much. A key for which an input has no entry yet stays
// wanted: it is told again, or fetched, when there is room.
func (r *runner) endTask(tx *Tx, ev *model.Event, why string) {
	a := r.program.actions[ev.Stream]
	if a == nil {
		return
	}
	c, err := readCompletion(ev.Payload)
	if err != nil || c.Attempt > 0 {
		return
	}
	tx.err = nil // nothing of what it was about is left
	task, late := a.meant(tx, &c)
	if late != "" {
		return
	}
	d := r.graph.known(a.Name)
	d.measured = false // what is added here counts from the next write on
	if a.Input && tx.Peek(a.Name, inTasks, task.Key).IsAbsent() && !r.sizes.roomFor(tx, d, taskEndBytes+len(task.Key)) {
		return
	}
	set := func(field string, v model.Value) { tx.writeTask(a.Name, v, inTasks, task.Key, field) }
	set("state", model.String(string(TaskFailed)))
	set("n", model.Int(task.N))
	set("unhandled", model.Bool(true))
	if text := endText(ev, why); r.sizes.roomFor(tx, d, taskEndBytes+len(text)) {
		set("error", model.String(text))
		set("at", model.Int(r.ledger.Wall()))
	}
	if a.Input {
		tx.writeTask(a.Pending(), model.Value{}, task.Key)
	}
}

// taskEndBytes is what the end of a task takes beside its text.
const taskEndBytes = 100

// endText says why a task has ended that could not be handled.
func endText(ev *model.Event, why string) string {
	if len(why) > maxTaskError {
		why = strings.ToValidUTF8(why[:maxTaskError], "") + "..."
	}
	return fmt.Sprintf("it was told how it ended, and that could not be handled: %s (event %s; redrive it)", why, ev.ID)
}
