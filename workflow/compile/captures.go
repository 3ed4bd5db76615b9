package compile

import (
	"maps"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// In Starlark a lambda shares the variables that it uses with the function around it. In a graph each node has the values of
// its variables, so a lambda that outlives its node has those from when it was made. The two differ if a variable is assigned
// after that, so such a lambda is refused.

// assigned is a set of variables. The identity of a variable is the first identifier that is bound to it.
type assigned map[*syntax.Ident]bool

func (a assigned) and(list ...assigned) assigned {
	out := maps.Clone(a)
	for _, more := range list {
		maps.Copy(out, more)
	}
	return out
}

// targets adds the variables that an assignment to an expression sets.
func (a assigned) targets(lhs syntax.Expr) assigned {
	switch x := lhs.(type) {
	case *syntax.Ident:
		if b, is := x.Binding.(*resolve.Binding); is {
			a[b.First] = true
		}
	case *syntax.ParenExpr:
		a.targets(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			a.targets(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			a.targets(e)
		}
	}
	return a
}

// assignedIn returns the variables that statements may set.
func assignedIn(list ...syntax.Stmt) assigned {
	a := assigned{}
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.AssignStmt:
				a.targets(n.LHS)
			case *syntax.ForStmt:
				a.targets(n.Vars)
			case *syntax.DefStmt:
				a.targets(n.Name)
			}
			return true
		})
	}
	return a
}

// captures looks for a lambda of a function with actions that uses a variable which is assigned after the lambda is made.
type captures struct {
	c   *compiler
	err error
}

// checkCaptures refuses such a lambda.
func (c *compiler) checkCaptures(def *syntax.DefStmt) error {
	k := &captures{c: c}
	k.suite(def.Body, assigned{})
	return k.err
}

// suite looks into statements; later are the variables that are assigned after them.
func (k *captures) suite(list []syntax.Stmt, later assigned) {
	for i, s := range list {
		k.statement(s, later.and(assignedIn(list[i+1:]...)))
	}
}

func (k *captures) statement(s syntax.Stmt, later assigned) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		later = later.and(assignedIn(s))
		k.expression(s.LHS, later)
		k.expression(s.RHS, later)
	case *syntax.ExprStmt:
		k.expression(s.X, later)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			k.expression(s.Result, later)
		}
	case *syntax.IfStmt:
		k.expression(s.Cond, later.and(assignedIn(s)))
		k.suite(s.True, later)
		k.suite(s.False, later)
	case *syntax.ForStmt:
		later = later.and(assignedIn(s))
		k.expression(s.X, later)
		k.suite(s.Body, later)
	case *syntax.WhileStmt:
		later = later.and(assignedIn(s))
		k.expression(s.Cond, later)
		k.suite(s.Body, later)
	}
}

// expression looks into an expression; later are the variables that are assigned after it, or while it is evaluated.
func (k *captures) expression(x syntax.Node, later assigned) {
	syntax.Walk(x, func(n syntax.Node) bool {
		if k.err != nil {
			return false
		}
		switch n := n.(type) {
		case *syntax.LambdaExpr:
			k.lambda(n, later)
			return false
		case *syntax.CallExpr:
			k.call(n, later)
			return false
		case *syntax.Comprehension:
			if k.c.effect(n) == nil { // it is evaluated in one node
				return true
			}
			own := assigned{}
			for _, clause := range n.Clauses {
				if c, is := clause.(*syntax.ForClause); is {
					own.targets(c.Vars)
				}
			}
			inner := later.and(own)
			for _, clause := range n.Clauses {
				switch c := clause.(type) {
				case *syntax.ForClause:
					k.expression(c.X, inner)
				case *syntax.IfClause:
					k.expression(c.Cond, inner)
				}
			}
			k.expression(n.Body, inner)
			return false
		}
		return true
	})
}

// call looks into a call. A lambda that is called where it is made, or that orders a list, does not outlive its node.
func (k *captures) call(call *syntax.CallExpr, later assigned) {
	_, name := callOf(call)
	if fn, is := unparen(call.Fn).(*syntax.LambdaExpr); is {
		k.within(fn, later)
	} else {
		k.expression(call.Fn, later)
	}
	for i, arg := range call.Args {
		key := ""
		if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
			key, arg = b.X.(*syntax.Ident).Name, b.Y
		}
		fn, is := unparen(arg).(*syntax.LambdaExpr)
		switch {
		case is && name == "wait" && i == 0 && k.c.isEffect(name): // no variable is assigned while it waits
		case is && key == "key" && orders(call.Fn):
			k.within(fn, later)
		default:
			k.expression(arg, later)
		}
	}
}

// orders reports whether a called expression is a builtin of Starlark that takes a key.
func orders(fn syntax.Expr) bool {
	id, is := unparen(fn).(*syntax.Ident)
	if !is || id.Name != "sorted" && id.Name != "max" && id.Name != "min" || !starlark.Universe.Has(id.Name) {
		return false
	}
	b, is := id.Binding.(*resolve.Binding)
	return is && b.Scope == resolve.Universal
}

// within looks into a lambda that does not outlive its node.
func (k *captures) within(fn *syntax.LambdaExpr, later assigned) {
	k.defaults(fn, later)
	k.expression(fn.Body, later)
}

func (k *captures) defaults(fn *syntax.LambdaExpr, later assigned) {
	for _, p := range fn.Params {
		if b, is := p.(*syntax.BinaryExpr); is {
			k.expression(b.Y, later)
		}
	}
}

// lambda refuses a lambda that uses one of the variables.
func (k *captures) lambda(fn *syntax.LambdaExpr, later assigned) {
	k.defaults(fn, later)
	f, is := fn.Function.(*resolve.Function)
	if !is || k.err != nil {
		return
	}
	free := assigned{}
	for _, b := range f.FreeVars {
		free[b.First] = true
	}
	syntax.Walk(fn.Body, func(n syntax.Node) bool {
		id, is := n.(*syntax.Ident)
		if !is || k.err != nil {
			return k.err == nil
		}
		if b, is := id.Binding.(*resolve.Binding); is && free[b.First] && later[b.First] {
			k.err = refuse(id, "the lambda uses %s, which is assigned after the lambda is made (or in a loop around it), and a lambda of a function with actions has the values from when it is made; give it the value as a parameter: lambda %s = %s: ..., or keep what changes in a dict", id.Name, id.Name, id.Name)
		}
		return k.err == nil
	})
}
