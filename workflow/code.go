package workflow

import (
	"fmt"
	"maps"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Program is a graph whose code is compiled. Runs do not change it and may share it.
type Program struct {
	Graph   *Graph
	Version string
	code    map[*Code]*starlark.Function
	globals starlark.StringDict
	// builtins are the predeclared functions, which variables may hold.
	builtins starlark.StringDict
	funcs    map[string]int
	// first is the number of the first node of each function, among all nodes, and behind them the number of nodes.
	first []int
}

// function returns a function that variables may hold, by its name, nil if there is none.
func (p *Program) function(name string) starlark.Value {
	for _, names := range []starlark.StringDict{p.globals, p.builtins, starlark.Universe} {
		if v := names[name]; v != nil {
			return v
		}
	}
	return nil
}

// Dialect returns the language of code: Starlark with while and sets.
func Dialect() *syntax.FileOptions { return &syntax.FileOptions{Set: true, While: true} }

// Builtins returns the predeclared names of code in addition to those of Starlark.
func Builtins() starlark.StringDict {
	return starlark.StringDict{
		"error": starlark.NewBuiltin("error", newError), "fail": counted(starlark.NewBuiltin("fail", fail), texts),
		"get": starlark.NewBuiltin("get", get), "sum": starlark.NewBuiltin("sum", sum),
	}
}

// Prepare compiles the code of a checked graph.
func Prepare(g *Graph) (*Program, error) { return PrepareWith(g, nil) }

// PrepareWith is Prepare for a graph whose code calls functions of the process.
func PrepareWith(g *Graph, functions starlark.StringDict) (*Program, error) {
	version, err := g.Version()
	if err != nil {
		return nil, err
	}
	p := &Program{Graph: g, Version: version, code: map[*Code]*starlark.Function{}, funcs: map[string]int{}}
	m := module{p: p, functions: functions, file: &syntax.File{Path: g.Name, Options: Dialect()}, names: map[*Code]string{}}
	for i := range g.Prelude {
		m.parse(g.Prelude[i].Text, g.Prelude[i].Line)
	}
	p.first = append(p.first, 0)
	for i := range g.Funcs {
		p.funcs[g.Funcs[i].Name] = i
		p.first = append(p.first, p.first[i]+len(g.Funcs[i].Nodes))
		m.function(&g.Funcs[i])
	}
	if m.err == nil {
		m.err = m.compile()
	}
	if m.err != nil {
		return nil, fmt.Errorf("workflow %s: %w", g.Name, m.err)
	}
	return p, nil
}

// module collects the code of a graph in one file, each piece as a function of its variables. Positions are
// those of the source.
type module struct {
	p     *Program
	file  *syntax.File
	names map[*Code]string
	// functions are predeclared, beside the builtins.
	functions starlark.StringDict
	err       error
}

func (m *module) function(f *Func) {
	for i := range f.Params {
		m.expression(f.Params[i].Default)
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if n.Kind == Do {
			m.statements(n.Code)
		} else {
			m.expression(n.Code)
		}
		m.expression(n.Until)
		m.statements(n.Into)
		for j := range n.Calls {
			m.expression(n.Calls[j].Args)
		}
		if n.Each != nil {
			m.expression(n.Each.Over)
			m.expression(n.Each.If)
			m.statements(n.Each.Target)
		}
	}
}

// define adds the function of a piece of code, whose body begins in the line after the function's head.
func (m *module) define(c *Code, body string, line int32) {
	name := fmt.Sprintf("_code%d", len(m.names))
	m.names[c] = name
	m.parse(fmt.Sprintf("def %s(%s):\n%s\n", name, strings.Join(c.Reads, ", "), body), line-1)
}

func (m *module) expression(c *Code) {
	if c == nil {
		return
	}
	pad := strings.Repeat(" ", max(int(c.Col)-1, 0))
	m.define(c, " return (\n"+pad+c.Text+"\n )", c.Line-1)
}

func (m *module) statements(c *Code) {
	if c == nil {
		return
	}
	indent := c.Text[:len(c.Text)-len(strings.TrimLeft(c.Text, " \t"))]
	writes := strings.Join(c.Writes, ", ")
	if len(c.Writes) == 1 {
		writes += ","
	}
	m.define(c, c.Text+"\n"+indent+"return ("+writes+")", c.Line)
}

func (m *module) parse(text string, line int32) {
	if m.err != nil {
		return
	}
	f, err := m.file.Options.Parse(m.file.Path, syntax.FilePortion{Content: []byte(text), FirstLine: line, FirstCol: 1}, 0)
	if err != nil {
		m.err = err
		return
	}
	m.file.Stmts = append(m.file.Stmts, f.Stmts...)
}

func (m *module) compile() error {
	builtins := countedBuiltins()
	maps.Copy(builtins, Builtins())
	maps.Copy(builtins, m.functions)
	m.p.builtins = maps.Clone(builtins)
	maps.Copy(builtins, operations())
	m.file.Stmts = (&meter{}).stmts(m.file.Stmts)
	program, err := starlark.FileProgram(m.file, builtins.Has)
	if err != nil {
		return err
	}
	thread := &starlark.Thread{Name: "prepare"}
	thread.SetMaxExecutionSteps(maxSteps)
	thread.SetLocal(memoryKey, &memory{limit: maxMemory})
	m.p.globals, err = program.Init(thread, builtins)
	if err != nil {
		return err
	}
	m.p.globals.Freeze()
	for c, name := range m.names { // any order: each on its own
		fn, ok := m.p.globals[name].(*starlark.Function)
		if !ok {
			return fmt.Errorf("%s is no function", name)
		}
		m.p.code[c] = fn
	}
	return nil
}

// maxSteps bounds the code of all nodes that one step of a run executes, in steps of the interpreter.
const maxSteps = 20_000_000

// eval evaluates an expression with the variables that it reads.
func (r *Run) eval(c *Code, vars starlark.StringDict) (starlark.Value, error) {
	p := r.program
	args := make(starlark.Tuple, len(c.Reads))
	for i, name := range c.Reads {
		v := vars[name]
		if v == nil {
			return nil, fmt.Errorf("variable %s has no value here", name)
		}
		args[i] = v
	}
	thread := r.takeThread()
	before := thread.ExecutionSteps()
	thread.SetMaxExecutionSteps(before + max(maxSteps-r.steps, 1))
	v, err := starlark.Call(thread, p.code[c], args, nil)
	steps := thread.ExecutionSteps() - before
	if err == nil {
		r.thread = thread
	}
	if more := r.memory.take(stepBytes * int(steps)); err == nil {
		err = more
	}
	if r.steps += steps; err != nil && r.steps >= maxSteps {
		err = &Failure{Name: LimitError, Message: fmt.Sprintf("line %d: more than %d operations without an action, a sleep or a wait", c.Line, maxSteps)}
	}
	return v, err
}

// takeThread returns the thread of the run, for one evaluation. One that fails does not return it: what has ended it is part of its state.
func (r *Run) takeThread() *starlark.Thread {
	thread := r.thread
	if r.thread = nil; thread == nil {
		thread = &starlark.Thread{Name: r.program.Graph.Name, Print: silent}
		thread.SetLocal(memoryKey, &r.memory)
	}
	return thread
}

// silent is print in a workflow: code that may run again prints nothing.
func silent(*starlark.Thread, string) {}

// sum is sum(numbers, start=0) in Starlark.
func sum(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list starlark.Iterable
	total := starlark.Value(starlark.MakeInt(0))
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "numbers", &list, "start?", &total); err != nil {
		return nil, err
	}
	it := list.Iterate()
	defer it.Done()
	var err error
	for v := starlark.Value(nil); it.Next(&v); {
		if err := take(t, shallow(total)+shallow(v)); err != nil {
			return nil, err
		}
		if total, err = starlark.Binary(syntax.PLUS, total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// exec runs statements, and stores the variables that they write.
func (r *Run) exec(c *Code, vars starlark.StringDict) error {
	out, err := r.eval(c, vars)
	if err != nil {
		return err
	}
	for i, name := range c.Writes {
		vars[name] = out.(starlark.Tuple)[i]
	}
	return nil
}
