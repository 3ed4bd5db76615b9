package compile

import (
	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// getName is the builtin that reads a document. It has a meaning in the condition of a wait, and in functions that conditions
// call.
const getName = "get"

// isGet reports whether a name is the builtin, and not a variable of the file.
func (c *compiler) isGet(id *syntax.Ident) bool {
	if b, is := id.Binding.(*resolve.Binding); is {
		return id.Name == getName && b.Scope == resolve.Predeclared
	}
	return id.Name == getName && c.unresolved && !c.boundGet
}

// isReading reports whether a name is that of a function that reads documents.
func (c *compiler) isReading(id *syntax.Ident) bool {
	return c.reading[id.Name] && (c.unresolved || isGlobal(id))
}

func isGlobal(id *syntax.Ident) bool {
	b, is := id.Binding.(*resolve.Binding)
	return is && b.Scope == resolve.Global
}

// findReading finds the functions without actions that read documents, directly or not.
func (c *compiler) findReading() {
	c.reading = map[string]bool{}
	for again := true; again; {
		again = false
		for name, def := range c.funcs { // any order: until nothing changes
			if !c.reading[name] && !c.effectful[name] && c.reads(def, nil) != nil {
				c.reading[name], again = true, true
			}
		}
	}
}

// reads returns the first place in a tree that reads a document, nil if there is none. It does not look into nodes for
// which skip is true.
func (c *compiler) reads(n syntax.Node, skip func(syntax.Node) bool) (found *syntax.Ident) {
	var visit func(n syntax.Node) bool
	visit = func(n syntax.Node) bool {
		if n == nil || found != nil || skip != nil && skip(n) {
			return false
		}
		switch n := n.(type) {
		case *syntax.Ident:
			if c.isGet(n) || c.isReading(n) {
				found = n
			}
		case *syntax.DefStmt:
			for _, p := range n.Params {
				syntax.Walk(p, visit)
			}
			for _, s := range n.Body {
				syntax.Walk(s, visit)
			}
			return false
		case *syntax.DotExpr: // the name of an attribute is no variable
			syntax.Walk(n.X, visit)
			return false
		case *syntax.CallExpr: // nor is that of an argument
			syntax.Walk(n.Fn, visit)
			for _, arg := range n.Args {
				if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
					arg = b.Y
				}
				syntax.Walk(arg, visit)
			}
			return false
		}
		return found == nil
	}
	syntax.Walk(n, visit)
	return found
}

// checkGet refuses reads of documents where there are none: a run is a function of its inputs, and what a condition has seen
// is one.
func (c *compiler) checkGet(s syntax.Stmt) error {
	if def, is := s.(*syntax.DefStmt); is && !c.effectful[def.Name.Name] {
		return nil
	}
	conditions := map[syntax.Node]bool{}
	syntax.Walk(s, func(n syntax.Node) bool {
		if call, name := callOf(n); call != nil && name == "wait" && c.isEffect(name) && len(call.Args) > 0 {
			conditions[call.Args[0]] = true
		}
		return true
	})
	id := c.reads(s, func(n syntax.Node) bool { return conditions[n] })
	if id == nil {
		return nil
	}
	return refuse(id, `%s reads documents, which only the condition of a wait can: value = wait(lambda: get("order", "approved")); a handler can pass values as arguments, too`, id.Name)
}

// condition returns the condition of a wait, nil if its first argument is the name of a signal.
func (l *lowering) condition(arg syntax.Expr) *workflow.Code {
	switch x := unparen(arg).(type) {
	case *syntax.LambdaExpr:
		if len(x.Params) > 0 {
			l.refuse(x, "the condition of a wait takes no arguments; it can use the variables of the function: wait(lambda: get(name))")
		}
		if n := l.c.effect(x.Body); n != nil {
			l.refuse(n, "the condition of a wait reads documents and calls no actions; call the action before, or after the wait")
		}
		return l.code(x.Body)
	case *syntax.Ident:
		if l.c.funcs[x.Name] == nil || !isGlobal(x) {
			return nil
		}
		code := l.code(x)
		code.Text = x.Name + "()"
		return code
	}
	return nil
}
