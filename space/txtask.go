package space

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// StartTask starts a task of an action, if and only if this transaction commits. The key names it, inside and
// outside this space: its performer may have to make several attempts, and uses the same key each time.
//
// A pending or completed task is not started again: with the same in, nothing happens; with another, the
// transaction fails. A failed, cancelled or forgotten task is started again.
func (h *Tx) StartTask(action, key string, in any, options ...TaskOption) {
	t := h.open()
	if t.err != nil {
		return
	}
	if err := t.startTask(action, key, in, options); err != nil {
		t.fail(fmt.Errorf("start task %q of %s: %w", key, action, err))
		return
	}
	t.noteStarted(action, key)
}

// noteStarted reports that a task may have been started.
func (t *transaction) noteStarted(action, key string) {
	if f := t.core.cfg.Trace.TaskStarted; f != nil && !t.rehearsal {
		f(action, key)
	}
}

func (t *transaction) startTask(action, key string, in any, options []TaskOption) error {
	a, err := t.handlersAction(action, key, false)
	if err != nil {
		return err
	}
	v, err := model.Of(in)
	if err != nil {
		return err
	}
	var how starting
	for _, set := range options {
		set(&how)
	}
	if max(how.priority, -how.priority) > maxPriority {
		return fmt.Errorf("the priority is %d; between -%d and %d are possible", how.priority, maxPriority, maxPriority)
	}
	limit, err := a.deadline(t, &how)
	if err != nil {
		return err
	}
	task := Task{Key: key, State: TaskPending, In: v, Priority: how.priority}
	at, was := a.find(t, key)
	switch other := how.replace && was.State == TaskPending && !model.Equal(was.In, v); {
	case other:
	case was.State == TaskPending || was.State == TaskDone:
		if !model.Equal(was.In, v) {
			return fmt.Errorf("it is %s with another input: %s, then %s; a key names one piece of work", was.State, brief(was.In), brief(v))
		}
		return nil
	}
	a.tidy(t)
	a.dropDeadline(t, &was)
	task.N = a.nextN(t, was.N)
	if err := a.setDeadline(t, &task, limit); err != nil {
		return err
	}
	if was.State == NoTask && a.apart {
		at = spot{doc: model.TaskDoc(a.name, key), own: true}
	}
	if ev := t.attempt.Event; ev != nil {
		task.Event = ev.ID
	}
	if at.own {
		task.Since = t.core.ledger.Wall()
	}
	a.put(t, &at, &task)
	return nil
}

// find returns a task, and where it is stored.
func (l *taskList) find(t *transaction, key string) (spot, Task) {
	if !l.input {
		doc := model.TaskDoc(l.name, key)
		if v := t.peek(doc); !v.IsAbsent() {
			return spot{doc: doc, own: true}, TaskOf(key, v)
		}
	}
	at := l.shared(key)
	return at, TaskOf(key, t.get(at.doc, at.path...))
}

// put stores a task.
func (l *taskList) put(t *transaction, at *spot, task *Task) {
	if at.own {
		t.writeTask(at.doc, task.entry(l.name))
		return
	}
	t.writeTask(at.doc, task.entry(""), at.path...)
}

// CancelTask cancels a task, unless it is done already. It reports whether it was pending. If a performer
// completes it nevertheless, the task becomes done, and Done is called.
func (h *Tx) CancelTask(action, key string) bool {
	t := h.open()
	if t.err != nil {
		return false
	}
	a, err := t.handlersAction(action, key, false)
	if err != nil {
		t.fail(fmt.Errorf("cancel task %q of %s: %w", key, action, err))
		return false
	}
	at, task := a.find(t, key)
	if task.State != TaskPending {
		return false
	}
	a.dropDeadline(t, &task)
	task.State, task.At = TaskCancelled, t.core.ledger.Wall()
	a.put(t, &at, &task)
	return true
}

// DropTask removes a task of an action, whatever its state. A pending one is not performed any more, and its end has no effect.
func (h *Tx) DropTask(action, key string) {
	t := h.open()
	if t.err != nil {
		return
	}
	a, err := t.handlersAction(action, key, false)
	if err != nil {
		t.fail(fmt.Errorf("drop task %q of %s: %w", key, action, err))
		return
	}
	if at, task := a.find(t, key); task.State != NoTask {
		a.remove(t, &at, task)
	}
}

// Task returns a task of an action; its State is NoTask if there is none. A computation or an effect depends on it, and does not see tasks
// that have documents of their own.
func (h *Tx) Task(action, key string) Task {
	t := h.open()
	list := taskList{name: action}
	if t.node != nil {
		at := list.shared(key)
		return TaskOf(key, t.get(at.doc, at.path...))
	}
	return list.task(t, key)
}

// Tasks returns the tasks of an action, wherever they are stored, sorted by key. Only handlers can list them: they come and go, and
// a computation that depended on them would run for each.
func (h *Tx) Tasks(action string) []Task {
	t := h.open()
	if t.node != nil {
		t.fail(fmt.Errorf("list the tasks of %s: %s %s is not a handler", action, t.node.kind, t.node.id()))
		return nil
	}
	var begun []*doc // by this transaction
	for i := range t.after {
		if d := t.after[i].doc; d.key.space == "" && model.IsTaskDoc(d.key.doc) && t.graph.tasks[d.key.doc] == nil {
			begun = append(begun, d)
		}
	}
	return t.graph.tasksOf(action, t.peek(action, inTasks), begun, t.current)
}

// tasksOf returns the tasks of an action: those in the shared document, and those in documents of their own, further ones included.
func (ds *documents) tasksOf(action string, shared model.Value, further []*doc, current func(*doc) model.Value) (list []Task) {
	for key, entry := range shared.All() {
		list = append(list, TaskOf(key, entry))
	}
	add := func(d *doc) {
		if of, task, is := TaskIn(d.key.doc, current(d)); is && of == action {
			list = append(list, task)
		}
	}
	for _, d := range ds.tasks { // any order: sorted below
		add(d)
	}
	for _, d := range further {
		add(d)
	}
	slices.SortFunc(list, func(a, b Task) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// ForgetTask removes a task that has ended, so that its key can be used again. For an input it removes the
// fetched value, which is fetched again when a node requests it.
func (h *Tx) ForgetTask(name, key string) {
	t := h.open()
	if t.err != nil {
		return
	}
	if err := t.forgetTask(name, key); err != nil {
		t.fail(fmt.Errorf("forget %q of %s: %w", key, name, err))
	}
}

func (t *transaction) forgetTask(name, key string) error {
	input := t.core.tasks.byName[name] != nil && t.core.tasks.byName[name].input
	a, err := t.handlersAction(name, key, input)
	if err != nil {
		return err
	}
	switch at, task := a.find(t, key); {
	case task.State == NoTask: // an input's first fetch continues
	case task.State == TaskPending && !a.input:
		return fmt.Errorf("it is pending; cancel it first")
	default:
		a.remove(t, &at, task)
	}
	return nil
}

// remove removes an entry, but remembers its number for nextN.
func (l *taskList) remove(t *transaction, at *spot, task Task) {
	l.dropDeadline(t, &task)
	n := task.N
	if l.input {
		wanted, _ := t.peek(l.pending(), task.Key).AsInt()
		n = max(n, wanted)
		t.writeTask(l.pending(), model.Value{}, task.Key)
	}
	if gen := l.nextN(t, n) - 1; gen > 0 {
		t.writeTask(l.name, model.Int(gen), inGeneration)
	}
	t.writeTask(at.doc, model.Value{}, at.path...)
}

// WantTask reads an input, and requests it if it is missing. A node must have declared ActionSpec.Wants; it
// runs again when the input has arrived.
func (h *Tx) WantTask(input, key string) Task {
	t := h.open()
	if t.err != nil {
		return Task{}
	}
	a, err := t.core.tasks.find(t.core.hooks.program, input, true)
	if err == nil {
		err = checkTaskKey(key)
	}
	if err == nil && t.node != nil && !t.declares(a.pending(), model.Path{key}) {
		err = fmt.Errorf("%s %s was not registered with this input; register it with settle.Using(%s); a NodeSpec has %s among its Writes", t.node.kind, t.node.id(), input, input+wantedSuffix)
	}
	if err != nil {
		t.fail(fmt.Errorf("read %q of input %s: %w", key, input, err))
		return Task{}
	}
	task := a.task(t, key)
	if task.State == NoTask {
		task.State = TaskPending
		task.N, _ = t.peek(a.pending(), key).AsInt()
		if task.N == 0 {
			task.N = a.nextN(t, 0)
		}
		// Write even if the request is there: it may be undone with the transaction that wrote it.
		t.writeTask(a.pending(), model.Int(task.N), key)
		t.noteStarted(input, key)
	}
	return task
}

// RefreshTask requests an input to be fetched even if it is present. The previous value is read until then. A
// fetch that is under way does not count, because it may have begun too early.
func (h *Tx) RefreshTask(input, key string) {
	t := h.open()
	if t.err != nil {
		return
	}
	a, err := t.handlersAction(input, key, true)
	if err != nil {
		t.fail(fmt.Errorf("refresh %q of input %s: %w", key, input, err))
		return
	}
	was := a.task(t, key)
	wanted, _ := t.peek(a.pending(), key).AsInt()
	task := Task{State: TaskPending, N: a.nextN(t, max(was.N, wanted)), Out: was.Out}
	t.writeTask(a.name, task.entry(""), inTasks, key)
	t.writeTask(a.pending(), model.Int(task.N), key)
}

// handlersAction returns an action for a call that only handlers may make.
func (t *transaction) handlersAction(name, key string, input bool) (*taskList, error) {
	a, err := t.core.tasks.find(t.core.hooks.program, name, input)
	switch {
	case err != nil:
		return nil, err
	case t.node != nil:
		return nil, fmt.Errorf("%s %s is not a handler; only handlers change tasks", t.node.kind, t.node.id())
	}
	return a, checkTaskKey(key)
}

func (l *taskList) task(t *transaction, key string) Task {
	_, task := l.find(t, key)
	return task
}

// nextN returns the number of the next start of a key: above that of its last start, and above any removed
// one. It is part of event ids, which are remembered for a long time.
func (l *taskList) nextN(t *transaction, last int64) int64 {
	gen, _ := t.peek(l.name, inGeneration).AsInt()
	return max(gen, last) + 1
}

// writeTask writes to a document of an action; an absent value deletes.
func (t *transaction) writeTask(doc string, v model.Value, path ...string) {
	t.tasking = true
	t.write(model.Write{Doc: doc, Path: slices.Clone(path), Value: v, Delete: v.IsAbsent()})
	t.tasking = false
}

// tidyEvery is the number of tasks between two calls of tidy.
const tidyEvery = 64

// tidy removes tasks that ended long ago, when their number grows.
func (l *taskList) tidy(t *transaction) {
	tasks := t.peek(l.name, inTasks)
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
	keep := cmp.Or(l.spec.Keep, defaultKeep).Milliseconds()
	for i, task := range ended {
		if task.At > t.core.ledger.Wall()-keep && len(ended)-i <= mostKept {
			return
		}
		at := l.shared(task.Key)
		l.remove(t, &at, task)
	}
}

// conclude handles the events of an action's stream, which report the ends of tasks and attempts.
func (l *taskList) conclude(t *transaction, ev *model.Event) (model.Value, error) {
	c, err := readCompletion(ev.Payload)
	if err != nil {
		return model.Value{}, fmt.Errorf("an event of action %s: %w", l.name, err)
	}
	at, task, late := l.meant(t, &c)
	if late == "" && task.State != TaskPending && isDeadline(ev) {
		late = "it is " + string(task.State)
	}
	if late != "" {
		return model.Object(model.F("ignored", late)), nil
	}
	switch {
	case !c.Progress.IsAbsent():
		if !l.input {
			t.writeTask(at.doc, c.Progress, at.field("progress")...)
		}
		return model.Value{}, nil
	case c.Attempt > 0:
		if c.Attempt > task.Attempts {
			task.Attempts, task.Err = c.Attempt, c.Err
			l.put(t, &at, &task)
		}
		return model.Value{}, nil
	case c.Err == "" && l.spec.Result != nil:
		if err := l.spec.Result(c.Out); err != nil {
			return model.Value{}, fmt.Errorf("the result of task %q of action %s: %w", c.Key, l.name, err)
		}
	}
	task.State, task.Out, task.Err, task.Unhandled = TaskDone, c.Out, "", false
	if c.Err != "" {
		task.State, task.Err = TaskFailed, c.Err
		if l.input {
			task.Out = t.peek(l.name, inTasks, c.Key, "out") // the previous value is better than none
		}
	}
	if l.discard {
		l.remove(t, &at, task)
	} else {
		l.end(t, &at, &task)
	}
	if l.spec.Done == nil {
		return model.Value{}, nil
	}
	if err = l.spec.Done(t.handle, task); err == nil {
		err = t.err
	}
	if err != nil && rejectionOf(err) == ByHandler { // a rejection leaves nothing that could be redriven
		err = fmt.Errorf("the Done of action %s has rejected the end of task %q, and no caller waits for the answer; return another error: %s", l.name, c.Key, err.Error()) // not wrapped: it would reject
	}
	return model.Value{}, err
}

// meant returns the task that an event refers to, or the reason why the event is obsolete.
func (l *taskList) meant(t *transaction, c *Completion) (at spot, task Task, late string) {
	at, task = l.find(t, c.Key)
	if l.input {
		if n, wanted := t.peek(l.pending(), c.Key).AsInt(); wanted {
			task.N, task.State = n, TaskPending
		}
	}
	switch {
	case task.State == NoTask:
		return at, task, "there is no such task"
	case c.N != 0 && c.N != task.N:
		return at, task, "it was started again, or forgotten"
	case task.State == TaskPending || task.Unhandled && !c.reports():
		return at, task, ""
	case task.State == TaskCancelled && c.Err == "" && !c.reports():
		return at, task, "" // the cancellation was too late
	}
	return at, task, "it is " + string(task.State)
}

// end stores a task that has ended.
func (l *taskList) end(t *transaction, at *spot, task *Task) {
	l.dropDeadline(t, task)
	task.At = t.core.ledger.Wall()
	l.put(t, at, task)
	if l.input {
		t.writeTask(l.pending(), model.Value{}, task.Key)
	}
}

// maxTaskError bounds the stored text of a task that could not be handled.
const maxTaskError = 300

// endTask ends the task of an event that has failed, in the transaction that ends the event: no other event
// would report the task's end. It writes as little as possible, field by field, because a document that is
// too large may have caused the failure.
//
// No bound refuses its writes, so it observes one itself. In a document without room, it only replaces the
// state pending by failed and sets the unhandled flag: 15 bytes for an entry of at least 32. So a document
// exceeds its bound by at most a half, and still fits into a message, which has room for twice as much. In an
// input's document, a key without an entry stays requested: it is reported again, or fetched, when there is
// room.
func (t *transaction) endTask(sizes *sizes, ev *model.Event, why string, cancelled bool) {
	a := t.core.tasks.byName[ev.Stream]
	if a == nil {
		return
	}
	c, err := readCompletion(ev.Payload)
	if err != nil || c.reports() {
		return
	}
	t.err = nil // its other effects are dropped
	at, task, late := a.meant(t, &c)
	if late != "" || isDeadline(ev) && task.State != TaskPending {
		return
	}
	if isDeadline(ev) && cancelled { // the task goes on without a deadline
		t.writeTask(at.doc, model.Value{}, at.field("until")...)
		return
	}
	d := t.graph.known(at.doc)
	d.measured = false // so the next write measures what is added here
	if a.input && t.peek(a.name, inTasks, task.Key).IsAbsent() && !sizes.roomFor(t, d, taskEndBytes+len(task.Key)) {
		return
	}
	set := func(field string, v model.Value) { t.writeTask(at.doc, v, at.field(field)...) }
	set("state", model.String(string(TaskFailed)))
	set("n", model.Int(task.N))
	set("unhandled", model.Bool(true))
	if task.Until > 0 {
		set("until", model.Value{})
		a.dropDeadline(t, &task)
	}
	if text := endText(ev, why); sizes.roomFor(t, d, taskEndBytes+len(text)) {
		set("error", model.String(text))
		set("at", model.Int(t.core.ledger.Wall()))
	}
	if a.input {
		t.writeTask(a.pending(), model.Value{}, task.Key)
	}
}

// taskEndBytes bounds the size of a task's end, not counting its text.
const taskEndBytes = 100

// endText returns the text for a task whose end could not be handled.
func endText(ev *model.Event, why string) string {
	if len(why) > maxTaskError {
		why = strings.ToValidUTF8(why[:maxTaskError], "") + "..."
	}
	return fmt.Sprintf("its end was reported and could not be handled: %s (event %s; redrive it)", why, ev.ID)
}
