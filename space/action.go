package space

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Work outside of the space, which no transaction can do: it talks to the world, takes as long
// as it takes and may fail (docs/adr/0029). What is to be done is state of the space, a task,
// and so it is done if and only if the transaction that wants it is in the log. The core keeps
// tasks and does not know how they are done: that is for the host, which looks at the confirmed
// documents, or for anybody else who can send an event.
//
//	action   an outbox: handlers start tasks, in the document that is named as the action
//	             {"tasks": {KEY: {"state": "pending", "n": 1, "in": ...}}}
//	input    a cache of what comes from outside: a computation wants what is not there, by a
//	         write beside its output, into a document of its own that nobody reads
//	             NAME-wanted   {KEY: 1}
//	             NAME          {"tasks": {KEY: {"state": "done", "n": 1, "out": ...}}}
//
// (If wants stood in the document that is read, whoever reads it would be demand for all who
// want something.)
//
// Whoever has done a task says so by an event to the stream that is named as the action:
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
	// Host is for who hosts the space: how tasks are done. Nothing looks at it here.
	Host any
}

const (
	wantedSuffix = "-wanted"
	inTasks      = "tasks"
	inGeneration = "gen"
	defaultKeep  = 24 * time.Hour
	mostKept     = 1000
	// MaxTaskKey bounds the key of a task, in bytes.
	MaxTaskKey = 256
)

// Action registers an action or an input. Its stream is handled by it, and its documents are
// written by nobody else.
func (p *Program) Action(a *ActionSpec) error {
	if err := p.addAction(a); err != nil {
		return fmt.Errorf("program %s: action %q: %w", p.Name, a.Name, err)
	}
	return nil
}

func (p *Program) addAction(a *ActionSpec) error {
	if err := model.CheckSendStream(a.Name); err != nil {
		return err
	}
	if err := model.CheckName("document", a.Pending()); err != nil {
		return err
	}
	if a.Keep < 0 {
		return fmt.Errorf("it keeps tasks for %s; that must not be negative, and 0 is the default", a.Keep)
	}
	for _, doc := range a.docs() {
		if node := p.outputs[doc]; node != "" {
			return fmt.Errorf("document %s is written by node %s; the tasks need a document of their own", doc, node)
		}
		if owner := p.taskDocs[doc]; owner != "" {
			return fmt.Errorf("document %s holds the tasks of action %s", doc, owner)
		}
	}
	if err := p.Handle(a.Name, a.tell); err != nil {
		return err
	}
	if p.actions == nil {
		p.actions, p.taskDocs = map[string]*ActionSpec{}, map[string]string{}
	}
	p.actions[a.Name] = a
	for _, doc := range a.docs() {
		p.taskDocs[doc] = a.Name
	}
	return nil
}

// Actions are the actions and inputs of the program, by name.
func (p *Program) Actions() []*ActionSpec {
	out := make([]*ActionSpec, 0, len(p.actions))
	for _, name := range slices.Sorted(maps.Keys(p.actions)) {
		out = append(out, p.actions[name])
	}
	return out
}

// HoldsTasks reports whether a document holds tasks that may be pending.
func (p *Program) HoldsTasks(doc string) bool { return p.taskDocs[doc] != "" }

func (a *ActionSpec) docs() []string {
	if a.Input {
		return []string{a.Name, a.Pending()}
	}
	return []string{a.Name}
}

// Pending is the document that shows what is pending.
func (a *ActionSpec) Pending() string {
	if a.Input {
		return a.Name + wantedSuffix
	}
	return a.Name
}

// Entries are the entries of the document Pending, by key.
func (a *ActionSpec) Entries(doc model.Value) model.Value {
	if a.Input {
		return doc
	}
	return doc.Get(inTasks)
}

// PendingTask is the task of an entry of the document Pending, false if it is not pending.
func (a *ActionSpec) PendingTask(key string, entry model.Value) (Task, bool) {
	if a.Input {
		n, ok := entry.AsInt()
		return Task{Key: key, State: TaskPending, N: n}, ok
	}
	t := TaskOf(key, entry)
	return t, t.State == TaskPending
}

// Wants is where a node writes that wants an input: it is one of its Writes.
func (a *ActionSpec) Wants() Address { return Address{Doc: a.Pending()} }

// action is a registered action (input says which kind is expected).
func (t *Tx) action(name string, input bool) (*ActionSpec, error) {
	a := t.core.program.actions[name]
	switch {
	case a == nil:
		register := "Perform or External"
		if input {
			register = "Fetch"
		}
		return nil, fmt.Errorf("program %s has none of that name; register it with %s", t.core.program.Name, register)
	case a.Input && !input:
		return nil, fmt.Errorf("it is an input: it is wanted, not started")
	case !a.Input && input:
		return nil, fmt.Errorf("it is an action: it is started, not wanted")
	}
	return a, nil
}
