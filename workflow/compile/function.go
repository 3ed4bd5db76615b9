package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// lowering builds the nodes of one function.
type lowering struct {
	c     *compiler
	f     workflow.Func
	vars  *variables
	loops []*around
	// open are the edges to the next node; there are none if it cannot be reached.
	open  []dangling
	known names // the variables that have a value here
	temps int
	named map[*workflow.Code]bool // the arguments of children with an id
	// later is positive while expressions are lowered whose values must be those before calls that follow.
	later int
	// fixed is why no nodes can be added now, "" if they can.
	fixed string
	err   error
}

// dangling is an edge without a target yet.
type dangling struct{ node, edge int }

// around is the loop that is being lowered.
type around struct {
	head   int
	breaks []dangling
	known  []names // at its exits
}

func (c *compiler) function(def *syntax.DefStmt) error {
	if err := c.checkCaptures(def); err != nil {
		return err
	}
	l := &lowering{c: c, f: workflow.Func{Name: def.Name.Name}, vars: variablesOf(def), known: names{}}
	for _, p := range def.Params {
		if err := l.param(p); err != nil {
			return err
		}
	}
	l.open = []dangling{{-1, 0}} // the first node is the start
	l.suite(def.Body)
	if len(l.open) > 0 {
		l.result(&workflow.Code{Text: "None", Line: def.Def.Line, Col: 1}, def.Def)
	}
	if l.err != nil {
		return l.err
	}
	c.graph.Funcs = append(c.graph.Funcs, l.f)
	return nil
}

func (l *lowering) param(p syntax.Expr) error {
	switch p := p.(type) {
	case *syntax.Ident:
		l.f.Params = append(l.f.Params, workflow.Param{Name: p.Name})
		l.known[p.Name] = true
		return nil
	case *syntax.BinaryExpr:
		name := p.X.(*syntax.Ident).Name
		if n := l.c.effect(p.Y); n != nil {
			return refuse(n, "a default is no action")
		}
		l.f.Params = append(l.f.Params, workflow.Param{Name: name, Default: l.code(p.Y)})
		l.known[name] = true
		return nil
	}
	return refuse(p, "a function with actions has no * and no ** parameters; pass a list or a dict")
}

func (l *lowering) refuse(n syntax.Node, format string, args ...any) {
	if l.err == nil {
		l.err = refuse(n, format, args...)
	}
}

// add adds a node as the target of the open edges, and leaves its forward edge open.
func (l *lowering) add(n workflow.Node, at syntax.Position) int {
	n.Line, n.Col, n.Depth = at.Line, at.Col, len(l.loops)
	i := len(l.f.Nodes)
	l.f.Nodes = append(l.f.Nodes, n)
	l.join(l.open, i)
	l.open = nil
	return i
}

// join makes edges lead to a node.
func (l *lowering) join(open []dangling, to int) {
	for _, d := range open {
		if d.node >= 0 {
			l.f.Nodes[d.node].Edges[d.edge].To = to
		}
	}
}

// step adds a node with one edge, to the next node.
func (l *lowering) step(n workflow.Node, at syntax.Position) {
	n.Edges = []workflow.Edge{{Kind: workflow.Forward}}
	i := l.add(n, at)
	l.open = []dangling{{i, 0}}
}

// meet continues where alternatives meet.
func (l *lowering) meet(open []dangling, known []names, at syntax.Position) {
	l.open, l.known = open, meet(known)
	if len(open) > 1 {
		l.step(workflow.Node{Kind: workflow.Merge}, at)
	}
}

// suite lowers statements, as many as possible into one node.
func (l *lowering) suite(list []syntax.Stmt) {
	for len(list) > 0 && l.err == nil && len(l.open) > 0 { // nothing is reachable after a return
		n := 0
		for n < len(list) && l.isPlain(list[n]) {
			n++
		}
		if n > 0 {
			l.plain(list[:n])
			list = list[n:]
			continue
		}
		l.statement(list[0])
		list = list[1:]
	}
}

// isPlain reports whether a statement needs no node of its own: it calls no action, and transfers control only
// within itself.
func (l *lowering) isPlain(s syntax.Stmt) bool { return l.c.effect(s) == nil && !leaves(s, false) }

// leaves reports whether a statement may transfer control out of itself.
func leaves(s syntax.Stmt, inLoop bool) bool {
	anyOf := func(list []syntax.Stmt, in bool) bool {
		return slices.ContainsFunc(list, func(s syntax.Stmt) bool { return leaves(s, in) })
	}
	switch s := s.(type) {
	case *syntax.ReturnStmt:
		return true
	case *syntax.BranchStmt:
		return s.Token != syntax.PASS && !inLoop
	case *syntax.IfStmt:
		return anyOf(s.True, inLoop) || anyOf(s.False, inLoop)
	case *syntax.ForStmt:
		return anyOf(s.Body, true)
	case *syntax.WhileStmt:
		return anyOf(s.Body, true)
	}
	return false
}

const notWithin = "a function is not defined within one that calls actions; define it above"

func (l *lowering) plain(list []syntax.Stmt) {
	if all := slices.IndexFunc(list, func(s syntax.Stmt) bool { b, is := s.(*syntax.BranchStmt); return !is || b.Token != syntax.PASS }); all < 0 {
		return
	}
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			if def, is := n.(*syntax.DefStmt); is {
				l.refuse(def, notWithin)
			}
			return l.err == nil
		})
	}
	start := syntax.Start(list[0])
	code := &workflow.Code{Text: l.c.text.stmts(list), Line: start.Line, Col: 1}
	used, written := l.vars.in(list)
	after := l.vars.assigned(list, l.known)
	l.checkRead(list, written, l.known.clone())
	for _, name := range used {
		if l.known[name] {
			code.Reads = append(code.Reads, name)
		}
	}
	for _, name := range written {
		if after[name] {
			code.Writes = append(code.Writes, name)
		}
		l.vars.maybe[name] = true
	}
	l.step(workflow.Node{Kind: workflow.Do, Code: code}, start)
	l.known = after
}

// checkRead refuses statements that may read a variable without a value on some path. written are the variables that
// they set, and known those that have a value before; the result are those that have one after them.
func (l *lowering) checkRead(list []syntax.Stmt, written []string, known names) names {
	read := func(ids []*syntax.Ident) {
		for _, id := range ids {
			switch {
			case known[id.Name]:
			case l.vars.maybe[id.Name]: // and it is not passed to the code
				l.refuse(id, "variable %s may have no value here; give it one before the branches, or before the loop", id.Name)
			case !slices.Contains(written, id.Name):
				l.refuse(id, "variable %s has no value here", id.Name)
			}
		}
	}
	for _, s := range list {
		switch s := s.(type) {
		case *syntax.IfStmt:
			read(l.vars.reads(s.Cond))
			known = meet([]names{l.checkRead(s.True, written, known.clone()), l.checkRead(s.False, written, known.clone())})
		case *syntax.ForStmt:
			read(l.vars.reads(s.X))
			inner := known.clone()
			for _, name := range l.vars.targets(s.Vars) {
				inner[name] = true
			}
			l.checkRead(s.Body, written, inner)
		case *syntax.WhileStmt:
			read(l.vars.reads(s.Cond))
			l.checkRead(s.Body, written, known.clone())
		default:
			read(l.vars.reads(s))
			known = l.vars.assigned([]syntax.Stmt{s}, known)
		}
	}
	return known
}

// code returns the code of an expression, whose variables must have values.
func (l *lowering) code(x syntax.Expr) *workflow.Code {
	start := syntax.Start(x)
	return &workflow.Code{Text: l.c.text.node(x), Line: start.Line, Col: start.Col, Reads: l.reads(x, nil)}
}

// reads returns the variables of an expression; own are variables with values inside it.
func (l *lowering) reads(x syntax.Node, own []string) (list []string) {
	for _, id := range l.vars.reads(x) {
		if !l.known[id.Name] && !slices.Contains(own, id.Name) {
			l.refuse(id, "variable %s may have no value here; give it one before", id.Name)
		}
		if !slices.Contains(list, id.Name) {
			list = append(list, id.Name)
		}
	}
	return list
}

func (l *lowering) statement(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.ExprStmt:
		if l.isCall(s.X) {
			l.effect(s.X, nil)
			return
		}
		p := l.flat(s.X)
		l.do(" ("+p.text+")", syntax.Start(s), p.reads, nil)
	case *syntax.AssignStmt:
		l.assignment(s)
	case *syntax.IfStmt:
		l.conditional(s)
	case *syntax.ForStmt:
		l.forLoop(s)
	case *syntax.WhileStmt:
		l.whileLoop(s)
	case *syntax.ReturnStmt:
		if s.Result == nil {
			l.result(&workflow.Code{Text: "None", Line: s.Return.Line, Col: 1}, s.Return)
			return
		}
		x := l.value(s.Result)
		l.result(x, s.Return)
	case *syntax.BranchStmt:
		l.jump(s)
	case *syntax.DefStmt:
		l.refuse(s, notWithin)
	default:
		l.refuse(s, "this statement cannot stand in a function that calls actions")
	}
}

func (l *lowering) result(x *workflow.Code, at syntax.Position) {
	l.add(workflow.Node{Kind: workflow.Return, Code: x}, at)
}

// value returns the code of an expression. The calls of actions in it are lowered first.
func (l *lowering) value(x syntax.Expr) *workflow.Code {
	if l.c.effect(x) == nil {
		return l.code(x)
	}
	at := syntax.Start(x)
	switch x := unparen(x).(type) {
	case *syntax.Comprehension:
		list := l.comprehension(x)
		return &workflow.Code{Text: list, Line: at.Line, Col: at.Col, Reads: []string{list}}
	case *syntax.UnaryExpr:
		if x.Op == syntax.NOT {
			code := l.value(x.X)
			code.Text = "not (" + code.Text + ")"
			return code
		}
	}
	return l.flat(unparen(x)).code(at)
}

// isCall reports whether an expression is the call of an action or a combinator.
func (l *lowering) isCall(x syntax.Expr) bool {
	call, name := callOf(x)
	return call != nil && l.c.isEffect(name)
}

func (l *lowering) temp() string {
	l.temps++
	return fmt.Sprintf("_t%d", l.temps)
}

func (l *lowering) assignment(s *syntax.AssignStmt) {
	if n := l.c.effect(s.LHS); n != nil {
		l.refuse(n, "an action is called in a statement of its own, before")
		return
	}
	into := l.into(s)
	if comp, is := unparen(s.RHS).(*syntax.Comprehension); is {
		list := l.comprehension(comp)
		l.step(workflow.Node{Kind: workflow.Do, Code: resultIs(into, l.variable(list))}, syntax.Start(comp))
	} else if l.isCall(s.RHS) {
		l.effect(s.RHS, into)
	} else {
		p := l.flat(s.RHS)
		p.text = "(" + p.text + ")"
		l.step(workflow.Node{Kind: workflow.Do, Code: resultIs(into, p)}, syntax.Start(s.RHS))
	}
	for _, name := range l.vars.targets(s.LHS) {
		l.known[name], l.vars.maybe[name] = true, true
	}
}

// unparen returns an expression without the parentheses around it.
func unparen(x syntax.Expr) syntax.Expr {
	for p, is := x.(*syntax.ParenExpr); is; p, is = x.(*syntax.ParenExpr) {
		x = p.X
	}
	return x
}

// resultIs returns the code that assigns the result, with an expression in place of the result.
func resultIs(into *workflow.Code, p piece) *workflow.Code {
	into.Text = strings.Replace(into.Text, workflow.ResultName, p.text, 1)
	into.Reads = union(slices.DeleteFunc(into.Reads, func(n string) bool { return n == workflow.ResultName }), p.reads)
	return into
}

// into returns the code that assigns the result to the target of a statement. What the interpreter evaluates before
// the right side of d[k] += f() is evaluated in a node before.
func (l *lowering) into(s *syntax.AssignStmt) *workflow.Code {
	lhs := unparen(s.LHS)
	index, is := lhs.(*syntax.IndexExpr)
	if s.Op == syntax.EQ || !is {
		if s.Op != syntax.EQ {
			l.reads(s.LHS, nil)
		}
		return l.target(s.LHS, s.Op)
	}
	at := syntax.Start(lhs)
	object, key, old := l.temp(), l.temp(), l.temp()
	temps := []string{object, key, old}
	l.step(workflow.Node{Kind: workflow.Do, Code: &workflow.Code{
		Text: fmt.Sprintf(" %s = %s; %s = %s; %s = %s[%s]", object, l.c.text.node(index.X), key, l.c.text.node(index.Y), old, object, key),
		Line: at.Line, Col: 1, Reads: l.reads(lhs, nil), Writes: temps,
	}}, at)
	for _, name := range temps {
		l.known[name] = true
	}
	return &workflow.Code{
		Text: fmt.Sprintf(" %s %s %s; %s[%s] = %s", old, s.Op, workflow.ResultName, object, key, old), Line: at.Line, Col: 1,
		Reads: append(temps, workflow.ResultName),
	}
}

// mayAssign notes the variables that the body of a loop sets: each iteration but the first can read them.
func (l *lowering) mayAssign(body []syntax.Stmt) {
	for _, s := range body {
		for _, name := range l.vars.writes(s) {
			l.vars.maybe[name] = true
		}
	}
}

// target returns the code that assigns a result.
func (l *lowering) target(lhs syntax.Expr, op syntax.Token) *workflow.Code {
	at := syntax.Start(lhs)
	code := &workflow.Code{Text: " " + l.c.text.node(lhs) + " " + op.String() + " " + workflow.ResultName, Line: at.Line, Col: 1, Reads: []string{workflow.ResultName}}
	own := l.vars.targets(lhs)
	code.Reads = append(code.Reads, l.readOf(lhs)...)
	if op != syntax.EQ {
		for _, name := range own {
			if !slices.Contains(code.Reads, name) {
				code.Reads = append(code.Reads, name)
			}
		}
	}
	code.Writes = own
	return code
}

// readOf returns the variables that an assignment to an expression reads: of d[k], d and k.
func (l *lowering) readOf(lhs syntax.Expr) (list []string) {
	r := reader{v: l.vars}
	r.target(lhs, false)
	for _, id := range r.list {
		if !l.known[id.Name] {
			l.refuse(id, "variable %s may have no value here; give it one before", id.Name)
		}
		if !slices.Contains(list, id.Name) {
			list = append(list, id.Name)
		}
	}
	return list
}

func (l *lowering) conditional(s *syntax.IfStmt) {
	cond := l.value(s.Cond)
	b := l.add(workflow.Node{Kind: workflow.Branch, Code: cond, Edges: []workflow.Edge{{Kind: workflow.Forward, When: "true"}, {Kind: workflow.Forward, When: "false"}}}, s.If)
	before := l.known.clone()
	var open []dangling
	var known []names
	for i, suite := range [][]syntax.Stmt{s.True, s.False} {
		l.open, l.known = []dangling{{b, i}}, before.clone()
		l.suite(suite)
		if len(l.open) > 0 {
			open, known = append(open, l.open...), append(known, l.known)
		}
	}
	l.meet(open, known, s.If)
}

// jump handles break, continue, and a pass that stands alone.
func (l *lowering) jump(s *syntax.BranchStmt) {
	in := l.loops[len(l.loops)-1]
	if s.Token == syntax.BREAK {
		in.breaks, in.known = append(in.breaks, l.open...), append(in.known, l.known)
	} else {
		l.back(in)
	}
	l.open = nil
}

// back leads the open edges to the head of a loop.
func (l *lowering) back(in *around) {
	for _, d := range l.open {
		e := &l.f.Nodes[d.node].Edges[d.edge]
		if e.Kind == workflow.Forward && e.When == "" {
			e.Kind, e.To = workflow.Back, in.head
			continue
		}
		// The edge of a branch, or out of a loop, already has a kind.
		save := l.open
		l.open = []dangling{d}
		l.step(workflow.Node{Kind: workflow.Merge}, syntax.MakePosition(nil, l.f.Nodes[d.node].Line, l.f.Nodes[d.node].Col))
		m := l.open[0].node
		l.f.Nodes[m].Edges[0] = workflow.Edge{Kind: workflow.Back, To: in.head}
		l.open = save
	}
}

func (l *lowering) forLoop(s *syntax.ForStmt) {
	over := l.value(s.X)
	l.mayAssign(s.Body)
	l.loop(workflow.Node{Kind: workflow.Loop, Code: over}, s.For, func() {
		l.f.Nodes[len(l.f.Nodes)-1].Into = l.target(s.Vars, syntax.EQ)
		for _, name := range l.vars.targets(s.Vars) {
			l.known[name], l.vars.maybe[name] = true, true
		}
		l.suite(s.Body)
	})
}

func (l *lowering) whileLoop(s *syntax.WhileStmt) {
	l.mayAssign(s.Body)
	if l.c.effect(s.Cond) == nil {
		l.loop(workflow.Node{Kind: workflow.Loop, While: true, Code: l.code(s.Cond)}, s.While, func() { l.suite(s.Body) })
		return
	}
	l.loop(workflow.Node{Kind: workflow.Loop, While: true, Code: &workflow.Code{Text: "True", Line: s.While.Line, Col: 1}}, s.While, func() {
		cond := l.value(s.Cond)
		b := l.add(workflow.Node{Kind: workflow.Branch, Code: cond, Edges: []workflow.Edge{{Kind: workflow.Forward, When: "true"}, {Kind: workflow.Forward, When: "false"}}}, s.While)
		in := l.loops[len(l.loops)-1]
		in.breaks, in.known = append(in.breaks, dangling{b, 1}), append(in.known, l.known.clone())
		l.open = []dangling{{b, 0}}
		l.suite(s.Body)
	})
}

// loop lowers a loop with its head.
func (l *lowering) loop(head workflow.Node, at syntax.Position, body func()) {
	head.Edges = []workflow.Edge{{Kind: workflow.Continue}, {Kind: workflow.Break}}
	h := l.add(head, at)
	before := l.known.clone()
	in := &around{head: h, breaks: []dangling{{h, 1}}, known: []names{before.clone()}}
	if head.While && head.Code.Text == "True" { // only a break leaves it
		in.known = nil
	}
	l.loops = append(l.loops, in)
	l.open = []dangling{{h, 0}}
	body()
	l.back(in)
	l.loops = l.loops[:len(l.loops)-1]
	if in.known == nil {
		in.known = []names{before}
	}
	l.meet(in.breaks, in.known, at)
}

// comprehension lowers a comprehension whose parts call actions, one after the other, and returns the variable that has its
// value.
func (l *lowering) comprehension(comp *syntax.Comprehension) (all string) {
	if l.fixed != "" {
		l.refuse(comp, "%s", l.fixed)
		return "None"
	}
	all = l.temp()
	at := syntax.Start(comp)
	empty := "[]"
	if comp.Curly {
		empty = "{}"
	}
	l.do(" "+all+" = "+empty, at, nil, []string{all})
	var own []string
	for _, clause := range comp.Clauses {
		if c, is := clause.(*syntax.ForClause); is {
			own = append(own, l.vars.targets(c.Vars)...)
		}
	}
	over := l.value(comp.Clauses[0].(*syntax.ForClause).X) // outside of the scope of the names; the parser wants a for first
	defer l.hide(own, at)()
	l.clauses(comp, comp.Clauses, over, all)
	return all
}

// clauses lowers the clauses of a comprehension and then its body; over is what the first one goes over, if that is known.
func (l *lowering) clauses(comp *syntax.Comprehension, list []syntax.Node, over *workflow.Code, all string) {
	if len(list) == 0 {
		l.element(comp, all)
		return
	}
	switch clause := list[0].(type) {
	case *syntax.ForClause:
		if over == nil {
			over = l.value(clause.X)
		}
		l.loop(workflow.Node{Kind: workflow.Loop, Code: over}, clause.For, func() {
			l.f.Nodes[len(l.f.Nodes)-1].Into = l.target(clause.Vars, syntax.EQ)
			for _, name := range l.vars.targets(clause.Vars) {
				l.known[name] = true
			}
			l.clauses(comp, list[1:], nil, all)
		})
	case *syntax.IfClause:
		b := l.branch(l.value(clause.Cond), clause.If)
		l.open = []dangling{{b, 1}}
		l.back(l.loops[len(l.loops)-1])
		l.open = []dangling{{b, 0}}
		l.clauses(comp, list[1:], nil, all)
	}
}

// element adds the value of the body of a comprehension.
func (l *lowering) element(comp *syntax.Comprehension, all string) {
	at := syntax.Start(comp)
	if entry, is := comp.Body.(*syntax.DictEntry); is {
		p := l.parted([]syntax.Expr{entry.Key, entry.Value})
		l.do(" "+all+"[("+p[0].text+")] = ("+p[1].text+")", at, union(union([]string{all}, p[0].reads), p[1].reads), nil)
		return
	}
	body := comp.Body
	if l.isCall(body) {
		l.effect(body, &workflow.Code{Text: " " + all + ".append(" + workflow.ResultName + ")", Line: at.Line, Col: 1, Reads: []string{all, workflow.ResultName}})
		return
	}
	p := l.flat(body)
	l.do(" "+all+".append(("+p.text+"))", at, union([]string{all}, p.reads), nil)
}

// do adds a node with statements of this compiler.
func (l *lowering) do(text string, at syntax.Position, reads, writes []string) {
	l.step(workflow.Node{Kind: workflow.Do, Code: &workflow.Code{Text: text, Line: at.Line, Col: 1, Reads: reads, Writes: writes}}, at)
	for _, name := range writes {
		l.known[name] = true
	}
}

// hide begins the scope of names that hide variables of the function. The returned function ends it.
func (l *lowering) hide(own []string, at syntax.Position) func() {
	added := slices.DeleteFunc(slices.Clone(own), func(name string) bool { return l.vars.all[name] })
	l.vars.declare(added)
	kept := map[string]string{} // their values, by name
	for _, name := range own {
		if l.known[name] && kept[name] == "" {
			kept[name] = l.temp()
			l.do(" "+kept[name]+" = "+name, at, []string{name}, []string{kept[name]})
		}
	}
	for _, name := range own {
		delete(l.known, name)
	}
	return func() {
		l.vars.undeclare(added)
		for _, name := range own {
			delete(l.known, name)
		}
		for _, name := range slices.Sorted(maps.Keys(kept)) {
			l.do(" "+name+" = "+kept[name], at, []string{kept[name]}, []string{name})
		}
	}
}
