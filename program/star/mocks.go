package star

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
)

// mocks are the functions that perform actions in a test, by action, and what they were called with.
type mocks struct {
	functions map[string]starlark.Callable
	calls     map[string][]model.Value
	// pauses are the times before which no other attempt at a task is made.
	pauses map[attempted]time.Time
}

// attempted is a task at which an attempt has failed.
type attempted struct {
	space, action, key string
	n                  int64 // see space.Task
}

// maxMocked bounds the calls of mocks that follow from one call of a test.
const maxMocked = 20_000

// testMock is mock(action, fn): fn performs the tasks of the action from here on. It gets the arguments of the call in
// a workflow; for a task that a handler has started, the input.
func (inst *instance) testMock(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var of starlark.Value
	var fn starlark.Callable
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "action", &of, "fn", &fn); err != nil {
		return nil, err
	}
	if _, err := inst.spaceNamed(b, ""); err != nil {
		return nil, err
	}
	name, err := actionName(b, of)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(inst.test.actions(), name) {
		return nil, fmt.Errorf("mock: the program has no action %q%s", name, model.DidYouMean(name, inst.test.actions()))
	}
	m := &inst.test.mocks
	if m.functions == nil {
		m.functions, m.calls, m.pauses = map[string]starlark.Callable{}, map[string][]model.Value{}, map[attempted]time.Time{}
	}
	m.functions[name] = fn
	return starlark.None, inst.performMocked()
}

// testCalls is calls(action): the arguments of the calls of a mock so far, in order.
func (inst *instance) testCalls(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var of starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "action", &of); err != nil {
		return nil, err
	}
	name, err := actionName(b, of)
	if err != nil {
		return nil, err
	}
	return value.FromModel(model.Array(inst.test.mocks.calls[name]...)), nil
}

// failure is what failure(type, message = "") returns: the error with which a mock ends its task, or an attempt at it.
type failure struct {
	*starlark.List
	error runs.ActionError
	again bool
}

// testFailure is failure(type, message = "", ancestors = [], again = False).
func (inst *instance) testFailure(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var f failure
	var ancestors *starlark.List
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "type", &f.error.Type, "message?", &f.error.Message, "ancestors?", &ancestors, "again?", &f.again); err != nil {
		return nil, err
	}
	if ancestors != nil {
		for v := range ancestors.Elements() {
			name, is := starlark.AsString(v)
			if !is {
				return nil, fmt.Errorf("failure: ancestors must be strings")
			}
			f.error.Ancestors = append(f.error.Ancestors, name)
		}
	}
	f.List = starlark.NewList(nil)
	return f, nil
}

// performMocked performs pending tasks until no mock has one.
func (inst *instance) performMocked() error {
	x := inst.test
	for n := 0; len(x.mocks.functions) > 0; {
		before := n
		for _, name := range slices.Sorted(maps.Keys(x.mocks.functions)) {
			for _, in := range x.world.Names() {
				done, err := inst.performIn(in, name)
				if err != nil {
					return err
				}
				if n += done; n > maxMocked {
					return fmt.Errorf("more than %d calls of mocks: do they ever end?", maxMocked)
				}
			}
		}
		if n == before {
			return nil
		}
	}
	return nil
}

// performIn performs the pending tasks of an action in a space, and returns how many there were.
func (inst *instance) performIn(in, action string) (int, error) {
	s, err := inst.test.world.Space(in)
	if err != nil {
		return 0, err
	}
	now := inst.test.world.Now()
	pending := slices.DeleteFunc(s.Tasks(action), func(t space.Task) bool {
		return t.State != space.TaskPending || now.Before(inst.test.mocks.pauses[attempted{in, action, t.Key, t.N}])
	})
	for _, t := range pending {
		if err := inst.performTask(s, attempted{in, action, t.Key, t.N}, t); err != nil {
			return 0, err
		}
	}
	return len(pending), nil
}

func (inst *instance) performTask(s TestSpace, of attempted, t space.Task) error {
	c, action := space.Completion{Key: t.Key, N: t.N}, of.action
	args, kwargs, seen := mockArguments(t.In)
	m := &inst.test.mocks
	m.calls[action] = append(m.calls[action], seen)
	out, err := starlark.Call(&inst.current().Thread, m.functions[action], args, kwargs)
	var f *interp.Failure
	switch {
	case errors.As(err, &f):
		c.Err = f.Error()
	case err != nil:
		return fmt.Errorf("mock of %s: %w", action, err)
	default:
		if typed, is := out.(failure); is {
			if c.Err = typed.error.Text(); !isCall(t.In) {
				c.Err = (&space.WorkError{Type: typed.error.Type, Message: typed.error.Message}).Text()
			}
			if typed.again {
				err = inst.attemptAgain(of, t, &c)
			}
			if err != nil {
				return fmt.Errorf("mock of %s: %w", action, err)
			}
		} else if c.Out, err = inst.Run.ToModel(out); err != nil {
			return fmt.Errorf("mock of %s: the result: %w", action, err)
		}
	}
	rc, ok, err := s.Send(action, "", c.Value(), time.Time{})
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the end of task %s of %s is not handled: %s", t.Key, action, s.Pending())
	case rc.Outcome != model.Handled:
		return fmt.Errorf("the end of task %s of %s is %s: %s", t.Key, action, rc.Outcome, rc.Error)
	}
	return nil
}

// attemptAgain makes the end of a task that of an attempt, after which another one follows, unless it was the last one that the action allows.
func (inst *instance) attemptAgain(of attempted, t space.Task, c *space.Completion) error {
	if isCall(t.In) {
		return errors.New("failure(again = True) is for tasks of handlers; the retry policy of the workflow decides whether another attempt follows, so return failure(...) alone")
	}
	terms := inst.test.termsOf(of.action)
	n := t.Attempts + 1
	if terms.Attempts > 0 && n >= terms.Attempts {
		return nil
	}
	c.Attempt = n
	inst.test.mocks.pauses[of] = inst.test.world.Now().Add(space.PauseAfter(n, terms.Backoff, terms.MaxBackoff))
	return nil
}

// termsOf returns the terms of an action of the programs.
func (x *testRun) termsOf(action string) space.Remote {
	programs := []*space.Program{x.program.space}
	for _, p := range x.others { // any order: a name is in one of them, or it does not matter which
		programs = append(programs, p.space)
	}
	for _, p := range programs {
		for _, a := range p.Actions() {
			if a.Name == action && a.Remote != nil {
				return *a.Remote
			}
		}
	}
	return space.Remote{}
}

// nextAttempt returns when the next attempt after a pause is made, false if there is none.
func (m *mocks) nextAttempt(now time.Time) (next time.Time, set bool) {
	for of, at := range m.pauses { // any order: the earliest one is found
		if !at.After(now) {
			delete(m.pauses, of)
			continue
		}
		if !set || at.Before(next) {
			next, set = at, true
		}
	}
	return next, set
}

// isCall reports whether a task is a call of a workflow.
func isCall(in model.Value) bool {
	return !in.Get("run").IsAbsent() && in.Get("args").Kind() == model.KindArray
}

// mockArguments returns the arguments of a mock, and what calls shows of them.
func mockArguments(in model.Value) (args starlark.Tuple, kwargs []starlark.Tuple, seen model.Value) {
	if !isCall(in) {
		return starlark.Tuple{value.FromModel(in)}, nil, in
	}
	for v := range in.Get("args").Elements() {
		args = append(args, value.FromModel(v))
	}
	for k, v := range in.Get("kwargs").All() {
		kwargs = append(kwargs, starlark.Tuple{starlark.String(k), value.FromModel(v)})
	}
	return args, kwargs, model.Object(model.F("args", in.Get("args")), model.F("kwargs", in.Get("kwargs")))
}

// advanceMocked moves time forward, and has mocks perform what is started on the way at its time.
func (inst *instance) advanceMocked(d time.Duration) error {
	w := inst.test.world
	until := w.Now().Add(d)
	for {
		if err := inst.performMocked(); err != nil {
			return err
		}
		next, set := w.Next()
		if at, waits := inst.test.mocks.nextAttempt(w.Now()); waits && (!set || at.Before(next)) {
			next, set = at, true
		}
		if len(inst.test.mocks.functions) == 0 || !set || next.After(until) {
			break
		}
		if err := w.Advance(max(next.Sub(w.Now()), 0)); err != nil {
			return err
		}
	}
	if err := w.Advance(until.Sub(w.Now())); err != nil {
		return err
	}
	return inst.performMocked()
}

// testStartWorkflow is start_workflow(name, run, args = None, space = "", attributes = None) in a test.
func (inst *instance) testStartWorkflow(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	in, payload, err := inst.startArguments(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return inst.sendEvent(b, &testEvent{wait: true, to: in, stream: runs.StreamStart, payload: value.FromModel(payload)})
}
