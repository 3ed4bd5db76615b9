package compile

import (
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// The calls of actions in an expression become nodes of their own, in the order in which the interpreter makes them, and the
// rest is one expression over their results. What the interpreter evaluates before a call is evaluated in a node before it,
// since a function that is called can change a list; a name or a literal stays where it is. What it may not evaluate (the
// right side of and, one side of a conditional expression) is behind a branch.

// piece is an expression without calls of actions.
type piece struct {
	text  string
	reads []string
}

func (l *lowering) variable(name string) piece { return piece{name, []string{name}} }

// code returns the code of a piece.
func (p piece) code(at syntax.Position) *workflow.Code {
	return &workflow.Code{Text: p.text, Line: at.Line, Col: at.Col, Reads: p.reads}
}

func union(list, more []string) []string {
	for _, name := range more {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// flat lowers the calls in an expression, and returns the rest.
func (l *lowering) flat(x syntax.Expr) piece {
	found := l.c.effect(x)
	if found == nil {
		return piece{l.c.text.node(x), l.reads(x, nil)}
	}
	if l.fixed != "" {
		l.refuse(found, "%s", l.fixed)
		return piece{text: "None"}
	}
	switch x := x.(type) {
	case *syntax.ParenExpr:
		return l.compose(x, x.X)
	case *syntax.CallExpr:
		return l.flatCall(x)
	case *syntax.BinaryExpr:
		if (x.Op == syntax.AND || x.Op == syntax.OR) && l.c.effect(x.Y) != nil {
			return l.shortCircuit(x)
		}
		return l.compose(x, x.X, x.Y)
	case *syntax.UnaryExpr:
		return l.compose(x, x.X)
	case *syntax.CondExpr:
		return l.choice(x)
	case *syntax.DotExpr:
		return l.compose(x, x.X)
	case *syntax.IndexExpr:
		return l.compose(x, x.X, x.Y)
	case *syntax.SliceExpr:
		return l.compose(x, slices.DeleteFunc([]syntax.Expr{x.X, x.Lo, x.Hi, x.Step}, func(e syntax.Expr) bool { return e == nil })...)
	case *syntax.TupleExpr:
		return l.compose(x, x.List...)
	case *syntax.ListExpr:
		return l.compose(x, x.List...)
	case *syntax.DictExpr:
		return l.dict(x)
	case *syntax.Comprehension:
		return l.variable(l.comprehension(x))
	case *syntax.LambdaExpr:
		l.refuse(found, "a lambda calls no actions; define a function, and call it where its result is needed")
	default:
		l.refuse(found, "an action cannot be called here; give its result to a variable first")
	}
	return piece{text: "None"}
}

// compose returns an expression with its parts, in the order in which they are evaluated and stand in the text, lowered.
func (l *lowering) compose(x syntax.Expr, parts ...syntax.Expr) piece {
	return l.joined(x, parts, l.parted(parts))
}

// joined returns the text of an expression with pieces in place of its parts. It has as many lines as before.
func (l *lowering) joined(x syntax.Expr, parts []syntax.Expr, pieces []piece) (out piece) {
	var b strings.Builder
	from := syntax.Start(x)
	for i, part := range parts {
		start, end := syntax.Start(part), endOf(part)
		b.WriteString(l.c.text.cut(from, start))
		b.WriteString(pieces[i].text)
		b.WriteString(strings.Repeat("\n", max(int(end.Line-start.Line)-strings.Count(pieces[i].text, "\n"), 0)))
		out.reads, from = union(out.reads, pieces[i].reads), end
	}
	b.WriteString(l.c.text.cut(from, endOf(x)))
	out.text = b.String()
	return out
}

// parted lowers expressions that are evaluated one after the other.
func (l *lowering) parted(parts []syntax.Expr) []piece {
	var out []piece
	for i, x := range parts {
		p := l.flat(x)
		if l.later > 0 || slices.ContainsFunc(parts[i+1:], func(y syntax.Expr) bool { return l.c.effect(y) != nil }) {
			p = l.stored(x, p)
		}
		out = append(out, p)
	}
	return out
}

// stored returns a piece whose value does not depend on when it is evaluated. Unless that is so already, it is evaluated now.
func (l *lowering) stored(x syntax.Expr, p piece) piece {
	if stable(x) || taken.MatchString(p.text) {
		return p
	}
	name := l.temp()
	l.keepIn(name, p, syntax.Start(x))
	return l.variable(name)
}

// stable reports whether an expression has the same value at any time in the evaluation of the one around it, and never
// fails: a name, a literal, or a lambda, which could not be kept while the run waits.
func stable(x syntax.Expr) bool {
	switch x := unparen(x).(type) {
	case *syntax.Ident, *syntax.Literal:
		return true
	case *syntax.UnaryExpr: // -1
		lit, is := x.X.(*syntax.Literal)
		return is && x.Op == syntax.MINUS && lit.Token != syntax.STRING
	case *syntax.LambdaExpr:
		return !slices.ContainsFunc(x.Params, func(p syntax.Expr) bool {
			b, is := p.(*syntax.BinaryExpr)
			return is && !stable(b.Y)
		})
	}
	return false
}

// keepIn adds a node that gives a variable of this compiler the value of a piece.
func (l *lowering) keepIn(name string, p piece, at syntax.Position) {
	l.do(" "+name+" = ("+p.text+")", at, p.reads, []string{name})
}

// flatCall lowers a call in an expression.
func (l *lowering) flatCall(x *syntax.CallExpr) piece {
	if _, name := callOf(x); l.c.isEffect(name) {
		return l.variable(l.resultOf(x))
	}
	values := valuesOf(x.Args)
	fn := l.callee(x.Fn, slices.ContainsFunc(values, func(y syntax.Expr) bool { return l.c.effect(y) != nil }))
	return l.joined(x, append([]syntax.Expr{x.Fn}, values...), append([]piece{fn}, l.parted(values)...))
}

// dict lowers a dict, entry by entry: the interpreter evaluates a value before it refuses its key, and refuses a key before it evaluates the
// next one.
func (l *lowering) dict(x *syntax.DictExpr) piece {
	name := l.temp()
	l.keepIn(name, piece{text: "{}"}, syntax.Start(x))
	for _, e := range x.List {
		entry := e.(*syntax.DictEntry)
		p := l.parted([]syntax.Expr{entry.Key, entry.Value})
		key, value := l.stored(entry.Key, p[0]), p[1]
		twice := "{" + key.text + ": None, " + key.text + ": None}" // which is an error
		l.do(" "+name+"["+key.text+"] = [("+value.text+"), None if "+key.text+" not in "+name+" else "+twice+"][0]", syntax.Start(entry), union(union([]string{name}, key.reads), value.reads), nil)
	}
	return l.variable(name)
}

// resultOf lowers a call of an action or a combinator, and returns the variable that has its result.
func (l *lowering) resultOf(x syntax.Expr) string {
	at, name := syntax.Start(x), l.temp()
	l.effect(x, &workflow.Code{Text: " " + name + " = " + workflow.ResultName, Line: at.Line, Col: 1, Reads: []string{workflow.ResultName}, Writes: []string{name}})
	l.known[name] = true
	return name
}

// valuesOf returns the expressions of arguments, without names and stars.
func valuesOf(args []syntax.Expr) []syntax.Expr {
	var list []syntax.Expr
	for _, arg := range args {
		switch x := arg.(type) {
		case *syntax.BinaryExpr:
			if x.Op == syntax.EQ {
				arg = x.Y
			}
		case *syntax.UnaryExpr:
			if x.Op == syntax.STAR || x.Op == syntax.STARSTAR {
				arg = x.X
			}
		}
		list = append(list, arg)
	}
	return list
}

// callee lowers what is called. Before calls in its arguments it is evaluated; a method is looked up, since it cannot be kept.
func (l *lowering) callee(fn syntax.Expr, before bool) piece {
	before = before || l.later > 0
	dot, is := unparen(fn).(*syntax.DotExpr)
	switch {
	case !before:
		return l.flat(fn)
	case !is:
		return l.stored(fn, l.flat(fn))
	}
	object := l.stored(dot.X, l.flat(dot.X))
	p := piece{"(" + object.text + ")." + dot.Name.Name, object.reads}
	l.do(" "+p.text, syntax.Start(fn), p.reads, nil)
	return p
}

// shortCircuit lowers and, or whose right side calls actions.
func (l *lowering) shortCircuit(x *syntax.BinaryExpr) piece {
	name := l.temp()
	l.keepIn(name, l.flat(x.X), syntax.Start(x))
	way := 0
	if x.Op == syntax.OR {
		way = 1
	}
	b := l.branch(l.variable(name).code(x.OpPos), x.OpPos)
	before := l.known.clone()
	l.open = []dangling{{b, way}}
	l.keepIn(name, l.flat(x.Y), syntax.Start(x.Y))
	l.meet(append(l.open, dangling{b, 1 - way}), []names{l.known, before}, x.OpPos)
	return l.variable(name)
}

// choice lowers a conditional expression.
func (l *lowering) choice(x *syntax.CondExpr) piece {
	cond := l.flat(x.Cond)
	sides := []syntax.Expr{x.True, x.False}
	if l.c.effect(x.True) == nil && l.c.effect(x.False) == nil {
		return l.joined(x, []syntax.Expr{x.True, x.Cond, x.False}, []piece{l.flat(x.True), cond, l.flat(x.False)})
	}
	name := l.temp()
	b := l.branch(cond.code(x.If), x.If)
	before := l.known.clone()
	var open []dangling
	var known []names
	for i, side := range sides {
		l.open, l.known = []dangling{{b, i}}, before.clone()
		l.keepIn(name, l.flat(side), syntax.Start(side))
		open, known = append(open, l.open...), append(known, l.known)
	}
	l.meet(open, known, x.If)
	return l.variable(name)
}

// branch adds a branch, and returns its node.
func (l *lowering) branch(cond *workflow.Code, at syntax.Position) int {
	return l.add(workflow.Node{Kind: workflow.Branch, Code: cond, Edges: []workflow.Edge{{Kind: workflow.Forward, When: "true"}, {Kind: workflow.Forward, When: "false"}}}, at)
}

// inner reports whether something inside of a call of an action calls another one: in its arguments, or in those of the call
// that a combinator is around.
func (l *lowering) inner(x syntax.Expr) bool {
	call, name := callOf(x)
	if call == nil {
		return l.c.effect(x) != nil
	}
	args := call.Args
	if (name == "retry" || name == "timeout") && len(args) > 0 {
		return l.inner(args[0])
	}
	return slices.ContainsFunc(append(valuesOf(args), call.Fn), func(y syntax.Expr) bool { return l.c.effect(y) != nil })
}
