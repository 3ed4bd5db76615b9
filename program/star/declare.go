package star

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// decl is something that the files have registered. Every machine of a program has the
// same ones, in the same order.
type decl struct {
	kind   string // handler, computation, effect, rows, cron, action
	id     string // or the stream
	pos    syntax.Position
	fn     starlark.Callable
	schema *schema
	spec   space.NodeSpec
	// rows: where they come from and where they go.
	from *place
	to   string
	job  space.CronSpec
	expr string
	keep time.Duration // of an action
}

// register puts the declaration into the program's space.Program.
func (d *decl) register(p *Program, i int, prints *fingerprints) error {
	switch d.kind {
	case "handler":
		p.streams = append(p.streams, d.id)
		s := Sample{Stream: d.id}
		if d.schema != nil {
			s.Payload = d.schema.sample()
		}
		p.samples = append(p.samples, s)
		return p.space.Handle(d.id, d.handler(p, i))
	case "action":
		p.streams = append(p.streams, d.id)
		return p.space.Action(d.actionSpec(p, i))
	case "cron":
		s, err := cron.Parse(d.expr)
		if err != nil {
			return err
		}
		d.job.Schedule = s
		return p.space.Cron(d.job)
	}
	version, err := prints.of(d)
	if err != nil {
		return err
	}
	d.spec.Version = version
	p.nodes = append(p.nodes, Node{ID: d.id, Kind: d.kind, Output: d.output(), Fingerprint: d.spec.Version})
	spec := d.spec
	if d.kind == "rows" {
		spec.Run = d.parent(p, i)
	} else {
		spec.Run = func(tx *space.Tx) (v model.Value, err error) {
			err = p.call(tx, i, nil, noArgs, func(l *level, x starlark.Value) error {
				v, err = l.result(x)
				return err
			})
			return v, err
		}
	}
	return p.space.Add(spec)
}

func (d *decl) output() string {
	if d.kind == "rows" {
		return d.to
	}
	return d.spec.Output
}

func noArgs(*machine) (starlark.Tuple, error) { return nil, nil }

// result is what a function has returned: absent if that is None.
func (l *level) result(x starlark.Value) (model.Value, error) {
	if x == starlark.None {
		return model.Value{}, nil
	}
	if p, ok := x.(*place); ok {
		v, err := p.read()
		if err != nil || v.IsAbsent() {
			return v, err
		}
		x = &view{v: v}
	}
	v, err := l.leave(x)
	if err != nil {
		return v, &Error{File: l.decl.pos.Filename(), Line: int(l.decl.pos.Line), Col: int(l.decl.pos.Col), Message: fmt.Sprintf("what %s returns: %s", l.decl.fn.Name(), err)}
	}
	return v, nil
}

// handler is the handler of a stream.
func (d *decl) handler(p *Program, i int) space.Handler {
	return func(tx *space.Tx, ev *model.Event) (v model.Value, err error) {
		err = p.call(tx, i, ev, func(m *machine) (starlark.Tuple, error) { return m.decls[i].payload(ev) }, func(l *level, x starlark.Value) error {
			v, err = l.result(x)
			return err
		})
		return v, err
	}
}

// payload is the argument of a handler.
func (d *decl) payload(ev *model.Event) (starlark.Tuple, error) {
	if d.schema != nil {
		if err := d.schema.check(ev.Payload, "payload"); err != nil {
			return nil, errorAt(d.pos, "stream %s: %s", d.id, err)
		}
	}
	if f, ok := d.fn.(*starlark.Function); ok && f.NumParams() == 0 {
		return nil, nil
	}
	x := show(ev.Payload)
	if v, ok := x.(*view); ok {
		v.schema = d.schema
	}
	return starlark.Tuple{x}, nil
}

// parent registers a node for each row, and takes out the rows whose keys are gone.
func (d *decl) parent(p *Program, i int) func(tx *space.Tx) (model.Value, error) {
	in, out := d.from, d.to
	version, gate, group := d.spec.Version, d.spec.Gate, d.spec.Group
	return func(tx *space.Tx) (model.Value, error) {
		keys := tx.GetShallow(in.doc, in.path...).Keys()
		for _, key := range keys {
			tx.Node(space.NodeSpec{
				ID: model.RowNode(out, key), Kind: space.Computation, Version: version, Gate: gate, Group: group,
				Writes: []space.Address{{Doc: out, Path: model.Path{key}}}, Run: p.child(i, out, key),
			})
		}
		there := tx.Peek(out)
		if there.IsAbsent() {
			tx.Set(out, model.Object())
		}
		for _, key := range there.Keys() {
			if _, found := slices.BinarySearch(keys, key); !found {
				tx.Delete(out, key)
			}
		}
		return model.Value{}, nil
	}
}

// child derives the row of a key.
func (p *Program) child(i int, out, key string) func(tx *space.Tx) (model.Value, error) {
	return func(tx *space.Tx) (model.Value, error) {
		err := p.call(tx, i, nil, func(m *machine) (starlark.Tuple, error) {
			row, err := m.decls[i].from.member(key)
			return starlark.Tuple{starlark.String(key), row}, err
		}, func(l *level, x starlark.Value) error {
			v, err := l.result(x)
			if err == nil && v.IsAbsent() {
				tx.Delete(out, key)
			} else if err == nil {
				tx.Set(out, v, key)
			}
			return err
		})
		return model.Value{}, err
	}
}

// add takes a declaration in. It is the last thing that a registering builtin does.
func (m *machine) add(t *starlark.Thread, d *decl) error {
	if m.loaded || m.mods == nil {
		return fmt.Errorf("what a program consists of is registered while it is loaded, not while it runs")
	}
	if len(m.decls) >= maxDecls {
		return fmt.Errorf("a program registers %d things at most", maxDecls)
	}
	d.pos = callerOf(t)
	m.decls = append(m.decls, d)
	return nil
}

const maxDecls = 10_000

// callerOf is where the builtin that runs was called.
func callerOf(t *starlark.Thread) syntax.Position {
	for i := 0; i < t.CallStackDepth(); i++ {
		if f := t.CallFrame(i); f.Pos.Line > 0 {
			return f.Pos
		}
	}
	return syntax.Position{}
}

// takes refuses a function that cannot be called with so many arguments.
func takes(fn starlark.Callable, n int, what string) error {
	f, ok := fn.(*starlark.Function)
	if !ok {
		return fmt.Errorf("%s is a %s; it takes a function of the program", fn.Name(), fn.Type())
	}
	params := f.NumParams()
	if f.HasVarargs() || f.HasKwargs() || f.NumKwonlyParams() > 0 {
		return fmt.Errorf("function %s has parameters with stars; %s", f.Name(), what)
	}
	required := params
	for required > 0 && f.ParamDefault(required-1) != nil {
		required--
	}
	if n < required || n > params {
		return fmt.Errorf("function %s has %d parameters; %s", f.Name(), params, what)
	}
	return nil
}

func (m *machine) handle(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var stream string
	var fn starlark.Callable
	var payload starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "stream", &stream, "fn", &fn, "payload?", &payload); err != nil {
		return nil, err
	}
	d := &decl{kind: "handler", id: stream, fn: fn}
	if payload != nil && payload != starlark.None {
		s, err := schemaOf(payload)
		if err != nil {
			return nil, fmt.Errorf("handle %s: payload: %w", stream, err)
		}
		d.schema = s
	}
	if f, ok := fn.(*starlark.Function); !ok || f.NumParams() != 0 {
		if err := takes(fn, 1, "a handler has one, the payload, or none"); err != nil {
			return nil, fmt.Errorf("handle %s: %w", stream, err)
		}
	}
	return fn, m.add(t, d)
}

// options are the arguments that nodes of every kind have.
type options struct {
	debounce, maxWait, throttle, group starlark.String
	volatile                           bool
	writes, envelope, reads            *starlark.List
	output                             starlark.Value
}

func (o *options) pairs() []any {
	return []any{
		"debounce?", &o.debounce, "max_wait?", &o.maxWait, "throttle?", &o.throttle, "group?", &o.group,
		"volatile?", &o.volatile, "writes?", &o.writes, "envelope?", &o.envelope, "reads?", &o.reads,
	}
}

// apply puts the options into a spec.
func (o *options) apply(spec *space.NodeSpec) (err error) {
	spec.Group, spec.Volatile = string(o.group), o.volatile
	if spec.Gate.Debounce, err = durationOf("debounce", o.debounce); err != nil {
		return err
	}
	if o.maxWait == "none" {
		spec.Gate.MaxWait = -1
	} else if spec.Gate.MaxWait, err = durationOf("max_wait", o.maxWait); err != nil {
		return err
	}
	if spec.Gate.Throttle, err = durationOf("throttle", o.throttle); err != nil {
		return err
	}
	for _, l := range []struct {
		what string
		list *starlark.List
		to   *[]space.Address
	}{{"writes", o.writes, &spec.Writes}, {"envelope", o.envelope, &spec.Envelope}, {"reads", o.reads, &spec.DeclaredReads}} {
		if *l.to, err = addresses(l.what, l.list); err != nil {
			return err
		}
	}
	return nil
}

func addresses(what string, list *starlark.List) (out []space.Address, err error) {
	if list == nil {
		return nil, nil
	}
	for i := range list.Len() {
		x, ok := list.Index(i).(*place)
		if !ok {
			return nil, fmt.Errorf("%s: a list of places is wanted, such as [stats, alarms[\"x\"]]; this has a %s", what, list.Index(i).Type())
		}
		out = append(out, space.Address{Space: x.space, Doc: x.doc, Path: x.path})
	}
	return out, nil
}

// durationOf reads a duration such as "100ms", "24h" or "7d"; "" is none.
func durationOf(what string, s starlark.String) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	text := string(s)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: %q is no duration; write it like \"100ms\", \"90s\", \"24h\" or \"7d\"", what, clip(text))
	}
	return d, nil
}

func (m *machine) compute(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var id string
	var fn starlark.Callable
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"id", &id, "fn", &fn, "output?", &o.output}, o.pairs()...)...); err != nil {
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
		return nil, fmt.Errorf("compute %s: output is the name of a document, or None", id)
	}
	if err := errors.Join(o.apply(&d.spec), takes(fn, 0, "a computation has none: it reads documents")); err != nil {
		return nil, fmt.Errorf("compute %s: %w", id, err)
	}
	if err := m.add(t, d); err != nil || d.spec.Output == "" {
		return starlark.None, err
	}
	return &place{m: m, doc: d.spec.Output, kept: true}, nil
}

func (m *machine) effect(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var id string
	var fn starlark.Callable
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"id", &id, "fn", &fn}, o.pairs()...)...); err != nil {
		return nil, err
	}
	d := &decl{kind: "effect", id: id, fn: fn, spec: space.NodeSpec{ID: id, Kind: space.Effect}}
	if err := errors.Join(o.apply(&d.spec), takes(fn, 0, "an effect has none: it reads documents")); err != nil {
		return nil, fmt.Errorf("effect %s: %w", id, err)
	}
	return starlark.None, m.add(t, d)
}

func (m *machine) each(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var id string
	var of starlark.Value
	var fn starlark.Callable
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "id", &id, "rows", &of, "fn", &fn,
		"debounce?", &o.debounce, "max_wait?", &o.maxWait, "throttle?", &o.throttle, "group?", &o.group); err != nil {
		return nil, err
	}
	rows, ok := of.(*place)
	if !ok {
		return nil, fmt.Errorf("each %s: the rows are %s; a cell or doc is wanted, or a place in one: each(%q, cell(\"items\"), ...)", id, article(of.Type()), id)
	}
	d := &decl{kind: "rows", id: id, fn: fn, from: rows, to: id, spec: space.NodeSpec{ID: id, Kind: space.Computation}}
	var err error
	switch {
	case rows.space != "":
		err = fmt.Errorf("the rows are of another space; a space makes nodes of its own documents")
	case strings.Contains(id, model.RowMark) || strings.HasSuffix(id, model.RowMark[:1]):
		err = fmt.Errorf("the name must not contain %q nor end in %q: the names of the rows' nodes are made with it", model.RowMark, model.RowMark[:1])
	default:
		err = errors.Join(o.apply(&d.spec), takes(fn, 2, "it is called with the key and the row"))
		d.spec.Writes = []space.Address{{Doc: id}}
	}
	if err != nil {
		return nil, fmt.Errorf("each %s: %w", id, err)
	}
	return &place{m: m, doc: id, kept: true}, m.add(t, d)
}

func (m *machine) cron(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
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
	return starlark.None, m.add(t, &decl{kind: "cron", id: name, job: job, expr: expr})
}

// cell and doc name a document.
func (m *machine) cell(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name, in string
	var def starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "default?", &def, "space?", &in); err != nil {
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
	x := &place{m: m, space: in, doc: name, kept: !m.loaded}
	if def != starlark.None {
		v, err := m.cur.leave(def)
		if err != nil {
			return nil, fmt.Errorf("%s %s: default: %w", b.Name(), name, err)
		}
		x.def, x.origin = v, v
		_, x.weight, _ = measure(v)
	}
	if m.cur != nil && m.cur.docs != nil && in == m.cur.docs.Space() {
		x.space = ""
	}
	return x, nil
}
