package star

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

func (inst *instance) handle(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var stream string
	var fn starlark.Callable
	var payload starlark.Value
	var internal bool
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "stream", &stream, "fn", &fn, "payload?", &payload, "internal?", &internal); err != nil {
		return nil, err
	}
	d := &decl{kind: "handler", id: stream, fn: fn, internal: internal}
	if payload != nil && payload != starlark.None {
		s, err := value.SchemaOf(payload)
		if err != nil {
			return nil, fmt.Errorf("handle %s: payload: %w", stream, err)
		}
		if stream == model.Undelivered {
			s.Open()
		}
		d.schema = s
	}
	if f, ok := fn.(*starlark.Function); !ok || f.NumParams() != 0 {
		if err := checkArity(fn, 1, "a handler takes one parameter, the payload, or none"); err != nil {
			return nil, fmt.Errorf("handle %s: %w", stream, err)
		}
	}
	return fn, inst.add(t, d)
}

func (inst *instance) compute(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var id string
	var fn starlark.Callable
	var o options
	var def starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"id", &id, "fn", &fn, "output?", &o.output, "default?", &def}, o.pairs()...)...); err != nil {
		return nil, err
	}
	d := &decl{kind: "computation", id: id, fn: fn, spec: space.NodeSpec{ID: id, Kind: space.Computation, Output: id}}
	switch out := o.output.(type) {
	case nil:
	case starlark.NoneType:
		d.spec.Output = ""
	case starlark.String:
		d.spec.Output = string(out)
	default:
		return nil, fmt.Errorf("compute %s: output must be the name of a document, or None", id)
	}
	if err := errors.Join(o.apply(&d.spec), checkArity(fn, 0, "a computation takes none: it reads documents")); err != nil {
		return nil, fmt.Errorf("compute %s: %w", id, err)
	}
	if def != starlark.None && d.spec.Output == "" {
		return nil, fmt.Errorf("compute %s: it has no output that could have a default; give a cell that it writes the default", id)
	}
	if err := inst.add(t, d); err != nil || d.spec.Output == "" {
		return starlark.None, err
	}
	x := &value.Place{Cur: &inst.Current, Doc: d.spec.Output, Remembers: true}
	if err := inst.setDefault(t, x, def); err != nil {
		return nil, fmt.Errorf("compute %s: %w", id, err)
	}
	return x, nil
}

// setDefault gives the place of a document a default, unless that is None.
func (inst *instance) setDefault(t *starlark.Thread, x *value.Place, def starlark.Value) error {
	if def == starlark.None {
		return nil
	}
	v, err := inst.Run.ToModel(def)
	if err != nil {
		return fmt.Errorf("default: %w", err)
	}
	x.ByDefault, x.DocDefault = v, v
	_, x.DefaultSize, _ = value.Measure(v)
	inst.noteDefault(t, x.Doc, x.Space, v)
	return nil
}

func (inst *instance) effect(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var id string
	var fn starlark.Callable
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"id", &id, "fn", &fn}, o.pairs()...)...); err != nil {
		return nil, err
	}
	d := &decl{kind: "effect", id: id, fn: fn, spec: space.NodeSpec{ID: id, Kind: space.Effect}}
	if err := errors.Join(o.apply(&d.spec), checkArity(fn, 0, "an effect takes none: it reads documents")); err != nil {
		return nil, fmt.Errorf("effect %s: %w", id, err)
	}
	return starlark.None, inst.add(t, d)
}

func (inst *instance) each(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var id string
	var of starlark.Value
	var fn starlark.Callable
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "id", &id, "rows", &of, "fn", &fn,
		"debounce?", &o.debounce, "max_wait?", &o.maxWait, "throttle?", &o.throttle, "group?", &o.group); err != nil {
		return nil, err
	}
	rows, ok := of.(*value.Place)
	if !ok {
		return nil, fmt.Errorf("each %s: the rows must be a cell, a doc or a place in one, not %s: each(%q, cell(\"items\"), ...)", id, meter.Article(of.Type()), id)
	}
	d := &decl{kind: "rows", id: id, fn: fn, from: rows, to: id, spec: space.NodeSpec{ID: id, Kind: space.Computation}}
	var err error
	switch {
	case rows.Space != "":
		err = fmt.Errorf("the rows must be in a document of this space")
	case strings.Contains(id, model.RowMark) || strings.HasSuffix(id, model.RowMark[:1]):
		err = fmt.Errorf("the name must not contain %q nor end in %q: the names of the rows' nodes contain it", model.RowMark, model.RowMark[:1])
	default:
		err = errors.Join(o.apply(&d.spec), checkArity(fn, 2, "the function takes two parameters, the key and the row"))
		d.spec.Writes = []space.Address{{Doc: id}}
	}
	if err != nil {
		return nil, fmt.Errorf("each %s: %w", id, err)
	}
	return &value.Place{Cur: &inst.Current, Doc: id, Remembers: true}, inst.add(t, d)
}

func (inst *instance) cron(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name, expr, stream, catchUp string
	var grace starlark.String
	var limit int
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "schedule", &expr, "stream?", &stream,
		"catch_up?", &catchUp, "grace?", &grace, "limit?", &limit); err != nil {
		return nil, err
	}
	if stream == "" {
		stream = name
	}
	g, err := durationOf("grace", grace)
	if err != nil {
		return nil, fmt.Errorf("cron %s: %w", name, err)
	}
	job := space.CronSpec{Name: name, Stream: stream, Spec: expr, Grace: g, Limit: limit}
	switch catchUp {
	case "", "once":
	case "skip":
		job.CatchUp = space.Skip
	case "all":
		job.CatchUp = space.All
	default:
		return nil, fmt.Errorf("cron %s: catch_up is %q; use \"once\", \"skip\" or \"all\"", name, catchUp)
	}
	return starlark.None, inst.add(t, &decl{kind: "cron", id: name, job: job, expr: expr})
}

// madeByReads is made_by_reads(space...): the spaces that a read or a watch creates, by names and patterns.
func (inst *instance) madeByReads(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, fmt.Errorf("%s: name the spaces that a read creates: %s(\"hall\"), or of a pattern: %s(\"shelf-*\")", b.Name(), b.Name(), b.Name())
	}
	d := &decl{kind: "made by reads"}
	for _, arg := range args {
		name, is := starlark.AsString(arg)
		if !is {
			return nil, fmt.Errorf("%s: %s is no string; name a space, or a pattern such as \"shelf-*\"", b.Name(), arg.Type())
		}
		if err := model.CheckNameOrPattern("space", name); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		d.spaces = append(d.spaces, name)
	}
	return starlark.None, inst.add(t, d)
}

// cell is cell(name, default = None, space = "", version = ..., upgrades = [], rows = False) and doc(...): the place of a document.
func (inst *instance) cell(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		switch of := args[0].(type) {
		case *value.Place:
			return inst.elsewhere(b, of, args[1:], kwargs)
		case starlark.String:
		default:
			return nil, fmt.Errorf("%s: it takes the name of a document, or a place of another one, not %s; a field with a string, number, bool or null is read where it is named: %s(PLACE, space = ...).field", b.Name(), meter.Article(of.Type()), b.Name())
		}
	}
	var name, in string
	var def starlark.Value = starlark.None
	var form formArgs
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "default?", &def, "space?", &in,
		"version?", &form.version, "upgrades?", &form.upgrades, "rows?", &form.rows); err != nil {
		return nil, err
	}
	if err := model.CheckName("document", name); err != nil {
		return nil, err
	}
	if in != "" {
		if err := model.CheckName("space", in); err != nil {
			return nil, err
		}
	}
	if in == "" {
		inst.noteDocument(name)
	}
	x := &value.Place{Cur: &inst.Current, Space: in, Doc: name, Remembers: inst.load != nil}
	var err error
	if x.Form, err = inst.formOf(name, in, form); err != nil {
		return nil, fmt.Errorf("%s %s: %w", b.Name(), name, err)
	}
	if err := inst.setDefault(t, x, def); err != nil {
		return nil, fmt.Errorf("%s %s: %w", b.Name(), name, err)
	}
	if inst.Run != nil && inst.Run.Docs != nil && in == inst.Run.Docs.Space() {
		x.Space = ""
	}
	return x, nil
}

// elsewhere is cell(place, space = NAME) and doc(...): the same place of another space.
func (inst *instance) elsewhere(b *starlark.Builtin, of *value.Place, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "space", &in); err != nil {
		return nil, fmt.Errorf("%w; %s of a place is the same place of another space, and takes nothing else: %s(PLACE, space = \"name\")", err, b.Name(), b.Name())
	}
	if err := model.CheckName("space", in); err != nil {
		return nil, err
	}
	if inst.Run != nil && inst.Run.Docs != nil && in == inst.Run.Docs.Space() {
		in = ""
	}
	return of.In(in, inst.load != nil), nil
}

// action is action(name, done = None, keep = "", ...): an outbox. It returns the place of the document that
// holds the tasks.
func (inst *instance) action(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	var done starlark.Value
	var keep, deadline starlark.String
	terms := termsArgs{}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"name", &name, "done?", &done, "keep?", &keep, "deadline??", &deadline}, terms.unpack()...)...); err != nil {
		return nil, err
	}
	d := &decl{kind: "action", id: name}
	var err error
	if d.keep, err = durationOf("keep", keep); err == nil {
		d.deadline, err = durationOf("deadline", deadline)
	}
	if err == nil {
		d.remote, err = terms.remote()
	}
	if err == nil {
		d.fleet, err = terms.fleet()
	}
	if err != nil {
		return nil, fmt.Errorf("action %s: %w", name, err)
	}
	if done != nil && done != starlark.None {
		fn, ok := done.(starlark.Callable)
		if !ok {
			return nil, fmt.Errorf("action %s: done must be a function, which is called when a task has ended, not %s", name, meter.Article(done.Type()))
		}
		if err := checkArity(fn, 1, "done takes one parameter, the task that has ended"); err != nil {
			return nil, fmt.Errorf("action %s: %w", name, err)
		}
		d.fn = fn
	}
	return &value.Place{Cur: &inst.Current, Doc: name, Remembers: true}, inst.add(t, d)
}

// termsArgs are the arguments of action about the performers that get its tasks.
type termsArgs struct {
	timeout, heartbeat              starlark.String
	rate, fleetRate                 starlark.Value
	attempts, atATime, fleetAtATime int
	queue, queueBy, fleetBy         string
	watched                         bool
}

func (a *termsArgs) unpack() []any {
	return []any{
		"timeout??", &a.timeout, "heartbeat??", &a.heartbeat, "rate??", &a.rate, "attempts?", &a.attempts, "at_a_time?", &a.atATime,
		"queue?", &a.queue, "queue_by?", &a.queueBy, "watched?", &a.watched,
		"fleet_at_a_time?", &a.fleetAtATime, "fleet_rate??", &a.fleetRate, "fleet_by?", &a.fleetBy,
	}
}

// fleet returns the limits that count for all workers together.
func (a *termsArgs) fleet() (space.Fleet, error) {
	rate, err := perSecond("fleet_rate", a.fleetRate)
	f := space.Fleet{AtATime: a.fleetAtATime, PerSecond: rate, By: a.fleetBy}
	return f, cmp.Or(err, f.Check())
}

// remote returns how performers get the tasks, nil if clients watch them.
func (a *termsArgs) remote() (*space.Remote, error) {
	if a.watched {
		return nil, nil
	}
	r := &space.Remote{Attempts: a.attempts, AtATime: a.atATime, Queue: a.queue, QueueBy: a.queueBy}
	var errs [2]error
	r.Timeout, errs[0] = durationOf("timeout", a.timeout)
	r.Heartbeat, errs[1] = durationOf("heartbeat", a.heartbeat)
	var err error
	r.Rate, err = perSecond("rate", a.rate)
	return r, cmp.Or(errs[0], errs[1], err, r.Check())
}

// perSecond reads a rate.
func perSecond(name string, x starlark.Value) (float64, error) {
	if x == nil {
		return 0, nil
	}
	rate, is := starlark.AsFloat(x)
	if !is {
		return 0, fmt.Errorf("%s is %s; it must be a number of tasks per second", name, meter.Article(x.Type()))
	}
	return rate, nil
}
