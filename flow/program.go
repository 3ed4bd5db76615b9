package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// Workflows are the workflows and actions of a program. Mistakes are collected; Register returns the first.
type Workflows struct {
	program *settle.Program
	set     *runs.Set
	actions []*space.ActionSpec
	err     error
}

// New returns the workflows of a program, none so far.
func New(p *settle.Program) *Workflows { return &Workflows{program: p, set: runs.New()} }

func (w *Workflows) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Starlark adds the workflow of a file, which loads its actions: load("actions", "charge").
func (w *Workflows) Starlark(file string, source []byte) {
	g, err := compile.Compile(file, source)
	if err != nil {
		w.note(err)
		return
	}
	w.add(g, nil)
}

func (w *Workflows) add(g *workflow.Graph, functions starlark.StringDict) {
	_, err := w.set.Add(g, functions)
	w.note(err)
}

// Graphs returns the graphs of the workflows, sorted by name.
func (w *Workflows) Graphs() []*workflow.Graph {
	var list []*workflow.Graph
	for _, d := range w.set.Definitions() {
		list = append(list, d.Graph)
	}
	return list
}

// Retention bounds how many runs of a workflow stay in a space after their end, and how long, see [runs.Retention].
type Retention = runs.Retention

// Keep bounds the runs of a workflow that stay after their end. Call it after the workflow was added.
func (w *Workflows) Keep(workflow string, r Retention) { w.note(w.set.Keep(workflow, r)) }

// External adds an action that other processes perform: any NATS client (docs/performers.md), or `settle perform`. The options
// are those of settle.Action.External, such as remote.QueueBy; attempts are for the workflow to say.
func (w *Workflows) External(name string, options ...settle.ActionOption) {
	var o tasks.Options
	for _, set := range options {
		set(&o)
	}
	w.checkFleet(name, &o)
	w.actions = append(w.actions, &space.ActionSpec{Name: name, External: true, Remote: o.Terms(), Fleet: o.Fleet, Deadline: o.Deadline})
}

// ActionOption configures an action. Packages fleet and deadline have further ones.
type ActionOption func(*tasks.Options)

// AtATime limits the attempts of the action that run at the same time in one space; default 16.
func AtATime(n int) ActionOption { return func(o *tasks.Options) { o.AtATime = n } }

// Timeout limits an attempt, if the workflow sets no shorter timeout for the call; default a minute.
func Timeout(d time.Duration) ActionOption { return func(o *tasks.Options) { o.Timeout = d } }

// Attempt describes the attempt that a function performs.
type Attempt struct {
	// Key is unique over all spaces, runs and calls, and the same for each attempt: an idempotency key.
	Key string
	// Run is the ID of the run, Number that of the attempt, from 1 on.
	Run    string
	Number int
}

type attemptKey struct{}

// AttemptOf returns the attempt that a function of Perform was called for.
func AttemptOf(ctx context.Context) Attempt {
	a, _ := ctx.Value(attemptKey{}).(Attempt)
	return a
}

// Perform adds an action that the worker performs, in its process. In has the keyword arguments of the call as fields,
// or is its only positional argument. They are decoded as payloads of events are: one that In has no field for, and one
// that is missing though its field is neither optional (omitzero, omitempty) nor a pointer, fail the attempt with an
// ArgumentError. do is called at least once per attempt: again, under the same key, if the
// worker dies. An error fails the attempt; an *Error has a type, any other is of type Error. Whether there is another
// attempt is for the workflow to say (retry).
//
// do must return when ctx ends, which it does at the timeout, when the run no longer needs the action, and when the
// space moves to another worker.
func Perform[In, Out any](w *Workflows, name string, do func(ctx context.Context, in In) (Out, error), options ...ActionOption) {
	o := &tasks.Options{Performer: tasks.Performer{Timeout: time.Minute}}
	for _, set := range options {
		set(o)
	}
	p := &o.Performer
	p.Attempts = 1 // the workflow decides about another one
	if do == nil {
		w.note(fmt.Errorf("action %s: the function is nil", name))
		return
	}
	s, err := signatureOf[In, Out]()
	if err != nil {
		w.note(fmt.Errorf("action %s: %w", name, err))
		return
	}
	p.Do = func(ctx context.Context, key string, task model.Value) (model.Value, error) {
		out, err := s.perform(ctx, key, task, do)
		if err != nil {
			return model.Value{}, errors.New(typed(err).Text())
		}
		return s.out.Encode(out)
	}
	if err := p.Check(); err != nil {
		w.note(fmt.Errorf("action %s: %w", name, err))
	}
	w.checkFleet(name, o)
	w.actions = append(w.actions, &space.ActionSpec{Name: name, Performer: p, Fleet: o.Fleet, Deadline: o.Deadline})
}

func (w *Workflows) checkFleet(name string, o *tasks.Options) {
	if err := o.Fleet.Check(); err != nil {
		w.note(fmt.Errorf("action %s: %w", name, err))
	}
}

// Perform adds the action, performed by a function. See the function Perform.
func (a Action[In, Out]) Perform(w *Workflows, do func(ctx context.Context, in In) (Out, error), options ...ActionOption) {
	Perform(w, a.name, do, options...)
}

// signature converts the arguments and the result of an action.
type signature[In, Out any] struct {
	in     *codec.Codec[In]
	strict func(model.Value) error // refuses arguments of which a part would be lost
	out    *codec.Codec[Out]
}

func signatureOf[In, Out any]() (*signature[In, Out], error) {
	in, err := codec.Of[In]()
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	out, err := codec.Of[Out]()
	if err != nil {
		return nil, fmt.Errorf("the result: %w", err)
	}
	return &signature[In, Out]{in: in, strict: codec.Strict[In](), out: out}, nil
}

// perform calls the function of an action.
func (s *signature[In, Out]) perform(ctx context.Context, key string, task model.Value, do func(context.Context, In) (Out, error)) (out Out, err error) {
	in, err := s.arguments(task)
	if err != nil {
		return out, &Error{Type: "ArgumentError", Message: err.Error()}
	}
	a := Attempt{Key: key}
	a.Run, _ = task.Get("run").AsString()
	n, _ := task.Get("attempt").AsInt()
	a.Number = int(n)
	ctx = context.WithValue(ctx, attemptKey{}, a)
	if ms, is := task.Get("timeout").AsInt(); is {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	if out, err = do(ctx, in); err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &Error{Type: workflow.TimeoutError, Message: err.Error()}
	}
	return out, err
}

// arguments returns the arguments of a call.
func (s *signature[In, Out]) arguments(task model.Value) (in In, err error) {
	args, kwargs := task.Get("args"), task.Get("kwargs")
	v := kwargs
	switch {
	case args.Len() == 1 && kwargs.Len() == 0:
		v = args.Index(0)
	case args.Len() > 0:
		return in, fmt.Errorf("it takes one positional argument or keyword arguments, and is called with %d and %d", args.Len(), kwargs.Len())
	case kwargs.IsAbsent():
		v = noArguments
	}
	if in, err = s.in.Decode(v); err != nil {
		return in, err
	}
	return in, s.strict(v)
}

// noArguments is the object of a call without arguments.
var noArguments = model.Object()

// typed returns an error with its type.
func typed(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return &Error{Type: "Error", Message: err.Error()}
}

// Register registers everything in the program. Call it once, when all is added.
func (w *Workflows) Register() error {
	core, err := w.program.Core()
	w.note(err)
	for _, name := range w.set.Actions() {
		if !slices.ContainsFunc(w.actions, func(a *space.ActionSpec) bool { return a.Name == name }) {
			w.note(fmt.Errorf("program %s: a workflow calls action %s, and nothing performs it; call flow.Perform, or External if another process does", w.program.Name(), name))
		}
	}
	for _, a := range w.actions {
		w.note(w.set.Use(a))
		w.note(core.Action(a))
	}
	w.note(w.set.Register(core))
	return w.err
}
