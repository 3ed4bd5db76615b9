package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Work outside the space cannot be part of a transaction: it has effects elsewhere, takes time and may fail
// (docs/adr/0029). So a piece of work is recorded in the space as a task, which is performed if and only if
// the transaction that started it is in the log. The core stores tasks and does not perform them: that is up
// to the host, which looks for tasks in the confirmed documents, or to any process that can send an event.
//
//	action   an outbox: handlers start tasks, in the document with the action's name
//	             {"tasks": {KEY: {"state": "pending", "n": 1, "in": ...}}}
//	input    a cache of external values: a computation requests a missing value by a write,
//	         beside its output, to a separate document that no node reads
//	             NAME-wanted   {KEY: 1}
//	             NAME          {"tasks": {KEY: {"state": "done", "n": 1, "out": ...}}}
//
// Tasks that are removed as soon as they end (ActionSpec.Discard), such as those of workflows, have a document each
// (model.TaskDoc), so that starting and ending one costs the same however many are pending (docs/adr/0062):
//
//	-task-HASH   {"action": NAME, "key": KEY, "state": "pending", "n": 1, "in": ..., "since": MS}
//
// Those that an earlier version has stored in the document of the action remain there until they end.
//
// (If requests were in the document that nodes read, each of its readers would keep all the requesting nodes
// live.)
//
// The performer of a task reports it by an event to the stream with the action's name:
//
//	{"key": KEY, "n": 1, "out": ...}       or
//	{"key": KEY, "n": 1, "error": TEXT}    the end
//	{"key": KEY, "n": 1, "error": TEXT, "attempt": 3}
//	{"key": KEY, "n": 1, "progress": ...}  while it is pending
//
// n identifies one start of a key. Without n, the event refers to the pending start. An event about a start
// that is no longer pending succeeds without effect, so several performers may complete a task, or report it
// twice.
//
// A task ends in the transaction that handles such an event, whatever the outcome. If the Done callback
// fails, the task is stored as failed, the event becomes a dead letter, and a redrive calls Done again.

// ActionSpec describes an action or an input. It must not be changed once a space runs its program.
type ActionSpec struct {
	// Name names the action, the document that holds its tasks, and the stream that receives the ends of its
	// tasks.
	Name string
	// Input makes it an input rather than an action.
	Input bool
	// Keep is how long an ended task of an action stays visible and its key cannot be started again; default
	// 24 hours. At most the last 1000 ended tasks are kept.
	Keep time.Duration
	// Discard removes a task of an action as soon as it has ended: its result is only passed to Done. Unless other
	// programs watch the document of the action to perform its tasks (External without Remote), a pending one is in a
	// document of its own.
	Discard bool
	// Result returns why a value cannot be the result of a task, nil if it can. If Result is nil, every value can.
	Result func(model.Value) error
	// Done, if not nil, is called when a task ends, in the same transaction.
	Done func(tx *Tx, t Task) error
	// Performer makes attempts at the tasks; nil if no worker does.
	Performer Performer
	// External marks an action whose tasks another system performs. With Remote, the owner of the space hands them to
	// performers; any client that may send to the stream can end them in either case.
	External bool
	Remote   *Remote
	// Fleet has the limits that count for all workers together.
	Fleet Fleet
	// Deadline is how long after its start a task of an action may end; 0 for no limit.
	Deadline time.Duration
	// Failed returns the text of an error that the space itself gives a task; nil for the type and the message.
	Failed func(f *WorkError) string
}

// Performer makes attempts at the tasks of an action, or fetches an input. It runs beside the space: the core
// calls none of its methods. Package worker/tasks has an implementation.
type Performer interface {
	// Concurrency returns how many attempts may run at the same time in one space.
	Concurrency() int
	// Attempt makes one attempt at a task, and returns when ctx ends. If it is still running long after that,
	// it calls late, on another goroutine, with the reason why ctx ended: it blocks other attempts until it
	// returns.
	Attempt(ctx Context, key string, in model.Value, late func(why error)) (model.Value, error)
	// Completion returns the completion to report after an attempt at a task.
	Completion(t *Task, out model.Value, err error) *Completion
	// Pause returns how long to wait after n failed attempts.
	Pause(n int) time.Duration
}

// Context has the methods of context.Context. The core uses no contexts and waits for nothing; it only passes
// one from its host to the code that the host calls.
type Context interface {
	Deadline() (deadline time.Time, ok bool)
	Done() <-chan struct{}
	Err() error
	Value(key any) any
}

// Pending returns the document that lists the pending tasks.
func (a *ActionSpec) Pending() string { return a.list().pending() }

// list returns the documents that hold the tasks.
func (a *ActionSpec) list() *taskList {
	discard := a.Discard && !a.Input
	return &taskList{name: a.Name, input: a.Input, spec: a, discard: discard, apart: discard && !(a.External && a.Remote == nil)}
}

// Apart reports whether each task of the action that is started has a document of its own.
func (a *ActionSpec) Apart() bool { return a.list().apart }

// Entries returns the entries of the document Pending, by key.
func (a *ActionSpec) Entries(doc model.Value) model.Value {
	if a.Input {
		return doc
	}
	return doc.Get(inTasks)
}

// PendingTask decodes an entry of the document Pending. It returns false if the task is not pending.
func (a *ActionSpec) PendingTask(key string, entry model.Value) (Task, bool) {
	if a.Input {
		n, ok := entry.AsInt()
		return Task{Key: key, State: TaskPending, N: n}, ok
	}
	t := TaskOf(key, entry)
	return t, t.State == TaskPending
}

// Wants returns the place that a node writes to request an input; the node declares it in Writes.
func (a *ActionSpec) Wants() Address { return Address{Doc: a.Pending()} }
