package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Work outside of the space, which no transaction can do: it talks to the world, takes as long
// as it takes and may fail (docs/adr/0029). What is to be done is state of the space, a task,
// and so it is done if and only if the transaction that wants it is in the log. The core keeps
// tasks and does not know how they are done: that is for the host, which looks at the confirmed
// documents, or for any process that can send an event.
//
//	action   an outbox: handlers start tasks, in the document that is named as the action
//	             {"tasks": {KEY: {"state": "pending", "n": 1, "in": ...}}}
//	input    a cache of what comes from outside: a computation wants what is not there, by a
//	         write beside its output, into a document of its own that no node reads
//	             NAME-wanted   {KEY: 1}
//	             NAME          {"tasks": {KEY: {"state": "done", "n": 1, "out": ...}}}
//
// (If wants stood in the document that is read, each of its readers would be demand for all the nodes
// that want something.)
//
// The process that has done a task reports it by an event to the stream that is named as the action:
//
//	{"key": KEY, "n": 1, "out": ...}       or
//	{"key": KEY, "n": 1, "error": TEXT}    or, if it is going to be tried again,
//	{"key": KEY, "n": 1, "error": TEXT, "attempt": 3}
//
// n tells one start of a key from the next. Without it, whatever start is pending is meant. An
// event about a start that is not pending any more ends well and does nothing, so it does no
// harm if several have done a task, or tell of it twice.
//
// A task ends in the transaction that handles such an event, however that ends: if what
// follows from the end of the task (Done) cannot be done, the task is kept as one that failed,
// the event is a dead letter, and to redrive it tries Done again.

// ActionSpec describes an action, or an input. It must not be changed once a space runs its
// program.
type ActionSpec struct {
	// Name names the action, the document that holds its tasks, and the stream on which it
	// is told that they have been done.
	Name string
	// Input makes it an input.
	Input bool
	// Keep is for how long a task of an action that has ended can be seen, and keeps its key
	// from being started again; default 24 hours. Of those that have ended, the last 1000
	// are kept at the most.
	Keep time.Duration
	// Done, if not nil, is called when a task has ended, in the transaction in which it does.
	Done func(tx *Tx, t Task) error
	// Host belongs to the host of the space: how tasks are done. The core does not read it.
	Host any
}

// Pending returns the document that shows what is pending.
func (a *ActionSpec) Pending() string { return a.list().pending() }

// list returns how the tasks are kept.
func (a *ActionSpec) list() *taskList { return &taskList{name: a.Name, input: a.Input, keep: a.Keep} }

// Entries returns the entries of the document Pending, by key.
func (a *ActionSpec) Entries(doc model.Value) model.Value {
	if a.Input {
		return doc
	}
	return doc.Get(inTasks)
}

// PendingTask returns the task of an entry of the document Pending, false if it is not pending.
func (a *ActionSpec) PendingTask(key string, entry model.Value) (Task, bool) {
	if a.Input {
		n, ok := entry.AsInt()
		return Task{Key: key, State: TaskPending, N: n}, ok
	}
	t := TaskOf(key, entry)
	return t, t.State == TaskPending
}

// Wants returns where a node writes that wants an input: it is one of its Writes.
func (a *ActionSpec) Wants() Address { return Address{Doc: a.Pending()} }
