package compile

import (
	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// childName is the builtin that starts a run of another workflow. A file with a variable of that name does not have the
// builtin: programs from before there was one keep their meaning.
const childName = "child"

// single returns the node of one call.
func single(c workflow.Call, into *workflow.Code) workflow.Node {
	n := workflow.Node{Kind: workflow.Action, Into: into, Calls: []workflow.Call{c}}
	if c.Child != "" {
		n.Kind = workflow.Child
	}
	return n
}

// workflowOf returns the variable and the call of a statement x = workflow("name", run), nil for any other.
func workflowOf(s *syntax.AssignStmt) (*syntax.Ident, *syntax.CallExpr) {
	id, isName := s.LHS.(*syntax.Ident)
	call, name := callOf(s.RHS)
	if !isName || name != "workflow" || s.Op != syntax.EQ {
		return nil, nil
	}
	return id, call
}

func declared(f *syntax.File, call *syntax.CallExpr) (Declared, error) {
	c := &compiler{within: true, funcs: functionsOf(f), graph: &workflow.Graph{}}
	err := c.workflow(call)
	return Declared{Pos: syntax.Start(call), Name: c.graph.Name, Entry: c.entry, Deadline: c.graph.Deadline}, err
}

// Variables returns the names of those workflows that have a variable, by it.
func Variables(list []Declared) map[string]string {
	all := map[string]string{}
	for _, d := range list {
		if d.Variable != "" {
			all[d.Variable] = d.Name
		}
	}
	return all
}

// bindsInside reports whether a function gives a variable, a parameter or a function inside of it a name.
func bindsInside(def *syntax.DefStmt, name string) bool {
	own := *def
	own.Name = &syntax.Ident{Name: "_"}
	return binds(&own, name)
}

// binds reports whether a file, or a part of one, gives a variable, a parameter or a function a name.
func binds(f syntax.Node, name string) (found bool) {
	v := &variables{}
	check := func(targets ...syntax.Expr) {
		for _, x := range targets {
			if b, is := x.(*syntax.BinaryExpr); is { // a parameter with a default
				x = b.X
			}
			if u, is := x.(*syntax.UnaryExpr); is && u.X != nil { // *args
				x = u.X
			}
			for _, own := range v.targets(x) {
				found = found || own == name
			}
		}
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DefStmt:
			check(n.Name)
			check(n.Params...)
		case *syntax.LambdaExpr:
			check(n.Params...)
		case *syntax.AssignStmt:
			check(n.LHS)
		case *syntax.ForStmt:
			check(n.Vars)
		case *syntax.ForClause:
			check(n.Vars)
		case *syntax.LoadStmt:
			for _, id := range n.To {
				check(id)
			}
		}
		return !found
	})
	return found
}

// checkChild refuses the builtin in a file that has a variable of its name.
func (c *compiler) checkChild(s syntax.Stmt) (err error) {
	syntax.Walk(s, func(n syntax.Node) bool {
		id, is := n.(*syntax.Ident)
		if !is || err != nil || id.Name != childName || !c.bound {
			return err == nil
		}
		if b, is := id.Binding.(*resolve.Binding); is && b.Scope == resolve.Predeclared {
			err = refuse(id, "%s is a variable elsewhere in this file; rename that one, to start runs of other workflows with %s", childName, childName)
		}
		return err == nil
	})
	return err
}

const writeChild = `write child("workflow", {"argument": value}), and id = "..." or space = "..." if they matter`

// child lowers child(workflow, args, id, space).
func (l *lowering) child(call *syntax.CallExpr, name string) (out workflow.Call) {
	if name != childName {
		l.refuse(call, "%s is a workflow: write child(%s, {...})", name, name)
		return out
	}
	if len(call.Args) > 0 {
		switch x := call.Args[0].(type) {
		case *syntax.Literal:
			out.Child, _ = x.Value.(string)
		case *syntax.Ident:
			out.Child = l.c.workflows[x.Name]
		}
	}
	if out.Child == "" {
		l.refuse(call, `child takes the name of a workflow first, written out, or the variable of one: child("shipping", {...})`)
		return out
	}
	rest := &syntax.CallExpr{Fn: call.Fn, Lparen: call.Lparen, Rparen: call.Rparen}
	id, args := false, false
	for _, arg := range call.Args[1:] {
		b, is := arg.(*syntax.BinaryExpr)
		switch {
		case (!is || b.Op != syntax.EQ) && !args:
			args = true
		case is && b.Op == syntax.EQ && b.X.(*syntax.Ident).Name == "args" && !args:
			arg, args = b.Y, true
		case is && b.Op == syntax.EQ && b.X.(*syntax.Ident).Name == "id":
			id = true
		case is && b.Op == syntax.EQ && b.X.(*syntax.Ident).Name == "space":
			out.Away = true
		default:
			l.refuse(arg, writeChild)
			return out
		}
		if list, is := arg.(*syntax.ListExpr); is {
			l.refuse(list, writeChild)
			return out
		}
		rest.Args = append(rest.Args, arg)
	}
	if out.Args = l.arguments(rest); id {
		if l.named == nil {
			l.named = map[*workflow.Code]bool{}
		}
		l.named[out.Args] = true
	}
	return out
}
