package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Work outside of the space cannot be part of a transaction: it reaches the world outside, takes its
// time and may fail (docs/adr/0029). So a piece of work is state of the space, a task, which is done if
// and only if the transaction that started it is in the log. The core stores tasks and does not perform
// them: the host does, which examines the confirmed documents, or any process that can send an event.
//
//	action   an outbox: handlers start tasks, in the document with the action's name
//	             {"tasks": {KEY: {"state": "pending", "n": 1, "in": ...}}}
//	input    a cache of values from outside: a computation requests a missing value, by a write
//	         beside its output, to a separate document that no node reads
//	             NAME-wanted   {KEY: 1}
//	             NAME          {"tasks": {KEY: {"state": "done", "n": 1, "out": ...}}}
//
// (If the requests were in the document that is read, each of its readers would be demand for all the
// nodes that make requests.)
//
// The performer of a task reports it by an event to the stream with the action's name:
//
//	{"key": KEY, "n": 1, "out": ...}       or
//	{"key": KEY, "n": 1, "error": TEXT}    or, if it will be retried,
//	{"key": KEY, "n": 1, "error": TEXT, "attempt": 3}
//
// n identifies one start of a key. Without it the event refers to the pending start, whichever that
// is. An event about a start that is no longer pending ends well and has no effect, so several
// performers may complete a task, or report it twice.
//
// A task ends in the transaction that handles such an event, however that ends: if the
// reaction to the end of the task (Done) fails, the task is stored as failed,
// the event becomes a dead letter, and a redrive calls Done again.

// ActionSpec describes an action or an input. It must not be changed once a space runs its program.
type ActionSpec struct {
	// Name names the action, the document that holds its tasks, and the stream that receives the ends of its
	// tasks.
	Name string
	// Input makes it an input.
	Input bool
	// Keep is for how long an ended task of an action stays visible and keeps its key from being started again;
	// default 24 hours. At most the last 1000 ended tasks are kept.
	Keep time.Duration
	// Discard removes a task of an action as soon as it has ended: its result is only passed to Done.
	Discard bool
	// Done, if not nil, is called when a task ends, in the same transaction.
	Done func(tx *Tx, t Task) error
	// Performer makes attempts at the tasks, nil if no worker does.
	Performer Performer
	// External makes it an action whose tasks another system performs.
	External bool
}

// Performer makes attempts at the tasks of an action, or fetches an input, beside the space: the core
// calls none of its methods. Package worker/tasks has an implementation.
type Performer interface {
	// Concurrency returns how many attempts may run at the same time in one space.
	Concurrency() int
	// Attempt makes one attempt at a task, and returns when ctx ends. It calls late, on another goroutine,
	// with the reason why ctx has ended if the attempt goes on for long after that: until it returns, it
	// holds up others.
	Attempt(ctx Context, key string, in model.Value, late func(why error)) (model.Value, error)
	// Tell returns the completion to report after an attempt at a task.
	Tell(t *Task, out model.Value, err error) *Completion
	// Pause returns how long to wait after n failed attempts.
	Pause(n int) time.Duration
}

// Context is context.Context, spelled out: the core, which neither has contexts nor waits for anything,
// passes one on between its host and the code that the host calls.
type Context interface {
	Deadline() (deadline time.Time, ok bool)
	Done() <-chan struct{}
	Err() error
	Value(key any) any
}

// Pending returns the document that shows what is pending.
func (a *ActionSpec) Pending() string { return a.list().pending() }

// list returns the documents of the tasks.
func (a *ActionSpec) list() *taskList {
	return &taskList{name: a.Name, input: a.Input, keep: a.Keep, discard: a.Discard && !a.Input}
}

// Entries returns the entries of the document Pending, by key.
func (a *ActionSpec) Entries(doc model.Value) model.Value {
	if a.Input {
		return doc
	}
	return doc.Get(inTasks)
}

// PendingTask returns the task of an entry of the document Pending, and false if it is not pending.
func (a *ActionSpec) PendingTask(key string, entry model.Value) (Task, bool) {
	if a.Input {
		n, ok := entry.AsInt()
		return Task{Key: key, State: TaskPending, N: n}, ok
	}
	t := TaskOf(key, entry)
	return t, t.State == TaskPending
}

// Wants returns the place where a node writes to request an input: it is one of the node's Writes.
func (a *ActionSpec) Wants() Address { return Address{Doc: a.Pending()} }
