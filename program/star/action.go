package star

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// outside hosts the actions of a program: somebody else performs their tasks, who sees them in
// the document and says by an event what has come of them. A program cannot do it itself, as
// it reaches nothing but documents.
type outside struct{}

// action is action(name, done = None, keep = ""): an outbox. It returns the place of the
// document that holds the tasks.
func (m *machine) action(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	var done starlark.Value
	var keep starlark.String
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "done?", &done, "keep?", &keep); err != nil {
		return nil, err
	}
	d := &decl{kind: "action", id: name}
	var err error
	if d.keep, err = durationOf("keep", keep); err != nil {
		return nil, fmt.Errorf("action %s: %w", name, err)
	}
	if done != nil && done != starlark.None {
		fn, ok := done.(starlark.Callable)
		if !ok {
			return nil, fmt.Errorf("action %s: done is %s; it is the function that is called when a task has ended", name, article(done.Type()))
		}
		if err := takes(fn, 1, "done has one, the task that has ended"); err != nil {
			return nil, fmt.Errorf("action %s: %w", name, err)
		}
		d.fn = fn
	}
	return &place{m: m, doc: name, kept: true}, m.add(t, d)
}

// actionSpec is the action as a space has it.
func (d *decl) actionSpec(p *Program, i int) *space.ActionSpec {
	spec := &space.ActionSpec{Name: d.id, Keep: d.keep, Host: outside{}}
	if d.fn != nil {
		spec.Done = func(tx *space.Tx, t space.Task) error {
			task := func(*machine) (starlark.Tuple, error) { return starlark.Tuple{taskView(t)}, nil }
			return p.call(tx, i, tx.Event(), task, func(*level, starlark.Value) error { return nil })
		}
	}
	return spec
}

// taskView is a task as a program sees it.
func taskView(t space.Task) starlark.Value {
	fields := []model.Field{model.F("attempts", t.Attempts), model.F("error", t.Err)}
	for _, f := range []model.Field{{Key: "input", Value: t.In}, {Key: "output", Value: t.Out}} {
		if f.Value.IsAbsent() {
			f.Value = model.Null()
		}
		fields = append(fields, f)
	}
	fields = append(fields, model.F("key", t.Key), model.F("state", string(t.State)))
	return &view{v: model.Object(fields...)}
}

// named is the name of an action, from that or from what action returned.
func named(b *starlark.Builtin, x starlark.Value) (string, error) {
	switch x := x.(type) {
	case starlark.String:
		return string(x), nil
	case *place:
		if x.space == "" && len(x.path) == 0 {
			return x.doc, nil
		}
	}
	return "", fmt.Errorf("%s: an action is wanted, or its name; not %s", b.Name(), article(x.Type()))
}

// taskOf unpacks the arguments of a builtin that changes a task: its action, its key, and more.
func (m *machine) taskOf(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, more ...any) (tx *space.Tx, name, key string, err error) {
	var of starlark.Value
	if err = starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"action", &of, "key", &key}, more...)...); err != nil {
		return nil, "", "", err
	}
	if tx, err = m.inHandler(b, "tasks belong to handlers"); err == nil {
		name, err = named(b, of)
	}
	return tx, name, key, err
}

// startTask is start_task(action, key, input = None).
func (m *machine) startTask(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var input starlark.Value = starlark.None
	tx, name, key, err := m.taskOf(b, args, kwargs, "input?", &input)
	if err != nil {
		return nil, err
	}
	v := model.Value{}
	if input != starlark.None {
		if v, err = m.cur.leave(input); err != nil {
			return nil, fmt.Errorf("start_task %s: input: %w", name, err)
		}
	}
	tx.StartTask(name, key, v)
	return starlark.None, tx.Err()
}

// cancelTask is cancel_task(action, key): whether it was pending.
func (m *machine) cancelTask(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	tx, name, key, err := m.taskOf(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	pending := tx.CancelTask(name, key)
	return starlark.Bool(pending), tx.Err()
}

// forgetTask is forget_task(action, key).
func (m *machine) forgetTask(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	tx, name, key, err := m.taskOf(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	tx.ForgetTask(name, key)
	return starlark.None, tx.Err()
}

// task is task(action, key): what is known of a task, None if there is none. It reads that task
// only.
func (m *machine) task(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var of starlark.Value
	var key string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "action", &of, "key", &key); err != nil {
		return nil, err
	}
	tx, err := m.transaction(b)
	if err != nil {
		return nil, err
	}
	name, err := named(b, of)
	if err != nil {
		return nil, err
	}
	entry := tx.Get(name, space.PathOfTask(key)...)
	if err := tx.Err(); err != nil || entry.IsAbsent() {
		return starlark.None, err
	}
	return taskView(space.TaskOf(key, entry)), nil
}
