package space

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// TaskState is how far a task is.
type TaskState string

const (
	// NoTask: there is none of that key.
	NoTask TaskState = ""
	// TaskPending: it is to be done, or is being done.
	TaskPending TaskState = "pending"
	// TaskDone: it has been done, and Out is what has come of it.
	TaskDone TaskState = "done"
	// TaskFailed: it is not tried any more.
	TaskFailed TaskState = "failed"
	// TaskCancelled: it was cancelled before it was known to have been done.
	TaskCancelled TaskState = "cancelled"
)

// Task is one piece of work outside of the space.
type Task struct {
	Key   string
	State TaskState
	// N tells this start of the key from others, before and after.
	N int64
	// In is what it was started with.
	In model.Value
	// Out is what has come of it. Of an input that is fetched again, it is what came before.
	Out model.Value
	// Err is why it has failed, or, while it is pending, why the last attempt has.
	Err string
	// Attempts counts the attempts that have failed.
	Attempts int
	// At is when it ended, in milliseconds since 1970.
	At int64
	// Unhandled says that it has ended and that Done could not handle that.
	Unhandled bool
}

// TaskOf is the task of an entry of an action's document.
func TaskOf(key string, entry model.Value) Task {
	t := Task{Key: key, In: entry.Get("in"), Out: entry.Get("out")}
	state, _ := entry.Get("state").AsString()
	t.State = TaskState(state)
	t.N, _ = entry.Get("n").AsInt()
	t.Err, _ = entry.Get("error").AsString()
	attempts, _ := entry.Get("attempts").AsInt()
	t.Attempts = int(attempts)
	t.At, _ = entry.Get("at").AsInt()
	t.Unhandled, _ = entry.Get("unhandled").AsBool()
	if t.Unhandled && t.Err == "" {
		t.Err = noRoomForText
	}
	return t
}

// noRoomForText stands for the error of a task that ended in a document without room for it.
const noRoomForText = "it was told how it ended, and that could not be handled; the document of the tasks has no room for why, but the dead letter on their stream does"

func (t *Task) entry() model.Value {
	fields := []model.Field{model.F("state", string(t.State)), model.F("n", t.N)}
	add := func(name string, v any, there bool) {
		if there {
			fields = append(fields, model.F(name, v))
		}
	}
	add("in", t.In, !t.In.IsAbsent())
	add("out", t.Out, !t.Out.IsAbsent())
	add("error", t.Err, t.Err != "")
	add("attempts", t.Attempts, t.Attempts > 0)
	add("at", t.At, t.At > 0)
	add("unhandled", t.Unhandled, t.Unhandled)
	return model.Object(fields...)
}

// PathOfTask is where in an action's document a task stands.
func PathOfTask(key string) model.Path { return model.Path{inTasks, key} }

// StartTask has a task of an action done, once this transaction is in the log, and not at all
// if it never is. The key names it, in this space and outside: whoever does it may have to try
// more than once, and says the same key each time.
//
// What is pending or done is not started again: with the same in, nothing happens; with
// another, the transaction fails. What has failed, was cancelled or forgotten is.
func (t *Tx) StartTask(action, key string, in any) {
	if t.err != nil {
		return
	}
	if err := t.startTask(action, key, in); err != nil {
		t.fail(fmt.Errorf("start task %q of %s: %w", key, action, err))
	}
}

func (t *Tx) startTask(action, key string, in any) error {
	a, err := t.handlersAction(action, key, false)
	if err != nil {
		return err
	}
	v, err := model.Of(in)
	if err != nil {
		return err
	}
	was := a.task(t, key)
	if was.State == TaskPending || was.State == TaskDone {
		if !model.Equal(was.In, v) {
			return fmt.Errorf("it is %s with another input: %s, then %s; a key names one piece of work", was.State, brief(was.In), brief(v))
		}
		return nil
	}
	a.tidy(t)
	task := Task{State: TaskPending, N: a.nextN(t, was.N), In: v}
	t.writeTask(a.Name, task.entry(), inTasks, key)
	return nil
}

// CancelTask has a task not be done, unless it is done already. It reports whether it was
// pending. If somebody is just doing it, and has done it all the same, the task is done after
// all, and Done is called.
func (t *Tx) CancelTask(action, key string) bool {
	if t.err != nil {
		return false
	}
	a, err := t.handlersAction(action, key, false)
	if err != nil {
		t.fail(fmt.Errorf("cancel task %q of %s: %w", key, action, err))
		return false
	}
	task := a.task(t, key)
	if task.State != TaskPending {
		return false
	}
	task.State, task.At = TaskCancelled, t.core.ledger.Wall()
	t.writeTask(a.Name, task.entry(), inTasks, key)
	return true
}

// ForgetTask removes a task that has ended, so that its key can be used again; of an input,
// what was fetched, so that it is fetched again when somebody wants it.
func (t *Tx) ForgetTask(name, key string) {
	if t.err != nil {
		return
	}
	if err := t.forgetTask(name, key); err != nil {
		t.fail(fmt.Errorf("forget %q of %s: %w", key, name, err))
	}
}

func (t *Tx) forgetTask(name, key string) error {
	input := t.core.program.actions[name] != nil && t.core.program.actions[name].Input
	a, err := t.handlersAction(name, key, input)
	if err != nil {
		return err
	}
	switch task := a.task(t, key); {
	case task.State == NoTask: // an input that is being fetched for the first time goes on
	case task.State == TaskPending && !a.Input:
		return fmt.Errorf("it is pending; cancel it first")
	default:
		a.remove(t, task)
	}
	return nil
}

// remove takes an entry out, and remembers that its number was given out.
func (a *ActionSpec) remove(t *Tx, task Task) {
	n := task.N
	if a.Input {
		wanted, _ := t.Peek(a.Pending(), task.Key).AsInt()
		n = max(n, wanted)
		t.writeTask(a.Pending(), model.Value{}, task.Key)
	}
	if gen := a.nextN(t, n) - 1; gen > 0 {
		t.writeTask(a.Name, model.Int(gen), inGeneration)
	}
	t.writeTask(a.Name, model.Value{}, inTasks, task.Key)
}

// WantTask reads an input, and has it fetched if it is not there. A node must have declared
// ActionSpec.Wants; it runs again when the input has come.
func (t *Tx) WantTask(input, key string) Task {
	if t.err != nil {
		return Task{}
	}
	a, err := t.action(input, true)
	if err == nil {
		err = checkTaskKey(key)
	}
	if err == nil && t.node != nil && !t.Declares(a.Pending(), key) {
		err = fmt.Errorf("%s %s was not registered with this input; register it with settle.Using(%s); a NodeSpec has %s among its Writes", t.node.kind, t.node.id(), input, input+wantedSuffix)
	}
	if err != nil {
		t.fail(fmt.Errorf("read %q of input %s: %w", key, input, err))
		return Task{}
	}
	task := a.task(t, key)
	if task.State == NoTask {
		task.State = TaskPending
		task.N, _ = t.Peek(a.Pending(), key).AsInt()
		if task.N == 0 {
			task.N = a.nextN(t, 0)
		}
		// Written even if it is there: it may be undone with who wrote it.
		t.writeTask(a.Pending(), model.Int(task.N), key)
	}
	return task
}

// RefreshTask has an input fetched, again if it is there. What was there is read until then.
// A fetch that is under way does not count: it may have begun too early.
func (t *Tx) RefreshTask(input, key string) {
	if t.err != nil {
		return
	}
	a, err := t.handlersAction(input, key, true)
	if err != nil {
		t.fail(fmt.Errorf("refresh %q of input %s: %w", key, input, err))
		return
	}
	was := a.task(t, key)
	wanted, _ := t.Peek(a.Pending(), key).AsInt()
	task := Task{State: TaskPending, N: a.nextN(t, max(was.N, wanted)), Out: was.Out}
	t.writeTask(a.Name, task.entry(), inTasks, key)
	t.writeTask(a.Pending(), model.Int(task.N), key)
}

// handlersAction is an action for what handlers do with it.
func (t *Tx) handlersAction(name, key string, input bool) (*ActionSpec, error) {
	a, err := t.action(name, input)
	switch {
	case err != nil:
		return nil, err
	case t.node != nil:
		return nil, fmt.Errorf("%s %s cannot; tasks belong to handlers", t.node.kind, t.node.id())
	}
	return a, checkTaskKey(key)
}

func checkTaskKey(key string) error {
	if key == "" || len(key) > MaxTaskKey {
		return fmt.Errorf("the key has %d bytes; it must have between 1 and %d", len(key), MaxTaskKey)
	}
	return nil
}

// task reads a task.
func (a *ActionSpec) task(t *Tx, key string) Task {
	return TaskOf(key, t.Get(a.Name, inTasks, key))
}

// nextN is the number of the next start of a key: above that of its last one, and above any
// that was removed. Ids of events are made with it, and those are remembered for long.
func (a *ActionSpec) nextN(t *Tx, last int64) int64 {
	gen, _ := t.Peek(a.Name, inGeneration).AsInt()
	return max(gen, last) + 1
}

// writeTask writes into a document of an action; an absent value deletes.
func (t *Tx) writeTask(doc string, v model.Value, path ...string) {
	t.tasking = true
	t.write(model.Write{Doc: doc, Path: slices.Clone(path), Value: v, Delete: v.IsAbsent()})
	t.tasking = false
}

// tidyEvery is how many tasks there are between one tidying and the next.
const tidyEvery = 64

// tidy removes tasks that have ended long ago, when there are more and more of them.
func (a *ActionSpec) tidy(t *Tx) {
	tasks := t.Peek(a.Name, inTasks)
	if tasks.Len()%tidyEvery != tidyEvery-1 || t.core.ledger.Wall() == 0 {
		return
	}
	var ended []Task
	for key, entry := range tasks.All() {
		if task := TaskOf(key, entry); task.State != TaskPending && !task.Unhandled {
			ended = append(ended, task)
		}
	}
	slices.SortFunc(ended, func(a, b Task) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key)) })
	keep := cmp.Or(a.Keep, defaultKeep).Milliseconds()
	for i, task := range ended {
		if task.At > t.core.ledger.Wall()-keep && len(ended)-i <= mostKept {
			return
		}
		a.remove(t, task)
	}
}

func brief(v model.Value) string {
	const most = 100
	text := v.String()
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// Completion tells of the end of a task, or of an attempt that has failed.
type Completion struct {
	Key string
	// N is the Task.N that is meant, 0 for the one that is pending.
	N int64
	// Out is what has come of it, Err why nothing has.
	Out model.Value
	Err string
	// Attempt, if not 0, is how many attempts have failed; there will be another one.
	Attempt int
}

// Value is the payload of the event.
func (c *Completion) Value() model.Value {
	fields := []model.Field{model.F("key", c.Key)}
	add := func(name string, v any, there bool) {
		if there {
			fields = append(fields, model.F(name, v))
		}
	}
	add("n", c.N, c.N != 0)
	add("out", c.Out, !c.Out.IsAbsent())
	add("error", c.Err, c.Err != "")
	add("attempt", c.Attempt, c.Attempt != 0)
	return model.Object(fields...)
}

func readCompletion(v model.Value) (c Completion, err error) {
	key, ok := v.Get("key").AsString()
	if !ok {
		return c, errors.New(`it names no task; the payload is {"key": KEY, "out": VALUE} or {"key": KEY, "error": TEXT}`)
	}
	c = Completion{Key: key, Out: v.Get("out")}
	if e := v.Get("error"); !e.IsAbsent() {
		text, ok := e.AsString()
		if !ok {
			text = e.String()
		}
		c.Err = cmp.Or(text, "failed")
	}
	c.N, _ = v.Get("n").AsInt()
	attempt, _ := v.Get("attempt").AsInt()
	c.Attempt = int(attempt)
	return c, checkTaskKey(key)
}
