package compile

import (
	"fmt"
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// Source is a workflow among the other declarations of a file.
type Source struct {
	Filename string
	Text     []byte
	// Name is the name of the workflow, Entry the function that it runs.
	Name, Entry string
	// Deadline is that of its runs in milliseconds, 0 for none.
	Deadline int64
	// Actions are the names of the actions, by variable.
	Actions map[string]string
	// Workflows are the names of the workflows that have a variable, by it.
	Workflows map[string]string
}

// Declared is a call workflow("name", run, deadline = ...) at the top of a file.
type Declared struct {
	Pos         syntax.Position
	Name, Entry string
	Deadline    int64 // in milliseconds, 0 for none
	// Variable is that of a statement x = workflow("name", run), "" if there is none.
	Variable string
}

// Declarations returns the workflows and the actions that a file declares: statements workflow("name", run), with or
// without a variable, and assignments x = action("name", ...), by variable.
func Declarations(f *syntax.File) (list []Declared, actions map[string]string, err error) {
	actions = map[string]string{}
	for _, s := range f.Stmts {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			if id, action := actionOf(s); id != nil {
				actions[id.Name] = action
			}
			if id, call := workflowOf(s); id != nil {
				d, err := declared(f, call)
				if err != nil {
					return nil, nil, err
				}
				d.Variable = id.Name
				list = append(list, d)
			}
		case *syntax.ExprStmt:
			if call, name := callOf(s.X); name == "workflow" {
				d, err := declared(f, call)
				if err != nil {
					return nil, nil, err
				}
				list = append(list, d)
			}
		}
	}
	return list, actions, nil
}

// actionOf returns the variable and the action of a statement x = action("name", ...), nil for any other.
func actionOf(s *syntax.AssignStmt) (*syntax.Ident, string) {
	id, isName := s.LHS.(*syntax.Ident)
	call, name := callOf(s.RHS)
	if !isName || name != "action" || len(call.Args) == 0 {
		return nil, ""
	}
	arg := call.Args[0]
	if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
		arg = b.Y
	}
	if lit, is := arg.(*syntax.Literal); is && lit.Token == syntax.STRING {
		return id, lit.Value.(string)
	}
	return nil, ""
}

func functionsOf(f *syntax.File) map[string]*syntax.DefStmt {
	all := map[string]*syntax.DefStmt{}
	for _, s := range f.Stmts {
		if def, is := s.(*syntax.DefStmt); is {
			all[def.Name.Name] = def
		}
	}
	return all
}

// Functions returns the functions of a file that only a workflow can execute: those that workflows run, and those
// that call actions or combinators, or read documents with get.
func Functions(f *syntax.File, list []Declared, actions map[string]string) []*syntax.DefStmt {
	c := &compiler{funcs: functionsOf(f), actions: actions, workflows: Variables(list), bound: binds(f, childName), effectful: map[string]bool{}, unresolved: true, boundGet: binds(f, getName)}
	c.findEffectful()
	for _, d := range list {
		c.effectful[d.Entry] = true
	}
	c.findReading()
	var out []*syntax.DefStmt
	for _, s := range f.Stmts {
		if def, is := s.(*syntax.DefStmt); is && (c.effectful[def.Name.Name] || c.reading[def.Name.Name]) {
			out = append(out, def)
		}
	}
	return out
}

// Within compiles a workflow of a file that declares other things, too. It takes from the file what the
// entry function uses: functions and constants.
func Within(src Source) (*workflow.Graph, error) {
	options := workflow.Dialect()
	options.TopLevelControl = true
	lines := newText(src.Text)
	f, err := options.Parse(src.Filename, src.Text, 0)
	if err != nil {
		return nil, lines.explained(err)
	}
	ofProgram := func(name string) bool { return !starlark.Universe.Has(name) }
	if err := resolve.File(f, ofProgram, starlark.Universe.Has); err != nil {
		return nil, err
	}
	c := &compiler{
		text: lines, actions: src.Actions, workflows: src.Workflows, bound: binds(f, childName), funcs: map[string]*syntax.DefStmt{}, effectful: map[string]bool{}, entry: src.Entry,
		graph: &workflow.Graph{Format: workflow.Format, Name: src.Name, Deadline: src.Deadline},
	}
	w := within{c: c, top: map[string]syntax.Stmt{}, loaded: map[*syntax.Ident]string{}, used: map[syntax.Stmt]bool{}}
	w.index(f)
	entry, is := w.top[src.Entry].(*syntax.DefStmt)
	if !is {
		return nil, &Error{Pos: syntax.MakePosition(&f.Path, 1, 1), Text: "workflow " + src.Name + ": the file has no function " + src.Entry}
	}
	if err := w.use(entry); err != nil {
		return nil, err
	}
	var stmts []syntax.Stmt
	for _, s := range f.Stmts {
		if !w.used[s] {
			continue
		}
		stmts = append(stmts, s)
		if def, is := s.(*syntax.DefStmt); is {
			c.funcs[def.Name.Name] = def
		}
		if id := reserved(&syntax.File{Stmts: []syntax.Stmt{s}}); id != nil {
			return nil, refuse(id, "names that begin with _ and a name of this compiler (_t1, _result, _code1) are taken; rename %s", id.Name)
		}
	}
	p, err := c.finish(stmts)
	if err != nil {
		return nil, err
	}
	return p.Graph, nil
}

// within finds what a workflow uses of its file.
type within struct {
	c      *compiler
	top    map[string]syntax.Stmt   // the statement that defines a global
	loaded map[*syntax.Ident]string // names from other files
	used   map[syntax.Stmt]bool
}

func (w *within) index(f *syntax.File) {
	v := &variables{all: names{}}
	for _, s := range f.Stmts {
		switch s := s.(type) {
		case *syntax.DefStmt:
			w.top[s.Name.Name] = s
		case *syntax.AssignStmt:
			for _, name := range v.targets(s.LHS) {
				w.top[name] = s
			}
		case *syntax.LoadStmt:
			for _, id := range s.To {
				w.loaded[id] = s.ModuleName()
			}
		}
	}
}

// use adds a statement, and what it refers to.
func (w *within) use(s syntax.Stmt) (err error) {
	if w.used[s] {
		return nil
	}
	w.used[s] = true
	syntax.Walk(s, func(n syntax.Node) bool {
		if id, is := n.(*syntax.Ident); is && err == nil {
			err = w.name(id)
		}
		return err == nil
	})
	return err
}

func (w *within) name(id *syntax.Ident) error {
	b, is := id.Binding.(*resolve.Binding)
	if !is || w.c.actions[id.Name] != "" || w.c.workflows[id.Name] != "" {
		return nil
	}
	if from := w.loaded[b.First]; from != "" {
		return refuse(id, "%s is of file %q; a workflow uses functions, constants and actions of its own file: define it here", id.Name, from)
	}
	switch b.Scope {
	case resolve.Global:
		if s := w.top[id.Name]; s != nil {
			if doc, is := cellDocument(s); is {
				return refuse(id, `%s is a document, which a workflow reads in the condition of a wait: wait(lambda: get(%q)); or a handler starts the workflow with what it has read as an argument`, id.Name, doc)
			}
			return w.use(s)
		}
		return refuse(id, "%s is set by a statement that a workflow does not execute; set it at the top of the file, without if or for", id.Name)
	case resolve.Predeclared:
		if !combinators[id.Name] && !workflow.Builtins().Has(id.Name) {
			return refuse(id, "%s is not available in a workflow, which has only its arguments and the results of actions; available are the builtins of Starlark, %s%s", id.Name, available(), declareAction(id.Name))
		}
	}
	return nil
}

// cellDocument returns the name of the document of a statement x = cell("name", ...) or doc("name", ...).
func cellDocument(s syntax.Stmt) (string, bool) {
	assign, is := s.(*syntax.AssignStmt)
	if !is {
		return "", false
	}
	call, name := callOf(assign.RHS)
	if call == nil || name != "cell" && name != "doc" || len(call.Args) == 0 {
		return "", false
	}
	lit, is := call.Args[0].(*syntax.Literal)
	if !is || lit.Token != syntax.STRING {
		return "", false
	}
	return lit.Value.(string), true
}

// ofPrograms are builtins of programs and modules of Starlark, which are no actions that lack a declaration.
var ofPrograms = []string{"time", "random", "now", "cell", "doc", "send", "space", "event", "log", "timer", "set_timer", "task", "start_task", "start_workflow", "rfc3339", "time_of", "duration"}

// declareAction says how a name is declared as an action.
func declareAction(name string) string {
	if slices.Contains(ofPrograms, name) {
		return ""
	}
	return fmt.Sprintf("; an action is declared at the top of the file: %s = action(%q)", name, name)
}

// available lists the names beside those of Starlark.
func available() string {
	list := append(workflow.Builtins().Keys(), Combinators()...)
	list = slices.DeleteFunc(list, func(name string) bool { return name == "workflow" })
	slices.Sort(list)
	text := list[0]
	for _, name := range list[1 : len(list)-1] {
		text += ", " + name
	}
	return text + " and " + list[len(list)-1]
}
