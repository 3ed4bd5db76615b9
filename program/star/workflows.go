package star

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// readWorkflows compiles the workflows of a file. Their functions are executed by runs, as graphs, and not by the
// interpreter of programs: it gets functions that fail in place of them.
func (f *file) readWorkflows(name, text string, tree *syntax.File) error {
	list, actions, err := compile.Declarations(tree)
	if err != nil {
		return workflowError(name, err)
	}
	f.workflows = map[string]*workflow.Graph{}
	for _, d := range list {
		if f.workflows[d.Name] != nil {
			return errorAt(d.Pos, "there are two workflows %q", d.Name)
		}
		g, err := compile.Within(compile.Source{Filename: name, Text: []byte(text), Name: d.Name, Entry: d.Entry, Deadline: d.Deadline, Actions: actions, Workflows: compile.Variables(list)})
		if err != nil {
			return workflowError(name, err)
		}
		f.workflows[d.Name] = g
	}
	if len(list) == 0 {
		return nil
	}
	for _, def := range compile.Functions(tree, list, actions) {
		pos := def.Def
		call := &syntax.CallExpr{
			Fn: &syntax.Ident{NamePos: pos, Name: "fail"}, Lparen: pos, Rparen: pos,
			Args: []syntax.Expr{&syntax.Literal{
				Token: syntax.STRING, TokenPos: pos, Raw: `""`,
				Value: def.Name.Name + " calls actions, and only a workflow can: start one with start_workflow",
			}},
		}
		def.Body = []syntax.Stmt{&syntax.ExprStmt{X: call}}
	}
	return nil
}

func workflowError(file string, err error) error {
	var own *compile.Error
	if errors.As(err, &own) {
		return errorAt(own.Pos, "%s", own.Text)
	}
	return asError(file, err)
}

// refuseWhile refuses loops that the interpreter of programs does not have.
func refuseWhile(tree *syntax.File) (err error) {
	syntax.Walk(tree, func(n syntax.Node) bool {
		if w, is := n.(*syntax.WhileStmt); is && err == nil {
			err = syntax.Error{Pos: w.While, Msg: "there is no while outside of workflows; use a for loop over a range"}
		}
		return err == nil
	})
	return err
}

// workflow is workflow(name, run, deadline = None, keep = 0, keep_for = ""), which returns the name. The file's workflows were
// compiled before, with the deadline.
func (inst *instance) workflow(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	var fn starlark.Callable
	var deadline starlark.Value
	var keepFor starlark.String
	d := &decl{kind: "workflow"}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "run", &fn, "deadline?", &deadline, "keep?", &d.keepRuns, "keep_for?", &keepFor); err != nil {
		return nil, err
	}
	var err error
	if d.keep, err = durationOf("keep_for", keepFor); err != nil {
		return nil, err
	}
	d.id = name
	for _, f := range inst.code.files { // any order: names are unique
		if g := f.workflows[name]; g != nil {
			d.graph = g
		}
	}
	if d.graph == nil {
		return nil, fmt.Errorf("write workflow(%q, run) at the top of the file, without if or for, with a text and a function of this file", name)
	}
	return starlark.String(name), inst.add(t, d)
}

// startWorkflow is start_workflow(name, run, args = None, space = "", deadline = None, attributes = None, priority = 0): it starts a run, if the
// handler takes effect.
func (inst *instance) startWorkflow(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	in, payload, err := inst.startArguments(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, "only handlers start workflows")
	if err != nil {
		return nil, err
	}
	if in == "" {
		in = tx.Space()
	}
	if in == tx.Space() {
		name, _ := payload.Get("workflow").AsString()
		if err := inst.declared(b, "workflow", name); err != nil {
			return nil, err
		}
	}
	tx.Send(in, runs.StreamStart, payload)
	return starlark.None, tx.Err()
}

func (inst *instance) startArguments(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (in string, payload model.Value, err error) {
	var name, run string
	var priority int
	var given, deadline, attributes starlark.Value = starlark.None, starlark.None, starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "run", &run, "args?", &given, "space?", &in, "deadline?", &deadline, "attributes?", &attributes, "priority?", &priority); err != nil {
		return "", payload, err
	}
	if err := runs.CheckID(run); err != nil {
		return "", payload, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if priority < -runs.MaxPriority || priority > runs.MaxPriority {
		return "", payload, fmt.Errorf("%s: the priority is %d; it must be from %d to %d", b.Name(), priority, -runs.MaxPriority, runs.MaxPriority)
	}
	fields := []model.Field{model.F("workflow", name), model.F("run", run)}
	if priority != 0 {
		fields = append(fields, model.F("priority", priority))
	}
	for _, x := range []struct {
		name  string
		value starlark.Value
	}{{"args", given}, {"attributes", attributes}} {
		if x.value == starlark.None {
			continue
		}
		v, err := inst.Run.ToModel(x.value)
		if err != nil {
			return "", payload, fmt.Errorf("%s: %s: %w", b.Name(), x.name, err)
		}
		fields = append(fields, model.F(x.name, v))
	}
	if deadline != starlark.None {
		seconds, err := workflow.Seconds(deadline)
		if err == nil && seconds <= 0 {
			err = fmt.Errorf("%v is not longer than nothing", deadline)
		}
		if err != nil {
			return "", payload, fmt.Errorf("%s: deadline: %w", b.Name(), err)
		}
		v, err := inst.Run.ToModel(deadline)
		if err != nil {
			return "", payload, fmt.Errorf("%s: deadline: %w", b.Name(), err)
		}
		fields = append(fields, model.F("deadline", v))
	}
	return in, model.Object(fields...), nil
}

// Workflows returns the workflows of the program, sorted by name.
func (p *Program) Workflows() []*runs.Definition { return p.workflows.Definitions() }

// cellDefault is the default of the cells of a document.
type cellDefault struct {
	value model.Value
	// at is where it was given first, and other where another one is, if there is one.
	at, other syntax.Position
}

// noteDefault notes the default of a cell for the conditions of workflows, which have no place with a default of its own.
func (inst *instance) noteDefault(t *starlark.Thread, doc, in string, v model.Value) {
	if inst.load == nil || in != "" {
		return
	}
	switch was := inst.defaults[doc]; {
	case inst.defaults == nil:
		inst.defaults = map[string]*cellDefault{}
		fallthrough
	case was == nil:
		inst.defaults[doc] = &cellDefault{value: v, at: callerOf(t)}
	case !model.Equal(was.value, v) && !was.other.IsValid():
		was.other = callerOf(t)
	}
}

// addDefaults gives the defaults of cells to the conditions of workflows.
func (p *Program) addDefaults(inst *instance) error {
	reads := slices.ContainsFunc(p.workflows.Definitions(), func(d *runs.Definition) bool { return d.Graph.HasConditions() })
	for _, doc := range slices.Sorted(maps.Keys(inst.defaults)) {
		d := inst.defaults[doc]
		if d.other.IsValid() && !reads {
			continue
		}
		if d.other.IsValid() {
			return errorAt(d.other, "document %s has another default at %s, and the condition of a wait, get(%q), would have two values; write the cell with the same default", doc, d.at, doc)
		}
		p.workflows.Default(doc, d.value)
	}
	return nil
}

// addWorkflows registers the workflows of the declarations.
func (p *Program) addWorkflows(inst *instance) error {
	p.workflows = runs.New()
	var first *decl
	for _, d := range inst.decls {
		if d.kind != "workflow" {
			continue
		}
		if first == nil {
			first = d
		}
		_, err := p.workflows.Add(d.graph, nil)
		if err == nil {
			err = p.workflows.Keep(d.id, runs.Retention{Runs: d.keepRuns, For: d.keep})
		}
		if err != nil {
			return errorAt(d.pos, "%s", err)
		}
	}
	if err := p.addSchedules(inst.decls); err != nil || first == nil {
		return err
	}
	if err := p.addDefaults(inst); err != nil {
		return err
	}
	if err := p.workflows.Register(p.space); err != nil {
		return errorAt(first.pos, "%s", err)
	}
	p.streams = append(p.streams, runs.ClientStreams()...)
	return nil
}
