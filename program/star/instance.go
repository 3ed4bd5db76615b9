package star

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// instance is one instance of a program: its globals, frozen, and the calls of its functions, one
// inside another. A run borrows an instance; a node that is pulled in the middle of the run is called
// on the same one.
type instance struct {
	value.Current
	code  *code
	calls []*call
	depth int
	decls []*decl
	// defaults are those of the cells of the own space, by document, with the position of the first one that has it.
	defaults map[string]*cellDefault
	cells    []string // the documents of the own space that were named while the program was loaded
	// forms are the versions of documents of the own space that the file has named, nil for version 1.
	forms map[string]*value.Form
	steps []starlark.Callable // the functions that upgrade them
	test  *testRun            // nil for an instance of a program
	// load executes another file; nil once the program is loaded.
	load func(t *starlark.Thread, name string) (starlark.StringDict, error)
}

// call is one call of a registered function.
type call struct {
	value.Run
	inst  *instance
	tx    *space.Tx // nil while the program is loaded, and in tests
	ev    *model.Event
	decl  *decl
	out   int // bytes logged
	lines int
}

// enter begins a call; leave ends it.
func (inst *instance) enter(tx *space.Tx, d *decl, ev *model.Event) *call {
	if inst.depth == len(inst.calls) {
		inst.calls = append(inst.calls, inst.newCall())
	}
	c := inst.calls[inst.depth]
	inst.depth++
	c.tx, c.decl, c.ev, c.out, c.lines = tx, d, ev, 0, 0
	if tx != nil {
		c.Docs = tx
	}
	c.Handles = ev != nil
	c.Missing, c.LastText = nil, ""
	c.Start()
	c.Begin()
	inst.code.stop.check(&c.Thread)
	inst.Run = &c.Run
	return c
}

func (inst *instance) leave() {
	c := inst.current()
	inst.code.usage.add(&c.Meter)
	c.tx, c.Docs, c.ev, c.decl = nil, nil, nil, nil
	inst.depth--
	inst.Run = nil
	if inst.depth > 0 {
		inst.Run = &inst.current().Run
	}
}

// current returns the innermost call under way. There must be one.
func (inst *instance) current() *call { return inst.calls[inst.depth-1] }

func (inst *instance) newCall() *call {
	c := &call{Run: value.Run{Meter: meter.Meter{Bounds: inst.code.bounds}}, inst: inst}
	c.Name = func() string { return c.decl.kind + " " + c.decl.id }
	c.Thread.Name = inst.code.name
	c.Thread.Load = func(t *starlark.Thread, name string) (starlark.StringDict, error) {
		if inst.load == nil {
			return nil, fmt.Errorf("load can only be called while the program is loaded")
		}
		return inst.load(t, name)
	}
	c.Thread.OnMaxSteps = func(*starlark.Thread) { _ = c.Exhaust() }
	inst.code.stop.watch(&c.Thread)
	return c
}

// failure returns the error with which the space ends the run.
func (c *call) failure(err error) error {
	e := asError(c.inst.code.entry, err)
	if own, ok := e.(*Error); ok { //nolint:errorlint // asError returns it unwrapped
		own.Message = interp.Explain(own.Message, c.Missing)
	}
	if isTransient(err) {
		return space.Transient(e)
	}
	return e
}

// isTransient reports whether a run failed with fail(..., transient = True).
func isTransient(err error) bool {
	var f *interp.Failure
	return errors.As(err, &f) && f.Transient
}

// transaction returns the transaction of the run under way.
func (inst *instance) transaction(b *starlark.Builtin) (*space.Tx, error) {
	if inst.depth == 0 || inst.current().tx == nil {
		return nil, fmt.Errorf("%s: while a program is loaded there is no space; call it in a handler, computation or effect", b.Name())
	}
	if inst.Run.Upgrades {
		return nil, fmt.Errorf("%s: an upgrade calls it; it returns the new value of the old one, and uses nothing else", b.Name())
	}
	return inst.current().tx, nil
}

// inHandler returns the transaction of a handler. For other runs it fails; why is what to do.
func (inst *instance) inHandler(b *starlark.Builtin, why string) (*space.Tx, error) {
	tx, err := inst.transaction(b)
	if err == nil && inst.current().ev == nil {
		return nil, fmt.Errorf("%s: %s cannot call it; %s", b.Name(), inst.Run.Name(), why)
	}
	return tx, err
}

// add registers a declaration.
func (inst *instance) add(t *starlark.Thread, d *decl) error {
	if inst.load == nil {
		return fmt.Errorf("a program registers its handlers and nodes while it is loaded, not while it runs")
	}
	if len(inst.decls) >= maxDecls {
		return fmt.Errorf("a program can register at most %d handlers, nodes, cron jobs and actions", maxDecls)
	}
	d.pos = callerOf(t)
	inst.decls = append(inst.decls, d)
	return nil
}

const maxDecls = 10_000

// callerOf returns the position of the call of the builtin that runs.
func callerOf(t *starlark.Thread) syntax.Position {
	for i := 0; i < t.CallStackDepth(); i++ {
		if f := t.CallFrame(i); f.Pos.Line > 0 {
			return f.Pos
		}
	}
	return syntax.Position{}
}

// functions returns the registered functions.
func (inst *instance) functions() (all []starlark.Callable) {
	for _, d := range inst.decls {
		if d.fn != nil {
			all = append(all, d.fn)
		}
	}
	return append(all, inst.steps...)
}
