package star

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// actionName returns the name of an action, given that or the place that action returned.
func actionName(b *starlark.Builtin, x starlark.Value) (string, error) {
	switch x := x.(type) {
	case starlark.String:
		return string(x), nil
	case *value.Place:
		if x.Space == "" && len(x.Path) == 0 {
			return x.Doc, nil
		}
	}
	return "", fmt.Errorf("%s: the first argument must be an action or its name, not %s", b.Name(), meter.Article(x.Type()))
}

// taskArguments unpacks the arguments of a builtin that changes a task: its action, its key, and more.
func (inst *instance) taskArguments(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, more ...any) (tx *space.Tx, name, key string, err error) {
	var of starlark.Value
	if err = starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"action", &of, "key", &key}, more...)...); err != nil {
		return nil, "", "", err
	}
	if tx, err = inst.inHandler(b, "only handlers change tasks"); err == nil {
		name, err = actionName(b, of)
	}
	if err == nil {
		err = inst.declared(b, "action", name)
	}
	return tx, name, key, err
}

// declared returns an error if no file of the program has registered something of a kind under a name.
func (inst *instance) declared(b *starlark.Builtin, kind, name string) error {
	var names []string
	for _, d := range inst.decls {
		if d.kind == kind {
			names = append(names, d.id)
		}
	}
	switch {
	case inst.test != nil || slices.Contains(names, name): // a test registers nothing
		return nil
	case len(names) == 0:
		return fmt.Errorf("%s: the program has no %s %.100q, and no other; write %s(...) at the top of the file", b.Name(), kind, name, kind)
	}
	return fmt.Errorf("%s: the program has no %s %.100q; it has %s%s", b.Name(), kind, name, strings.Join(names, ", "), model.DidYouMean(name, names))
}

// startTask is start_task(action, key, input = None, priority = 0, deadline = "2h", deadline_at = time).
func (inst *instance) startTask(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var input starlark.Value = starlark.None
	priority := 0
	var deadline starlark.String
	var deadlineAt starlark.Value = starlark.None
	tx, name, key, err := inst.taskArguments(b, args, kwargs, "input?", &input, "priority?", &priority, "deadline??", &deadline, "deadline_at?", &deadlineAt)
	if err != nil {
		return nil, err
	}
	limits, err := deadlines(deadline, deadlineAt)
	if err != nil {
		return nil, fmt.Errorf("start_task %s: %w", name, err)
	}
	v := model.Value{}
	if input != starlark.None {
		if v, err = inst.Run.ToModel(input); err != nil {
			return nil, fmt.Errorf("start_task %s: input: %w", name, err)
		}
	}
	tx.StartTask(name, key, v, append(limits, space.Priority(priority))...)
	return starlark.None, tx.Err()
}

// deadlines returns the option for the deadline of a task, a duration or a time, if there is one.
func deadlines(within starlark.String, at starlark.Value) ([]space.TaskOption, error) {
	d, err := durationOf("deadline", within)
	switch {
	case err != nil:
		return nil, err
	case at == starlark.None && d == 0:
		return nil, nil
	case at == starlark.None:
		return []space.TaskOption{space.Deadline(d)}, nil
	case within != "":
		return nil, fmt.Errorf("deadline and deadline_at both set the deadline; use one of them")
	}
	t, err := asTime(at)
	if err != nil {
		return nil, fmt.Errorf("deadline_at: %w", err)
	}
	return []space.TaskOption{space.DeadlineAt(t)}, nil
}

// cancelTask is cancel_task(action, key): whether the task was pending.
func (inst *instance) cancelTask(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	tx, name, key, err := inst.taskArguments(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	pending := tx.CancelTask(name, key)
	return starlark.Bool(pending), tx.Err()
}

// forgetTask is forget_task(action, key).
func (inst *instance) forgetTask(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	tx, name, key, err := inst.taskArguments(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	tx.ForgetTask(name, key)
	return starlark.None, tx.Err()
}

// task is task(action, key): the state of a task, None if there is none. The node depends on that task
// only.
func (inst *instance) task(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var of starlark.Value
	var key string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "action", &of, "key", &key); err != nil {
		return nil, err
	}
	tx, err := inst.transaction(b)
	if err != nil {
		return nil, err
	}
	name, err := actionName(b, of)
	if err == nil {
		err = inst.declared(b, "action", name)
	}
	if err != nil {
		return nil, err
	}
	t := tx.Task(name, key)
	if err := tx.Err(); err != nil || t.State == space.NoTask {
		return starlark.None, err
	}
	return taskView(t), nil
}
