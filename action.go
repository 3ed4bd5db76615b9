package settle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// Action is a kind of work outside of the space, such as charging a card or sending a mail:
// what must not be done for a transaction that is undone, and must be done for one that is not.
// A handler starts a task; the task is part of its transaction, and is performed when that is
// in the log, at least once, under a key that stays the same. In is what a task is started
// with, Out what comes of it. Like a Cell it is a name and holds nothing.
//
//	var charge = settle.NewAction[Charge, Charged]("charge")
//
// Tasks are documents of the space: they are kept in the document that is named as the
// action, {"tasks": {KEY: {"state": "pending", "in": ...}}}. How a task has ended is an event to
// the stream of that name, which whoever performs it sends; see Complete.
type Action[In, Out any] struct {
	name string
	in   *shape.Shape[In]
	out  *shape.Shape[Out]
}

// NewAction names an action. It panics like NewStream.
func NewAction[In, Out any](name string) Action[In, Out] {
	must(model.CheckName("action", name))
	return Action[In, Out]{
		name: name, in: shapeOf[In]("the input of action " + name), out: shapeOf[Out]("the result of action " + name),
	}
}

// Name is the name of the action, of its document and its stream.
func (a Action[In, Out]) Name() string { return a.name }

// Address is where the tasks are kept.
func (a Action[In, Out]) Address() Address { return Address{Doc: a.name} }

// TaskState is how far a task is: NoTask, Pending, Done, GivenUp or Cancelled.
type TaskState = space.TaskState

// How far a task is.
const (
	// NoTask: there is none of that key.
	NoTask = space.NoTask
	// Pending: it is to be done, or is being done.
	Pending = space.TaskPending
	// Done: it has been done.
	Done = space.TaskDone
	// GivenUp: it has failed, and is not tried any more.
	GivenUp = space.TaskFailed
	// Cancelled: it was cancelled before it was known to have been done.
	Cancelled = space.TaskCancelled
)

// Task is one piece of work of an action.
type Task[In, Out any] struct {
	Key   string
	State TaskState
	// In is what it was started with, Out what has come of it.
	In  In
	Out Out
	// Err is why it was given up, or, while it is pending, why the last attempt has failed.
	Err error
	// Attempts counts the attempts that have failed.
	Attempts int
}

// ActionOption says more about how tasks are performed.
type ActionOption func(*actionOptions)

type actionOptions struct {
	tasks.Performer
	keep time.Duration
}

// Attempts is how many attempts there are until a task is given up. By default (0) an action is
// tried without end, and an input is fetched five times.
func Attempts(n int) ActionOption { return func(o *actionOptions) { o.Attempts = n } }

// Backoff is the pause after the first attempt that has failed; it doubles with each other up
// to most. Default: 1 s, up to 1 minute.
func Backoff(first, most time.Duration) ActionOption {
	return func(o *actionOptions) { o.Backoff, o.MaxBackoff = first, most }
}

// Timeout is for one attempt, whose context ends then; default 1 minute, negative for none.
func Timeout(d time.Duration) ActionOption { return func(o *actionOptions) { o.Timeout = d } }

// AtATime is how many tasks of the action are performed at a time in one space; default 16.
func AtATime(n int) ActionOption { return func(o *actionOptions) { o.AtATime = n } }

// Keep is for how long a task that has ended can be seen, and keeps its key from being
// performed again; default 24 hours. The last 1000 of a space are kept at the most. It says
// nothing about inputs, which are kept until Forget.
func Keep(d time.Duration) ActionOption { return func(o *actionOptions) { o.keep = d } }

// Permanent marks an error of a performing function as one that no further attempt will
// change: the task is given up.
func Permanent(err error) error { return tasks.Permanent(err) }

// Perform registers the function that performs the tasks. It runs in the process of the worker
// that serves the space, outside of any transaction, and does the I/O. It is called when the
// transaction that has started the task is in the log, never for one that was undone, and as
// often as it takes: after an error (unless Permanent marks it), and again by another worker if
// this one has died before what came of it was in the log. So the work must be such that doing
// it twice under one key is doing it once; most who offer such work take the key for that.
//
// ctx ends with Timeout, when the space goes to another worker, and when the task is cancelled.
// The function must return then: one that does not is told in the log of the worker, and keeps
// its place among those that are performed AtATime.
func (a Action[In, Out]) Perform(p *Program, do func(ctx context.Context, key string, in In) (Out, error), options ...ActionOption) {
	o := applyActionOptions(options)
	if do != nil {
		o.Do = func(ctx context.Context, key string, v Value) (Value, error) {
			in, err := a.in.Decode(v)
			if err != nil {
				return Value{}, Permanent(fmt.Errorf("the input of task %q: %w", key, err))
			}
			out, err := do(ctx, key, in)
			if err != nil {
				return Value{}, err
			}
			return encodeResult(a.out, out)
		}
	}
	p.perform(a.name, false, o)
}

// encodeResult is what has come of a task as a value. One that cannot be encoded never can.
func encodeResult[T any](s *shape.Shape[T], out T) (Value, error) {
	if _, none := any(out).(None); none {
		return Value{}, nil
	}
	v, err := s.Encode(out)
	return v, Permanent(err)
}

// External registers the action for a program whose workers do not perform it: somebody else
// does, who watches the document and says with Complete or Fail, or by an event, how a task has
// ended. Such a task keeps no space in memory.
func (a Action[In, Out]) External(p *Program, options ...ActionOption) {
	o := applyActionOptions(options)
	p.host(a.name, false, elsewhere{}, o.keep)
}

// elsewhere hosts an action of which the tasks are performed by somebody else.
type elsewhere struct{}

// Done registers the function that is called when a task has ended: in a transaction, once for
// each task, in the order in which they end. t.State is Done or GivenUp. What it writes, sends
// and starts takes effect together with the end of the task. If it returns an error, the task
// is given up, and the event that tells of it is a dead letter; when that is redriven, it is
// called again.
func (a Action[In, Out]) Done(p *Program, done func(tx *Tx, t Task[In, Out]) error) {
	spec := p.action(a.name, false)
	switch {
	case done == nil:
		p.note(fmt.Errorf("program %s: action %s: the function of Done is nil", p.Name(), a.name))
	case spec.Done != nil:
		p.note(fmt.Errorf("program %s: action %s has a Done function already", p.Name(), a.name))
	}
	spec.Done = func(tx *Tx, t space.Task) error {
		task, err := a.decode(t)
		if err != nil {
			return err
		}
		return done(tx, task)
	}
}

// Start has a task performed if this transaction gets into the log. The key names the work:
// in this space, and for whoever performs it, to whom it is the same however often it takes.
// An order's id is a good one.
//
// What is pending or done is not started again: with an equal input nothing happens, and with
// another one the transaction fails. What was given up, cancelled or forgotten is started anew.
func (a Action[In, Out]) Start(tx *Tx, key string, in In) {
	v, err := Value{}, error(nil)
	if _, none := any(in).(None); !none {
		v, err = a.in.Encode(in)
	}
	if err != nil {
		tx.Fail(fmt.Errorf("start task %q of %s: %w", key, a.name, err))
		return
	}
	tx.StartTask(a.name, key, v)
}

// Cancel has a task not be performed, unless it has ended already. It reports whether it was
// pending. Whoever is just performing it has its context ended; if it has been done all the
// same, the task is done after all, and Done is called.
func (a Action[In, Out]) Cancel(tx *Tx, key string) bool { return tx.CancelTask(a.name, key) }

// Forget removes a task that has ended. Its key can then be used again.
func (a Action[In, Out]) Forget(tx *Tx, key string) { tx.ForgetTask(a.name, key) }

// Get reads a task; its State is NoTask if there is none. It depends on that task only.
func (a Action[In, Out]) Get(from Reader, key string) Task[In, Out] {
	return a.read(from, key, from.Get(a.name, space.PathOfTask(key)...))
}

// All goes through the tasks in the order of their keys. It depends on all of them.
func (a Action[In, Out]) All(from Reader) iter.Seq[Task[In, Out]] {
	return func(yield func(Task[In, Out]) bool) {
		for key, entry := range from.Get(a.name, space.PathOfTask("")[:1]...).All() {
			if t := a.read(from, key, entry); from.Err() != nil || !yield(t) {
				return
			}
		}
	}
}

func (a Action[In, Out]) read(from Reader, key string, entry Value) Task[In, Out] {
	t, err := a.decode(space.TaskOf(key, entry))
	if err != nil {
		from.Fail(err)
	}
	return t
}

func (a Action[In, Out]) decode(t space.Task) (task Task[In, Out], err error) {
	task = Task[In, Out]{Key: t.Key, State: t.State, Attempts: t.Attempts, Err: taskError(t.Err)}
	var err1, err2 error
	task.In, err1 = a.in.Decode(t.In)
	task.Out, err2 = a.out.Decode(t.Out)
	if err = errors.Join(err1, err2); err != nil {
		err = fmt.Errorf("task %q of %s: %w", t.Key, a.name, err)
	}
	return task, err
}

func taskError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// Complete says from outside that a task has been done, and returns when that is durable.
// Saying so again, or when somebody else has, does nothing. It is an event like any other, to
// the stream named as the action, with the payload {"key": KEY, "out": RESULT}, so any NATS
// client can send it. Who may send to that stream may say what has become of a task.
func (a Action[In, Out]) Complete(ctx context.Context, c *Client, space, key string, out Out) error {
	o, err := a.Completed(space, key, out)
	if err != nil {
		return err
	}
	_, err = c.Send(ctx, o)
	return err
}

// Fail says from outside that a task is given up, and why. See Complete.
func (a Action[In, Out]) Fail(ctx context.Context, c *Client, space, key string, why error) error {
	_, err := c.Send(ctx, a.Failed(space, key, why))
	return err
}

// Completed is the event that Complete sends to a space, for Sender.Send and the like, and for tests.
func (a Action[In, Out]) Completed(to, key string, out Out) (Outgoing, error) {
	v, err := encodeResult(a.out, out)
	if err != nil {
		return Outgoing{}, fmt.Errorf("complete task %q of %s: %w", key, a.name, err)
	}
	c := space.Completion{Key: key, Out: v}
	return Outgoing{Space: to, Stream: a.name, ID: tellingID(), Payload: c.Value()}, nil
}

// Failed is the event that Fail sends.
func (a Action[In, Out]) Failed(to, key string, why error) Outgoing {
	c := space.Completion{Key: key, Err: errorText(why)}
	return Outgoing{Space: to, Stream: a.name, ID: tellingID(), Payload: c.Value()}
}

// tellingID is any id: to tell twice of a task does no harm.
func tellingID() string { return "told-" + rand.Text() }

func errorText(err error) string {
	if err == nil || err.Error() == "" {
		return "failed"
	}
	return err.Error()
}

func applyActionOptions(options []ActionOption) *actionOptions {
	o := &actionOptions{}
	for _, f := range options {
		f(o)
	}
	return o
}

// action is the spec of an action or input, which is registered if it is not yet.
func (p *Program) action(name string, input bool) *space.ActionSpec {
	for _, a := range p.p.Actions() {
		if a.Name == name && a.Input == input {
			return a
		}
	}
	a := &space.ActionSpec{Name: name, Input: input}
	p.note(p.p.Action(a))
	return a
}

func (p *Program) perform(name string, input bool, o *actionOptions) {
	if err := o.Check(); err != nil {
		p.note(fmt.Errorf("program %s: %s: %w", p.Name(), called(name, input), err))
	}
	p.host(name, input, &o.Performer, o.keep)
}

// host says who performs an action or fetches an input.
func (p *Program) host(name string, input bool, host any, keep time.Duration) {
	spec := p.action(name, input)
	if spec.Host != nil {
		p.note(fmt.Errorf("program %s: %s has somebody who does it already; call Perform, External or Fetch once", p.Name(), called(name, input)))
	}
	if keep < 0 {
		p.note(fmt.Errorf("program %s: %s: tasks cannot be kept for %s", p.Name(), called(name, input), keep))
	}
	spec.Host, spec.Keep = host, keep
}

func called(name string, input bool) string {
	if input {
		return "input " + name
	}
	return "action " + name
}
