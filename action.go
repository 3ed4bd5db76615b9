package settle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// Action is a kind of work outside the space, such as charging a card or sending a mail, that must
// be done if and only if a transaction commits. A handler starts a task; the task is part of its
// transaction, and is performed at least once after the commit, under a key that never changes. In
// is the input of a task, Out its result. Like a Cell it is a name and holds no data.
//
//	var charge = settle.NewAction[Charge, Charged]("charge")
//
// Tasks are kept in the document with the name of the action, {"tasks": {KEY: {"state": "pending",
// "in": ...}}}. The end of a task is reported by an event to the stream of that name; see Complete.
type Action[In, Out any] struct {
	name string
	in   *codec.Codec[In]
	out  *codec.Codec[Out]
}

// NewAction returns the action of that name. It panics like NewStream.
func NewAction[In, Out any](name string) Action[In, Out] {
	must(model.CheckName("action", name))
	return Action[In, Out]{
		name: name, in: codecOf[In]("the input of action " + name), out: codecOf[Out]("the result of action " + name),
	}
}

// Name returns the name of the action, which is also that of its document and its stream.
func (a Action[In, Out]) Name() string { return a.name }

// Address returns the document in which the tasks are kept.
func (a Action[In, Out]) Address() space.Address { return space.Address{Doc: a.name} }

// Task is one task of an action.
type Task[In, Out any] struct {
	Key string
	// State is space.TaskPending, TaskDone, TaskFailed or TaskCancelled; space.NoTask if the key has no task.
	State space.TaskState
	// In is the input, Out the result.
	In  In
	Out Out
	// Err says why the task was given up or, while it is pending, why the last attempt failed.
	Err error
	// Attempts counts the failed attempts.
	Attempts int
	// Progress is what the performer of a pending task has reported last.
	Progress Value
	// Event is the event whose handler has started a pending task.
	Event EventID
	// Deadline is when a pending task fails unless it has ended; zero for never.
	Deadline time.Time
}

// ActionOption configures how tasks are performed. Package fleet has further ones, package remote those of External, and package deadline that of the whole task.
type ActionOption func(*tasks.Options)

// Attempts sets the number of attempts before a task is given up. By default (0) an action is
// retried forever, and an input is fetched at most five times.
func Attempts(n int) ActionOption { return func(o *tasks.Options) { o.Attempts = n } }

// Backoff sets the pause after the first failed attempt, which doubles after each further one up to
// most. Default: 1 s, up to 1 minute.
func Backoff(first, most time.Duration) ActionOption {
	return func(o *tasks.Options) { o.Backoff, o.MaxBackoff = first, most }
}

// Timeout limits one attempt, by its context; default 1 minute, negative for no limit.
func Timeout(d time.Duration) ActionOption { return func(o *tasks.Options) { o.Timeout = d } }

// AtATime limits the concurrent tasks of the action in one space; default 16.
func AtATime(n int) ActionOption { return func(o *tasks.Options) { o.AtATime = n } }

// Keep sets how long a task that has ended is kept; until then its key is not performed again.
// Default 24 hours; at most the last 1000 of the action in a space are kept. It has no effect on inputs, which
// are kept until Forget.
func Keep(d time.Duration) ActionOption { return func(o *tasks.Options) { o.Keep = d } }

// Permanent marks an error of a performing function as final: the task is given up.
func Permanent(err error) error { return tasks.Permanent(err) }

// Perform registers the function that performs the tasks. It runs in the process of the worker that
// serves the space, outside any transaction, and may do I/O. It is called after the transaction
// that started the task is in the log, never for one that was undone, and possibly several times:
// after an error (unless marked Permanent), and by another worker if this one dies before the
// result is in the log. The work must therefore be idempotent: give the service the IdempotencyKey of AttemptOf, which
// it has no other task under. key alone is unique within the space only.
//
// ctx ends at the Timeout, when the space moves to another worker, and when the task is cancelled.
// The function must then return: while it does not, the worker logs it, and it counts against
// AtATime.
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
	a.strict(p)
}

// strict makes the program refuse results of which a part would be lost (docs/adr/0076).
func (a Action[In, Out]) strict(p *Program) {
	exact := codec.Strict[Out]()
	p.action(a.name, false).Result = func(v Value) error {
		if err := exact(v); err != nil {
			return err
		}
		_, err := a.out.Decode(v)
		return err
	}
}

// AttemptOf returns what is known about the attempt that the function of Perform makes, from its context: the space and the key of the task, the number of
// the attempt, and the event whose handler has started it. Its IdempotencyKey is the one to give to a service outside.
func (a Action[In, Out]) AttemptOf(ctx context.Context) tasks.Attempt {
	of, _ := tasks.AttemptOf(ctx)
	return of
}

// IdempotencyKey returns the key for services outside of a task, as performers get it: the same for each attempt and each start of the task, and unique over
// actions, spaces and deployments. It has at most 64 characters.
func (a Action[In, Out]) IdempotencyKey(in Space, key string) string {
	return model.IdempotencyKey(in.client.bus.Prefix(), in.name, a.name, key)
}

// encodeResult encodes a task's result. A result that cannot be encoded is a permanent error.
func encodeResult[T any](s *codec.Codec[T], out T) (Value, error) {
	v, err := encode(s, out)
	return v, Permanent(err)
}

// External registers the action for a program whose workers do not perform it. The worker that serves a space hands its tasks to
// performers: processes in any language that have a connection to the servers (docs/performers.md, `settle perform`); package
// remote has options for that. Attempts, Backoff, Timeout and AtATime are as for Perform, but for two defaults: an attempt has no limit of time, as its performer has to send
// heartbeats, and 256 tasks of a space are given out at a time.
//
// In addition, any client may report the end of a task, with Complete or Fail, or by sending the event. With
// remote.Watched, that is the only way.
func (a Action[In, Out]) External(p *Program, options ...ActionOption) {
	o := applyActionOptions(options)
	spec := p.performed(a.name, false, o)
	spec.External, spec.Remote = true, o.Terms()
	if spec.Remote != nil {
		if err := spec.Remote.Check(); err != nil {
			p.note(fmt.Errorf("program %s: %s: %w", p.Name(), called(a.name, false), err))
		}
	}
	a.strict(p)
}

// Done registers the function that is called when a task has ended: in a transaction, once per
// task, in the order in which they end. t.State is space.TaskDone or space.TaskFailed. Its writes, sends and task
// starts take effect together with the end of the task. If it returns an error, the task is given
// up and the event that reported its end becomes a dead letter; redriving that calls the function
// again.
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

// Start starts a task, which is performed once this transaction is in the log. The key identifies
// the work in this space and is passed to every attempt; an order's id is a good choice.
//
// A pending or done task is not started again: with an equal input Start does nothing, with another
// input the transaction fails. A task that was given up, cancelled or forgotten is started anew.
// Options are space.Priority, space.Replace, space.Deadline and space.DeadlineAt.
func (a Action[In, Out]) Start(tx *Tx, key string, in In, options ...space.TaskOption) {
	v, err := encode(a.in, in)
	if err != nil {
		tx.Fail(fmt.Errorf("start task %q of %s: %w", key, a.name, err))
		return
	}
	tx.StartTask(a.name, key, v, options...)
}

// Cancel cancels a task that has not ended, and reports whether it was pending. The context of an
// attempt in progress ends; if that attempt succeeds nevertheless, the task is done and Done is
// called.
func (a Action[In, Out]) Cancel(tx *Tx, key string) bool { return tx.CancelTask(a.name, key) }

// Forget removes a task that has ended. Its key can then be used again.
func (a Action[In, Out]) Forget(tx *Tx, key string) { tx.ForgetTask(a.name, key) }

// Get reads a task; its State is space.NoTask if there is none. It depends on that task only.
func (a Action[In, Out]) Get(from Reader, key string) Task[In, Out] {
	return a.read(from, key, from.Get(a.name, space.PathOfTask(key)...))
}

// All iterates over the tasks in the order of their keys. It depends on all of them.
func (a Action[In, Out]) All(from Reader) iter.Seq[Task[In, Out]] {
	return func(yield func(Task[In, Out]) bool) {
		for key, entry := range from.Get(a.name, space.PathOfTask("")[:1]...).All() {
			if t := a.read(from, key, entry); from.Err() != nil || !yield(t) {
				return
			}
		}
	}
}

// WatchPending iterates over the pending tasks of a space, from any process: those that there are, then each that is started, until ctx
// ends. It is for programs that perform tasks without being performers, as those of an action that is remote.Watched, and report their ends with Complete
// and Fail. It neither loads the space nor keeps anything to itself: two processes that watch get each task both. After an error it has to be called
// again, and begins anew.
func (a Action[In, Out]) WatchPending(ctx context.Context, in Space) iter.Seq2[Task[In, Out], error] {
	return func(yield func(Task[In, Out], error) bool) {
		known := map[string]int64{} // the start of the key, by key
		for u, err := range in.WatchStored(ctx, a.name) {
			if err != nil {
				yield(Task[In, Out]{}, err)
				return
			}
			pending := map[string]int64{}
			for key, entry := range u.Value.At(space.PathOfTask("")[:1]).All() {
				t := space.TaskOf(key, entry)
				if t.State != space.TaskPending {
					continue
				}
				pending[key] = t.N
				if n, is := known[key]; is && n == t.N {
					continue
				}
				task, err := a.decode(t)
				if !yield(task, err) || err != nil {
					return
				}
			}
			known = pending
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
	task = Task[In, Out]{Key: t.Key, State: t.State, Attempts: t.Attempts, Progress: t.Progress, Event: EventID{t.Event}, Err: taskError(t.Err)}
	if t.Until > 0 {
		task.Deadline = time.UnixMilli(t.Until).UTC()
	}
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

// Complete reports from outside that a task is done, and returns when the report is durable.
// Repeated reports, and reports about a task that has ended, have no effect. The report is an event
// to the stream with the name of the action, with the payload {"key": KEY, "out": RESULT}, so any
// NATS client can send it: permission to publish to that stream is permission to decide the outcome
// of a task.
func (a Action[In, Out]) Complete(ctx context.Context, in Space, key string, out Out) error {
	o, err := a.Completed(To(in.name), key, out)
	if err != nil {
		return err
	}
	_, err = in.client.Send(ctx, o)
	return err
}

// Fail reports from outside that a task is given up, and why. See Complete.
func (a Action[In, Out]) Fail(ctx context.Context, in Space, key string, why error) error {
	_, err := in.client.Send(ctx, a.Failed(To(in.name), key, why))
	return err
}

// Completed returns the event that Complete sends, for Sender.Send and for tests.
func (a Action[In, Out]) Completed(to Target, key string, out Out) (Outgoing, error) {
	v, err := encodeResult(a.out, out)
	if err != nil {
		return Outgoing{}, fmt.Errorf("complete task %q of %s: %w", key, a.name, err)
	}
	c := space.Completion{Key: key, Out: v}
	return Outgoing{Space: to.space, Stream: a.name, ID: completionID(), Payload: c.Value()}, nil
}

// Failed returns the event that Fail sends.
func (a Action[In, Out]) Failed(to Target, key string, why error) Outgoing {
	c := space.Completion{Key: key, Err: errorText(why)}
	return Outgoing{Space: to.space, Stream: a.name, ID: completionID(), Payload: c.Value()}
}

// completionID returns a random id: reporting the end of a task twice is harmless.
func completionID() EventID { return ID("told-" + rand.Text()) }

func errorText(err error) string {
	if err == nil || err.Error() == "" {
		return "failed"
	}
	return err.Error()
}

func applyActionOptions(options []ActionOption) *tasks.Options {
	o := &tasks.Options{}
	for _, f := range options {
		f(o)
	}
	return o
}

// action returns the spec of an action or input, and registers it if necessary.
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

func (p *Program) perform(name string, input bool, o *tasks.Options) {
	if err := o.Check(); err != nil {
		p.note(fmt.Errorf("program %s: %s: %w", p.Name(), called(name, input), err))
	}
	p.performed(name, input, o).Performer = &o.Performer
}

// performed returns the spec of an action or input that nothing performs yet.
func (p *Program) performed(name string, input bool, o *tasks.Options) *space.ActionSpec {
	keep := o.Keep
	spec := p.action(name, input)
	if spec.Performer != nil || spec.External {
		p.note(fmt.Errorf("program %s: %s is performed already; call Perform, External or Fetch once", p.Name(), called(name, input)))
	}
	if keep < 0 {
		p.note(fmt.Errorf("program %s: %s: tasks cannot be kept for %s", p.Name(), called(name, input), keep))
	}
	if err := o.Fleet.Check(); err != nil {
		p.note(fmt.Errorf("program %s: %s: %w", p.Name(), called(name, input), err))
	}
	spec.Keep, spec.Fleet, spec.Deadline = keep, o.Fleet, o.Deadline
	return spec
}

func called(name string, input bool) string {
	if input {
		return "input " + name
	}
	return "action " + name
}
