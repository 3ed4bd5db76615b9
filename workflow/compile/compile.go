// Package compile compiles Starlark to workflow graphs.
//
//	fetch = action("fetch")
//	store = action("store")
//
//	def run(urls):
//	    pages = parallel([fetch(u) for u in urls])
//	    for p in pages:
//	        store(p)
//	    return len(pages)
//
//	workflow("mirror", run)
//
// Instead of being declared, actions can be loaded: load("actions", "fetch", "store"). Calls of actions are awaited. A file is ordinary Starlark. Code that cannot become a graph is refused, with
// its position and an alternative, and never compiled to something else.
package compile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// Error is an error in a file, with its position.
type Error struct {
	Pos  syntax.Position
	Text string
}

func (e *Error) Error() string { return e.Pos.String() + ": " + e.Text }

// combinators are the builtins that combine calls of actions.
var combinators = map[string]bool{"workflow": true, "parallel": true, "attempt": true, "retry": true, "timeout": true, "sleep": true, "wait": true, "compensate": true, "child": true}

// Combinators returns the names of the builtins that combine calls of actions, sorted. They have a meaning in
// functions of workflows only.
func Combinators() []string { return slices.Sorted(maps.Keys(combinators)) }

// Actions is the module that actions are loaded from.
const Actions = "actions"

// Compile compiles a file. The graph is checked, and its code resolved.
func Compile(filename string, src []byte) (*workflow.Graph, error) {
	p, err := program(filename, src)
	if err != nil {
		return nil, err
	}
	return p.Graph, nil
}

// program compiles a file to a program that can run.
func program(filename string, src []byte) (*workflow.Program, error) {
	lines := newText(src)
	f, err := workflow.Dialect().Parse(filename, src, 0)
	if err != nil {
		return nil, lines.explained(err)
	}
	builtins := workflow.Builtins()
	predeclared := func(name string) bool { return combinators[name] || builtins.Has(name) || name == "action" }
	if err := resolve.File(f, predeclared, starlark.Universe.Has); err != nil {
		return nil, lines.explained(err)
	}
	if id := reserved(f); id != nil {
		return nil, refuse(id, "names that begin with _ and a name of this compiler (_t1, _result, _code1) are taken; rename %s", id.Name)
	}
	c := &compiler{text: lines, bound: binds(f, childName), actions: map[string]string{}, workflows: map[string]string{}, loads: map[*syntax.Ident]bool{}, funcs: map[string]*syntax.DefStmt{}, effectful: map[string]bool{}, graph: &workflow.Graph{Format: workflow.Format}}
	for _, s := range f.Stmts {
		if err := c.declare(s); err != nil {
			return nil, err
		}
	}
	if c.entry == "" {
		return nil, &Error{Pos: syntax.MakePosition(&f.Path, 1, 1), Text: `there is no workflow: write workflow("name", run) below the function run`}
	}
	return c.finish(f.Stmts)
}

// finish compiles the declared statements.
func (c *compiler) finish(stmts []syntax.Stmt) (*workflow.Program, error) {
	if err := c.lower(stmts); err != nil {
		return nil, err
	}
	if err := c.graph.Check(); err != nil {
		return nil, err
	}
	return workflow.Prepare(c.graph)
}

var taken = regexp.MustCompile(`^_(t[0-9]+|result|call|code[0-9]+)$`)

// reserved returns a name in a file that the compiler reserves for itself.
func reserved(f *syntax.File) (found *syntax.Ident) {
	syntax.Walk(f, func(n syntax.Node) bool {
		if id, is := n.(*syntax.Ident); is && taken.MatchString(id.Name) {
			found = id
		}
		return found == nil
	})
	return found
}

// compiler compiles one file.
type compiler struct {
	text      text
	actions   map[string]string // their names, by variable
	workflows map[string]string // likewise
	bound     bool              // the file has a variable of the name child, so there is no builtin
	funcs     map[string]*syntax.DefStmt
	effectful map[string]bool // functions that call actions, directly or not
	reading   map[string]bool // other functions that read documents, directly or not
	// unresolved reports that the names of the file have no bindings, and boundGet that it gives something the name get.
	unresolved, boundGet bool
	loads                map[*syntax.Ident]bool
	entry                string
	graph                *workflow.Graph
	within               bool // the file is a program, whose workflows have further arguments
	// plainCalls reports that the graph calls plainFunc.
	plainCalls bool
}

func refuse(n syntax.Node, format string, args ...any) error {
	return &Error{Pos: syntax.Start(n), Text: fmt.Sprintf(format, args...)}
}

func (c *compiler) lower(stmts []syntax.Stmt) error {
	c.findEffectful()
	c.effectful[c.entry] = true
	c.findReading()
	for _, s := range stmts {
		if err := c.checkGet(s); err != nil {
			return err
		}
		if err := c.checkChild(s); err != nil {
			return err
		}
		if id := c.redefined(s); id != nil {
			return refuse(id, "%s is a builtin of workflows, and a function of that name must not call actions; rename it", id.Name)
		}
		if id := c.shadow(s); id != nil {
			return refuse(id, "%s is the name of an action, of a function with actions, or of a builtin of workflows; rename the variable", id.Name)
		}
		if err := c.checkUses(s); err != nil {
			return err
		}
	}
	if err := c.noRecursion(stmts); err != nil {
		return err
	}
	for _, s := range stmts {
		if err := c.keep(s); err != nil {
			return err
		}
	}
	if err := c.function(c.funcs[c.entry]); err != nil { // the first function
		return err
	}
	for _, s := range stmts {
		if def, is := s.(*syntax.DefStmt); is && c.effectful[def.Name.Name] && def.Name.Name != c.entry {
			if err := c.function(def); err != nil {
				return err
			}
		}
	}
	if c.plainCalls {
		read := []string{"f", "args", "kwargs"}
		f := workflow.Func{Name: plainFunc, Nodes: []workflow.Node{{Kind: workflow.Return, Code: &workflow.Code{Text: "f(*args, **kwargs)", Line: 1, Col: 1, Reads: read}}}}
		for _, name := range read {
			f.Params = append(f.Params, workflow.Param{Name: name})
		}
		c.graph.Funcs = append(c.graph.Funcs, f)
	}
	return nil
}

// declare adds the declarations of a top-level statement.
func (c *compiler) declare(s syntax.Stmt) error {
	switch s := s.(type) {
	case *syntax.LoadStmt:
		if s.ModuleName() != Actions {
			return refuse(s, "there is no module %q; actions are loaded from %q", s.ModuleName(), Actions)
		}
		for i := range s.To {
			if s.To[i].Name != s.From[i].Name {
				return refuse(s.To[i], "an action keeps its name: load(%q, %q)", Actions, s.From[i].Name)
			}
			c.actions[s.To[i].Name] = s.To[i].Name
			c.loads[s.To[i]] = true
		}
	case *syntax.DefStmt:
		c.funcs[s.Name.Name] = s
	case *syntax.AssignStmt:
		if id, action := actionOf(s); id != nil {
			c.actions[id.Name] = action
		}
		if id, call := workflowOf(s); id != nil {
			if err := c.workflow(call); err != nil {
				return err
			}
			c.workflows[id.Name] = c.graph.Name
		}
	case *syntax.ExprStmt:
		if call, name := callOf(s.X); name == "workflow" {
			return c.workflow(call)
		} else if lit, is := s.X.(*syntax.Literal); !is || lit.Token != syntax.STRING {
			return refuse(s, "a file declares: load, def, constants and workflow(...)")
		}
	default:
		return refuse(s, "a file declares: load, def, constants and workflow(...)")
	}
	return nil
}

const writeWorkflow = `write workflow("name", run), or workflow("name", run, deadline = "7d")`

// workflow handles workflow(name, run, deadline).
func (c *compiler) workflow(call *syntax.CallExpr) error {
	if c.entry != "" {
		return refuse(call, "a file has one workflow")
	}
	for i, arg := range call.Args {
		name := ""
		if named, is := arg.(*syntax.BinaryExpr); is && named.Op == syntax.EQ {
			name, arg = named.X.(*syntax.Ident).Name, named.Y
		}
		switch lit, isLit := arg.(*syntax.Literal); {
		case c.within && (name == "keep" || name == "keep_for"): // for the program
		case isLit && lit.Token == syntax.STRING && (name == "name" || name == "" && i == 0):
			c.graph.Name = lit.Value.(string)
		case name == "run" || name == "" && i == 1:
			if id, is := arg.(*syntax.Ident); is && c.funcs[id.Name] != nil {
				c.entry = id.Name
			} else {
				return refuse(arg, "the second argument of workflow is a function of this file, above it")
			}
		case name == "deadline":
			ms, err := duration(arg)
			if err != nil {
				return refuse(arg, "the deadline: %v", err)
			}
			c.graph.Deadline = ms
		default:
			return refuse(arg, writeWorkflow)
		}
	}
	if c.graph.Name == "" || c.entry == "" {
		return refuse(call, writeWorkflow)
	}
	return nil
}

// keep adds a statement without actions to the prelude.
func (c *compiler) keep(s syntax.Stmt) error {
	switch s := s.(type) {
	case *syntax.DefStmt:
		if c.effectful[s.Name.Name] {
			return nil
		}
	case *syntax.AssignStmt:
		if id, _ := actionOf(s); id != nil {
			return nil
		}
		if id, _ := workflowOf(s); id != nil {
			return nil
		}
		if n := c.effect(s); n != nil {
			return refuse(n, "an action can be called only in a function that the workflow runs")
		}
	default:
		return nil
	}
	start, _ := s.Span()
	c.graph.Prelude = append(c.graph.Prelude, workflow.Code{Text: c.text.node(s), Line: start.Line, Col: 1})
	return nil
}

// shadow returns a variable of a function that has the name of something that becomes a node.
func (c *compiler) shadow(s syntax.Stmt) (found *syntax.Ident) {
	if _, is := s.(*syntax.DefStmt); !is {
		return nil
	}
	syntax.Walk(s, func(n syntax.Node) bool {
		id, is := n.(*syntax.Ident)
		if !is || !c.isEffect(id.Name) {
			return found == nil
		}
		b, is := id.Binding.(*resolve.Binding)
		if is && !c.loads[b.First] && (b.Scope == resolve.Local || b.Scope == resolve.Cell || b.Scope == resolve.Free) {
			found = id
		}
		return found == nil
	})
	return found
}

// checkUses refuses what has no meaning in a workflow, or another one than in Python: an action that is a value, and an
// attribute that is set.
func (c *compiler) checkUses(s syntax.Stmt) (err error) {
	switch s.(type) {
	case *syntax.ExprStmt, *syntax.LoadStmt: // workflow("name", run) has a function as a value
		return nil
	}
	if assign, is := s.(*syntax.AssignStmt); is {
		if id, _ := actionOf(assign); id != nil {
			return nil
		}
		if id, _ := workflowOf(assign); id != nil {
			return nil
		}
	}
	called := map[*syntax.Ident]bool{}
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DefStmt:
			called[n.Name] = true
		case *syntax.CallExpr:
			if id, is := n.Fn.(*syntax.Ident); is {
				called[id] = true
			}
			if _, name := callOf(n); name == childName && !c.bound && len(n.Args) > 0 {
				if id, is := n.Args[0].(*syntax.Ident); is && c.workflows[id.Name] != "" {
					called[id] = true // child(shipping, ...)
				}
			}
		case *syntax.AssignStmt:
			if dot, is := n.LHS.(*syntax.DotExpr); is {
				err = refuse(dot, "an attribute cannot be set; keep what changes in a dict: d[%q] = ...", dot.Name.Name)
			}
		case *syntax.Ident:
			if n.Binding != nil && !called[n] && c.isEffect(n.Name) { // names of arguments and attributes have no binding
				err = refuse(n, "%s can be called, and is no value; call it where its result is needed, and choose between several with if", n.Name)
			}
		}
		return err == nil
	})
	return err
}

// noRecursion refuses functions that call themselves, directly or not: those with actions, and those that they call.
func (c *compiler) noRecursion(stmts []syntax.Stmt) (err error) {
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(name string)
	visit = func(name string) {
		state[name] = 1
		syntax.Walk(c.funcs[name], func(n syntax.Node) bool {
			call, to := callOf(n)
			switch {
			case call == nil || c.funcs[to] == nil || err != nil:
			case !c.effectful[to] && bindsInside(c.funcs[name], to): // a variable of that name
			case state[to] == 1:
				err = refuse(call, "function %s calls itself; use a loop", to)
			case state[to] == 0:
				visit(to)
			}
			return err == nil
		})
		state[name] = 2
	}
	for _, s := range stmts {
		if def, is := s.(*syntax.DefStmt); is && err == nil && c.effectful[def.Name.Name] && state[def.Name.Name] == 0 {
			visit(def.Name.Name)
		}
	}
	return err
}

// findEffectful finds the functions that call actions.
func (c *compiler) findEffectful() {
	for again := true; again; {
		again = false
		for name, def := range c.funcs { // any order: until nothing changes
			if !c.effectful[name] && c.effect(def) != nil {
				c.effectful[name], again = true, true
			}
		}
	}
}

// effect returns the first call in a tree that becomes a node of the graph, nil if there is none.
func (c *compiler) effect(n syntax.Node) (found syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if found != nil || n == nil {
			return false
		}
		if call, name := callOf(n); call != nil && c.isEffect(name) {
			found = n
		}
		return found == nil
	})
	return found
}

func (c *compiler) isEffect(name string) bool {
	return c.actions[name] != "" || c.workflows[name] != "" || c.effectful[name] || c.combines(name) && c.funcs[name] == nil
}

// combines reports whether a name is that of a combinator in this file.
func (c *compiler) combines(name string) bool {
	return combinators[name] && (name != childName || !c.bound)
}

// redefined returns the name that a statement of the file gives to something that would be taken for a combinator.
func (c *compiler) redefined(s syntax.Stmt) *syntax.Ident {
	switch s := s.(type) {
	case *syntax.DefStmt:
		if c.combines(s.Name.Name) && c.effectful[s.Name.Name] {
			return s.Name
		}
	case *syntax.AssignStmt:
		if id, is := s.LHS.(*syntax.Ident); is && c.combines(id.Name) {
			return id
		}
	}
	return nil
}

// registers returns the first call of compensate that a call of a function can come to, nil if there is none.
func (c *compiler) registers(name string, met map[string]bool) (found syntax.Node) {
	def := c.funcs[name]
	if def == nil || met[name] {
		return nil
	}
	met[name] = true
	syntax.Walk(def, func(n syntax.Node) bool {
		if call, callee := callOf(n); call != nil && found == nil {
			if found = c.registers(callee, met); callee == "compensate" && c.isEffect(callee) {
				found = call
			}
		}
		return found == nil
	})
	return found
}

// callOf returns the call that a node is, and the called name, if it is one.
func callOf(n syntax.Node) (*syntax.CallExpr, string) {
	if p, is := n.(*syntax.ParenExpr); is {
		return callOf(p.X)
	}
	call, is := n.(*syntax.CallExpr)
	if !is {
		return nil, ""
	}
	id, is := call.Fn.(*syntax.Ident)
	if !is {
		return call, ""
	}
	return call, id.Name
}

// text is a source text that can be sliced by position.
type text []string

func newText(src []byte) text { return strings.Split(string(src), "\n") }

// cut returns the text between two positions.
func (t text) cut(from, to syntax.Position) string {
	if from.Line == to.Line {
		r := []rune(t[from.Line-1])
		return string(r[from.Col-1 : to.Col-1])
	}
	lines := []string{string([]rune(t[from.Line-1])[from.Col-1:])}
	lines = append(lines, t[from.Line:to.Line-1]...)
	return strings.Join(append(lines, string([]rune(t[to.Line-1])[:to.Col-1])), "\n")
}

func (t text) node(n syntax.Node) string { return t.cut(syntax.Start(n), endOf(n)) }

// endOf returns the end of a node. Node.Span is wrong for nodes that end with an index.
func endOf(n syntax.Node) syntax.Position {
	behind := func(p syntax.Position) syntax.Position {
		p.Col++
		return p
	}
	switch n := n.(type) {
	case *syntax.IndexExpr:
		return behind(n.Rbrack)
	case *syntax.SliceExpr:
		return behind(n.Rbrack)
	case *syntax.BinaryExpr:
		return endOf(n.Y)
	case *syntax.UnaryExpr:
		if n.X != nil {
			return endOf(n.X)
		}
	case *syntax.CondExpr:
		return endOf(n.False)
	case *syntax.LambdaExpr:
		return endOf(n.Body)
	case *syntax.TupleExpr:
		if !n.Lparen.IsValid() && len(n.List) > 0 {
			return endOf(n.List[len(n.List)-1])
		}
	case *syntax.AssignStmt:
		return endOf(n.RHS)
	case *syntax.ExprStmt:
		return endOf(n.X)
	case *syntax.ReturnStmt:
		if n.Result != nil {
			return endOf(n.Result)
		}
	case *syntax.DefStmt:
		return endOf(n.Body[len(n.Body)-1])
	case *syntax.ForStmt:
		return endOf(n.Body[len(n.Body)-1])
	case *syntax.WhileStmt:
		return endOf(n.Body[len(n.Body)-1])
	case *syntax.IfStmt:
		if body := n.False; len(body) > 0 {
			return endOf(body[len(body)-1])
		}
		return endOf(n.True[len(n.True)-1])
	}
	_, end := n.Span()
	return end
}

// stmts returns statements of one suite as lines, each with the indentation of the first one.
func (t text) stmts(list []syntax.Stmt) string {
	var out []string
	line := int32(0)
	for _, s := range list {
		start, end := syntax.Start(s), endOf(s)
		first := []rune(t[start.Line-1])
		indent := string(first[:len(first)-len([]rune(strings.TrimLeft(string(first), " \t")))])
		if strings.TrimSpace(string(first[:start.Col-1])) != "" && indent == "" {
			indent = " "
		}
		for ; line > 0 && line < start.Line; line++ {
			out = append(out, "") // keeps the line numbers
		}
		what := t.cut(start, end)
		if rest, is := strings.CutPrefix(what, "elif"); is { // the tree has it as an if in an else
			what = "if  " + rest
		}
		if line > start.Line { // in the line of the one before
			out[len(out)-1] += "; " + what
		} else {
			out = append(out, indent+what)
		}
		line = end.Line + 1
	}
	return strings.Join(out, "\n")
}
