package star

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/fingerprint"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// register builds the space.Program from the declarations of an instance.
func (p *Program) register(inst *instance) error {
	p.space = space.NewProgram(p.code.name)
	p.space.Version = p.version
	if err := p.addWorkflows(inst); err != nil {
		return err
	}
	prints := fingerprint.NewHasher(p.code.bodies)
	for i, d := range inst.decls {
		if err := p.registerDecl(d, i, prints); err != nil {
			return errorAt(d.pos, "%s", strings.TrimPrefix(err.Error(), "program "+p.code.name+": "))
		}
	}
	if c := p.space.WriteConflict(); c != nil {
		return errorAt(inst.nodeNamed(c.Second.Node).pos, "%s", c)
	}
	for _, d := range inst.decls {
		if d.kind == "cron" && !slices.Contains(p.streams, d.job.Stream) {
			return errorAt(d.pos, "cron %s: there is no handler for stream %s; handle(%q, ...)%s", d.id, d.job.Stream, d.job.Stream, model.DidYouMean(d.job.Stream, p.streams))
		}
	}
	return nil
}

// nodeNamed returns the declaration of a node.
func (inst *instance) nodeNamed(id string) *decl {
	at := slices.IndexFunc(inst.decls, func(d *decl) bool { return d.spec.ID == id })
	return inst.decls[at]
}

// registerDecl adds declaration i to the space.Program.
func (p *Program) registerDecl(d *decl, i int, prints *fingerprint.Hasher) error {
	switch d.kind {
	case "handler":
		p.streams = append(p.streams, d.id)
		s := Sample{Stream: d.id}
		if d.schema != nil {
			s.Payload = d.schema.Sample()
			p.addFields(d)
			if p.payloads == nil {
				p.payloads = map[string]*shape.Type{}
			}
			p.payloads[d.id] = d.schema.Type()
			p.space.Payload(d.id, func(v model.Value) error { return d.schema.Check(v, "payload of "+d.id) })
		}
		if err := p.space.Handle(d.id, p.handler(d, i)); err != nil {
			return err
		}
		if d.internal {
			return p.space.Internal(d.id)
		}
		p.samples = append(p.samples, s)
		return nil
	case "action":
		p.streams = append(p.streams, d.id)
		spec := p.actionSpec(d, i)
		if slices.Contains(p.workflows.Actions(), d.id) {
			if err := p.workflows.Use(spec); err != nil {
				return err
			}
		}
		return p.space.Action(spec)
	case "workflow", "schedule":
		return nil // it was added before
	case "made by reads":
		p.space.MadeByReads = append(p.space.MadeByReads, d.spaces...)
		return nil
	case "cron":
		s, err := cron.Parse(d.expr)
		if err != nil {
			return err
		}
		d.job.Schedule = s
		return p.space.Cron(d.job)
	}
	version, err := prints.Of(fingerprint.Node{Kind: d.kind, ID: d.id, Spec: &d.spec, Rows: d.from, Function: d.fn})
	if err != nil {
		return err
	}
	d.spec.Version = version
	p.nodes = append(p.nodes, Node{ID: d.id, Kind: d.kind, Output: d.output(), Fingerprint: d.spec.Version})
	spec := d.spec
	if d.kind == "rows" {
		spec.Run = p.parent(d, i)
	} else {
		spec.Run = func(tx *space.Tx) (v model.Value, err error) {
			err = p.call(tx, i, nil, noArgs, func(c *call, x starlark.Value) error {
				v, err = c.result(x)
				return err
			})
			return v, err
		}
	}
	return p.space.Add(spec)
}

func noArgs(*instance) (starlark.Tuple, error) { return nil, nil }

// result converts the value that a function returned: None is absent.
func (c *call) result(x starlark.Value) (model.Value, error) {
	if x == starlark.None {
		return model.Value{}, nil
	}
	if p, ok := x.(*value.Place); ok {
		v, err := p.Read()
		if err != nil || v.IsAbsent() {
			return v, err
		}
		x = &value.View{V: v}
	}
	v, err := c.ToModel(x)
	if err != nil {
		return v, &Error{File: c.decl.pos.Filename(), Line: int(c.decl.pos.Line), Col: int(c.decl.pos.Col), Message: fmt.Sprintf("what %s returns: %s", c.decl.fn.Name(), err)}
	}
	return v, nil
}

// handler returns the handler of a stream.
func (p *Program) handler(d *decl, i int) space.Handler {
	return func(tx *space.Tx, ev *model.Event) (v model.Value, err error) {
		err = p.call(tx, i, ev, func(inst *instance) (starlark.Tuple, error) { return inst.decls[i].payload(ev) }, func(c *call, x starlark.Value) error {
			v, err = c.result(x)
			return err
		})
		return v, err
	}
}

// payload returns the argument of a handler.
func (d *decl) payload(ev *model.Event) (starlark.Tuple, error) {
	if d.schema != nil {
		if err := d.schema.Check(ev.Payload, "payload"); err != nil {
			return nil, errorAt(d.pos, "stream %s: %s", d.id, err)
		}
	}
	if f, ok := d.fn.(*starlark.Function); ok && f.NumParams() == 0 {
		return nil, nil
	}
	x := value.FromModel(ev.Payload)
	if v, ok := x.(*value.View); ok {
		v.Schema = d.schema
	}
	return starlark.Tuple{x}, nil
}

// parent returns the function that registers a node for each row, and deletes the results of rows that
// no longer exist.
func (p *Program) parent(d *decl, i int) func(tx *space.Tx) (model.Value, error) {
	in, out := d.from, d.to
	version, gate, group := d.spec.Version, d.spec.Gate, d.spec.Group
	return func(tx *space.Tx) (model.Value, error) {
		keys := tx.GetShallow(in.Doc, in.Path...).Keys()
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

// child returns the function that derives the row of a key.
func (p *Program) child(i int, out, key string) func(tx *space.Tx) (model.Value, error) {
	return func(tx *space.Tx) (model.Value, error) {
		err := p.call(tx, i, nil, func(inst *instance) (starlark.Tuple, error) {
			row, err := inst.decls[i].from.Member(key)
			return starlark.Tuple{starlark.String(key), row}, err
		}, func(c *call, x starlark.Value) error {
			v, err := c.result(x)
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

// actionSpec returns the action for the space. A program has no access to anything but documents, so
// another process performs the tasks: the worker hands them to performers, or it sees them in the document and sends an event
// with the result.
func (p *Program) actionSpec(d *decl, i int) *space.ActionSpec {
	spec := &space.ActionSpec{Name: d.id, Keep: d.keep, External: true, Remote: d.remote, Fleet: d.fleet, Deadline: d.deadline}
	if d.fn != nil {
		spec.Done = func(tx *space.Tx, t space.Task) error {
			task := func(*instance) (starlark.Tuple, error) { return starlark.Tuple{taskView(t)}, nil }
			return p.call(tx, i, tx.Event(), task, func(*call, starlark.Value) error { return nil })
		}
	}
	return spec
}
