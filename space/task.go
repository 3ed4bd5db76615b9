package space

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

const (
	wantedSuffix = "-wanted"
	inTasks      = "tasks"
	inGeneration = "gen"
	defaultKeep  = 24 * time.Hour
	mostKept     = 1000
	// MaxTaskKey is the maximum length of the key of a task, in bytes.
	MaxTaskKey = 256
)

// TaskState is the progress of a task of a settle.Action or settle.Input.
type TaskState string

const (
	// NoTask: no task has the key.
	NoTask TaskState = ""
	// TaskPending: the task has to be performed, or is being performed.
	TaskPending TaskState = "pending"
	// TaskDone: it has been performed, and Out is the result.
	TaskDone TaskState = "done"
	// TaskFailed: it was given up, and is not retried any more.
	TaskFailed TaskState = "failed"
	// TaskCancelled: it was cancelled before its completion was reported.
	TaskCancelled TaskState = "cancelled"
)

// Task is one piece of work outside the space.
type Task struct {
	Key   string
	State TaskState
	// N numbers the starts of the key.
	N int64
	// In is the input of the task.
	In model.Value
	// Out is its result; for an input that is being fetched again, the previous one.
	Out model.Value
	// Err is the error of the task or, while it is pending, of its last attempt.
	Err string
	// Attempts counts the failed attempts.
	Attempts int
	// At is when it ended, in milliseconds since 1970.
	At int64
	// Unhandled reports that the task has ended but Done failed.
	Unhandled bool
	// Progress is what its performer has reported last, while it is pending.
	Progress model.Value
	// Priority decides which of the tasks of an action begin first: those with a higher one.
	Priority int
	// Event is the id of the event whose handler has started it, while it is pending; "" if none has, as for an input.
	Event string
	// Since is when it was started, in milliseconds since 1970, if it has a document of its own; 0 otherwise.
	Since int64
	// Until is when it fails unless it has ended, in milliseconds since 1970, while it is pending; 0 for never.
	Until int64
}

// TaskOption is an option of Tx.StartTask.
type TaskOption func(*starting)

// starting is what the options of a start set.
type starting struct {
	priority int
	replace  bool
	deadline time.Duration
	limited  bool      // by deadline
	by       time.Time // zero for never
}

// Priority sets the priority of a task: of the tasks of an action that could begin, those with a higher one do. The default is 0, and
// a negative one is possible. Every eighth that begins is the oldest one, so a low priority delays a task, and not forever.
func Priority(n int) TaskOption { return func(s *starting) { s.priority = n } }

// Replace starts a task even if its key has a pending one with another input, which ends without effect. By default, that fails.
func Replace() TaskOption { return func(s *starting) { s.replace = true } }

// maxPriority bounds priorities on both sides.
const maxPriority = 1_000_000

// TaskOf decodes an entry of an action's document.
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
	t.Progress = entry.Get("progress")
	priority, _ := entry.Get("priority").AsInt()
	t.Priority = int(min(max(priority, -maxPriority), maxPriority))
	t.Since, _ = entry.Get("since").AsInt()
	t.Event, _ = entry.Get("event").AsString()
	t.Until, _ = entry.Get("until").AsInt()
	if t.Unhandled && t.Err == "" {
		t.Err = noRoomForText
	}
	return t
}

// noRoomForText replaces the error of a task that ended in a document without room for it.
const noRoomForText = "its end was reported and could not be handled; the document of the tasks has no room for the reason, but the dead letter on their stream has it"

// entry returns the task as it is stored. In a document of its own it says whose it is: action is "" for one in a document that tasks share.
func (t *Task) entry(action string) model.Value {
	fields := make([]model.Field, 0, 14) // in their order, which saves sorting them
	add := func(name string, v model.Value, there bool) {
		if there {
			fields = append(fields, model.Field{Key: name, Value: v})
		}
	}
	add("action", model.String(action), action != "")
	add("at", model.Int(t.At), t.At > 0)
	add("attempts", model.Int(int64(t.Attempts)), t.Attempts > 0)
	add("error", model.String(t.Err), t.Err != "")
	add("event", model.String(t.Event), t.Event != "" && t.State == TaskPending)
	add("in", t.In, !t.In.IsAbsent())
	add("key", model.String(t.Key), action != "")
	add("n", model.Int(t.N), true)
	add("out", t.Out, !t.Out.IsAbsent())
	add("priority", model.Int(int64(t.Priority)), t.Priority != 0)
	add("progress", t.Progress, t.State == TaskPending && !t.Progress.IsAbsent())
	add("since", model.Int(t.Since), t.Since > 0 && t.State == TaskPending)
	add("state", model.String(string(t.State)), true)
	add("unhandled", model.Bool(t.Unhandled), t.Unhandled)
	add("until", model.Int(t.Until), t.Until > 0 && t.State == TaskPending)
	return model.Object(fields...)
}

// PathOfTask returns the path of a task in an action's document.
func PathOfTask(key string) model.Path { return model.Path{inTasks, key} }

// Completion reports the end of a task, or of a failed attempt.
type Completion struct {
	Key string
	// N is the Task.N of the task, 0 for the pending one.
	N int64
	// Out is the result, Err the error.
	Out model.Value
	Err string
	// Attempt, if not 0, is the number of failed attempts; another one will follow.
	Attempt int
	// Progress, if there is one, is all that is reported: the task goes on.
	Progress model.Value
}

// reports reports that the event is not about the end of the task.
func (c *Completion) reports() bool { return c.Attempt > 0 || !c.Progress.IsAbsent() }

// Value returns the payload of the event that reports the completion.
func (c *Completion) Value() model.Value {
	fields := make([]model.Field, 0, 6) // in their order, which saves sorting them
	add := func(name string, v model.Value, there bool) {
		if there {
			fields = append(fields, model.Field{Key: name, Value: v})
		}
	}
	add("attempt", model.Int(int64(c.Attempt)), c.Attempt != 0)
	add("error", model.String(c.Err), c.Err != "")
	add("key", model.String(c.Key), true)
	add("n", model.Int(c.N), c.N != 0)
	add("out", c.Out, !c.Out.IsAbsent())
	add("progress", c.Progress, !c.Progress.IsAbsent())
	return model.Object(fields...)
}

// completionForm is the payload that reports the end of a task.
const completionForm = `the payload is {"key": KEY, "out": VALUE} or {"key": KEY, "error": TEXT}, and may have n, attempt and progress`

// readCompletion decodes the payload of an event of an action. It refuses one of which something would be lost
// (docs/adr/0076).
func readCompletion(v model.Value) (c Completion, err error) {
	key, ok := v.Get("key").AsString()
	if !ok {
		return c, errors.New("it names no task; " + completionForm)
	}
	if err := checkCompletion(v); err != nil {
		return c, err
	}
	c = Completion{Key: key, Out: v.Get("out")}
	if e := v.Get("error"); !e.IsAbsent() {
		text, ok := e.AsString()
		if !ok {
			text = e.String()
		}
		c.Err = cmp.Or(text, "failed")
	}
	if c.Err != "" && !c.Out.IsAbsent() {
		return c, errors.New("it has an out and an error; a task ends with one of them")
	}
	c.N, _ = v.Get("n").AsInt()
	attempt, _ := v.Get("attempt").AsInt()
	c.Attempt = int(attempt)
	if c.Progress = v.Get("progress"); !c.Progress.IsAbsent() {
		if !c.Out.IsAbsent() || c.Err != "" {
			return c, errors.New("it has a progress, and an end of the task; send two events")
		}
		if size := len(c.Progress.String()); size > MaxProgress {
			return c, fmt.Errorf("the progress has %d bytes; at most %d are possible", size, MaxProgress)
		}
	}
	return c, checkTaskKey(key)
}

// checkCompletion refuses keys that mean nothing here, and values that would count as absent.
func checkCompletion(v model.Value) error {
	for _, key := range v.Keys() {
		of := v.Get(key)
		switch key {
		case "key", "out", "progress":
		case "error":
			if of.Kind() == model.KindNull {
				return errors.New("its error is null; leave it out, or say why the task has failed")
			}
		case "n", "attempt":
			if n, ok := of.AsInt(); !ok || n < 0 {
				return fmt.Errorf("its %s is %s; it must be a whole number, 0 or more", key, brief(of))
			}
		default:
			return fmt.Errorf("it has the key %q, which means nothing here; %s", key, completionForm)
		}
	}
	return nil
}

// taskList knows the documents of an action, or of an input, and their rules.
type taskList struct {
	name  string
	input bool
	// spec has what may still be set when the list is made.
	spec *ActionSpec
	// discard removes a task as soon as it has ended.
	discard bool
	// apart gives each task a document of its own.
	apart bool
}

// spot is where a task is stored.
type spot struct {
	doc  string
	path []string
	// own reports that the document is the task's own.
	own bool
}

// field returns the path of a field of the task.
func (s *spot) field(name string) []string { return append(s.path[:len(s.path):len(s.path)], name) }

// shared returns the place of a task in the document of its action.
func (l *taskList) shared(key string) spot { return spot{doc: l.name, path: []string{inTasks, key}} }

// TaskIn decodes the document of a single task. It returns false if that is none, or holds another task than its name says: such a
// document is not believed.
func TaskIn(doc string, v model.Value) (action string, t Task, ok bool) {
	action, _ = v.Get("action").AsString()
	key, _ := v.Get("key").AsString()
	if action == "" || key == "" || doc != model.TaskDoc(action, key) {
		return "", t, false
	}
	return action, TaskOf(key, v), true
}

// taskLists are the lists of a program, by name, and the owner's name for each document.
type taskLists struct {
	byName map[string]*taskList
	owner  map[string]string
}

// docs returns the documents that hold the tasks.
func (l *taskList) docs() []string {
	if l.input {
		return []string{l.name, l.pending()}
	}
	return []string{l.name}
}

// pending returns the document that lists the pending tasks.
func (l *taskList) pending() string {
	if l.input {
		return l.name + wantedSuffix
	}
	return l.name
}

func checkTaskKey(key string) error {
	if key == "" || len(key) > MaxTaskKey {
		return fmt.Errorf("the key has %d bytes; it must have between 1 and %d", len(key), MaxTaskKey)
	}
	return nil
}

func brief(v model.Value) string {
	const most = 100
	text := v.String()
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// find returns a registered action, or an input if input is set.
func (ls taskLists) find(program, name string, input bool) (*taskList, error) {
	a := ls.byName[name]
	switch {
	case a == nil:
		register := "Perform or External"
		if input {
			register = "Fetch"
		}
		return nil, fmt.Errorf("program %s has no action or input of that name; register it with %s%s", program, register, model.DidYouMean(name, slices.Sorted(maps.Keys(ls.byName))))
	case a.input && !input:
		return nil, fmt.Errorf("it is an input: it can be wanted, not started")
	case !a.input && input:
		return nil, fmt.Errorf("it is an action: it can be started, not wanted")
	}
	return a, nil
}
