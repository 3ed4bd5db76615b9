package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/workflow"
)

// effect lowers a call of an action or a combinator, and assigns its result to a target.
func (l *lowering) effect(x syntax.Expr, into *workflow.Code) {
	call, name := callOf(x)
	at := syntax.Start(x)
	switch {
	case l.fixed != "":
		l.refuse(x, "%s", l.fixed)
	case call == nil || !l.c.isEffect(name):
		l.refuse(x, "here stands the call of an action")
	case name == "sleep":
		l.sleep(call, into)
	case name == "wait":
		l.wait(call, into, false)
	case name == "parallel":
		l.parallel(call, into, false)
	case name == "attempt":
		l.attempt(call, into)
	case name == "compensate":
		l.compensate(call, into)
	default:
		l.step(single(l.call(x), into), at)
	}
}

func (l *lowering) attempt(call *syntax.CallExpr, into *workflow.Code) {
	if len(call.Args) != 1 {
		l.refuse(call, "attempt takes one call: attempt(action(...))")
		return
	}
	inner, name := callOf(call.Args[0])
	if name == "parallel" {
		l.parallel(inner, into, true)
		return
	}
	if name == "wait" {
		l.wait(inner, into, true)
		return
	}
	n := single(l.call(call.Args[0]), into)
	n.Attempt = true
	l.step(n, syntax.Start(call))
}

// compensate handles compensate(call), which registers an undo step.
func (l *lowering) compensate(call *syntax.CallExpr, into *workflow.Code) {
	switch {
	case into != nil:
		l.refuse(call, "compensate has no value; it stands in a line of its own, behind the step that it undoes")
		return
	case len(call.Args) != 1 || isNamed(call.Args[0]):
		l.refuse(call, "compensate takes one call, of the action or the function that undoes the step: compensate(refund(id = receipt))")
		return
	}
	undo := l.call(call.Args[0])
	if undo.Child != "" {
		l.refuse(call, "an undo step is an action or a function; write a function that calls the child: def undo(): child(...)")
		return
	}
	if n := l.c.registers(undo.Func, map[string]bool{}); n != nil {
		l.refuse(n, "function %s is an undo step (line %d), and so it cannot register undo steps; retry an action in it, or attempt it", undo.Func, syntax.Start(call).Line)
		return
	}
	l.step(workflow.Node{Kind: workflow.Compensate, Calls: []workflow.Call{undo}}, syntax.Start(call))
}

func (l *lowering) sleep(call *syntax.CallExpr, into *workflow.Code) {
	if len(call.Args) != 1 || isNamed(call.Args[0]) {
		l.refuse(call, `sleep takes a time: sleep("30s"), or a number of seconds`)
		return
	}
	code := l.value(call.Args[0])
	if lit, is := call.Args[0].(*syntax.Literal); is && lit.Token == syntax.STRING {
		s, err := workflow.Seconds(starlark.String(lit.Value.(string)))
		if err != nil {
			l.refuse(lit, "%v", err)
			return
		}
		code.Text = strconv.FormatFloat(s, 'f', -1, 64)
	}
	l.step(workflow.Node{Kind: workflow.Sleep, Code: code}, syntax.Start(call))
	if into != nil {
		l.step(workflow.Node{Kind: workflow.Do, Code: resultIs(into, piece{text: "None"})}, syntax.Start(call))
	}
}

// wait handles wait(name), wait(lambda: condition), or one of them with a timeout.
func (l *lowering) wait(call *syntax.CallExpr, into *workflow.Code, attempt bool) {
	const write = `write wait("signal") or wait(lambda: get("order", "approved")), or with timeout = "24h", which fails with a TimeoutError`
	n := workflow.Node{Kind: workflow.Wait, Into: into, Attempt: attempt}
	values := valuesOf(call.Args)
	keys := make([]string, len(values))
	for i, arg := range call.Args {
		keys[i] = [2]string{"name", "timeout"}[min(i, 1)]
		if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
			keys[i] = b.X.(*syntax.Ident).Name
		}
	}
	if len(keys) > 0 && keys[0] == "name" {
		if n.Until = l.condition(values[0]); n.Until != nil {
			keys, values = keys[1:], values[1:]
		}
	}
	parts := l.parted(values)
	name, limit := piece{}, piece{}
	for i, key := range keys {
		switch {
		case key == "name" && name.text == "" && n.Until == nil:
			name = parts[i]
		case key == "timeout" && limit.text == "":
			limit = parts[i]
			if ms, err := duration(values[i]); err == nil {
				limit = piece{text: strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64)}
			} else if lit, is := values[i].(*syntax.Literal); is && lit.Token == syntax.STRING {
				l.refuse(lit, "%v", err)
			}
		default:
			l.refuse(call.Args[len(call.Args)-len(keys)+i], write)
			return
		}
	}
	if name.text == "" && n.Until == nil {
		l.refuse(call, write)
		return
	}
	at := syntax.Start(call)
	n.Code = &workflow.Code{
		Text: "(" + cmp.Or(name.text, "None") + "), (" + cmp.Or(limit.text, "None") + ")", Line: at.Line, Col: 1,
		Reads: union(slices.Clone(name.reads), limit.reads),
	}
	l.step(n, at)
}

func isNamed(x syntax.Expr) bool {
	b, is := x.(*syntax.BinaryExpr)
	return is && b.Op == syntax.EQ
}

// call returns the call of an action or a function, inside any policies. Calls in its arguments are lowered first.
func (l *lowering) call(x syntax.Expr) (out workflow.Call) {
	call, name := callOf(x)
	switch {
	case call != nil && !l.c.isEffect(name):
		return l.plainCall(call)
	case name == "retry" || name == "timeout":
		return l.policy(call, name)
	case name == childName && !l.c.bound || l.c.workflows[name] != "":
		return l.child(call, name)
	case call == nil || !l.c.isEffect(name) || l.c.combines(name):
		if l.c.combines(name) {
			l.refuse(x, "%s cannot stand here; put it into a function, and call that", name)
		}
		l.refuse(x, "here stands the call of an action, or of a function that calls actions, as in parallel([action(x) for x in list])")
		return out
	case l.c.actions[name] != "":
		out.Action = l.c.actions[name]
	default:
		out.Func = name
	}
	out.Args = l.arguments(call)
	return out
}

// plainFunc is the function of a graph that calls a function without actions, so that attempt can handle its failure:
// its arguments are the function, and the arguments of that.
const plainFunc = "_call"

// plainCall returns the call of a function without actions.
func (l *lowering) plainCall(call *syntax.CallExpr) workflow.Call {
	fn := l.callee(call.Fn, l.inner(call))
	args, list, named := l.parts(call)
	args.Text = fmt.Sprintf(`(), {"f": (%s), "args": %s, "kwargs": %s}`, fn.text, list, named)
	args.Reads = union(args.Reads, fn.reads)
	l.c.plainCalls = true
	return workflow.Call{Func: plainFunc, Args: args}
}

// arguments returns the arguments of a call, as an expression with a pair as its value.
func (l *lowering) arguments(call *syntax.CallExpr) *workflow.Code {
	code, args, named := l.parts(call)
	code.Text = args + ", " + named
	return code
}

// parts returns the positional and the named arguments of a call, and code that has what they read.
func (l *lowering) parts(call *syntax.CallExpr) (code *workflow.Code, list, dict string) {
	code = &workflow.Code{Line: call.Lparen.Line, Col: 1}
	for _, arg := range call.Args {
		if u, is := arg.(*syntax.UnaryExpr); is && (u.Op == syntax.STAR || u.Op == syntax.STARSTAR) {
			l.refuse(arg, "the arguments of an action are written out, without * and **")
			return code, "()", "{}"
		}
	}
	var args, named []string
	for i, p := range l.parted(valuesOf(call.Args)) {
		if b, is := call.Args[i].(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
			named = append(named, strconv.Quote(b.X.(*syntax.Ident).Name)+": "+p.text)
		} else {
			args = append(args, p.text+",")
		}
		code.Reads = union(code.Reads, p.reads)
	}
	return code, "(" + strings.Join(args, " ") + ")", "{" + strings.Join(named, ", ") + "}"
}

// policy handles retry(call, ...) or timeout(call, time).
func (l *lowering) policy(call *syntax.CallExpr, name string) workflow.Call {
	if len(call.Args) == 0 {
		l.refuse(call, "%s takes a call first: %s(action(...), ...)", name, name)
		return workflow.Call{}
	}
	if inner := nested(call.Args[0], name); inner != nil {
		l.refuse(inner, "%s stands within %s, and a call has one of each; %s", name, name, oneOf[name])
		return workflow.Call{}
	}
	out := l.call(call.Args[0])
	if out.Func == plainFunc {
		l.refuse(call, "%s is of an action; code has the same outcome each time", name)
	} else if out.Func != "" {
		l.refuse(call, "%s is of an action, and %s is a function; write it at the calls of actions in %s", name, out.Func, out.Func)
	}
	if name == "retry" && l.named[out.Args] {
		l.refuse(call, "a child with an id is one run, which is not started again: leave the id out, and each attempt has a run of its own")
	}
	if out.Policy == nil {
		out.Policy = &workflow.Policy{}
	}
	for i, arg := range call.Args[1:] {
		key := ""
		if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
			key, arg = b.X.(*syntax.Ident).Name, b.Y
		} else if name == "timeout" && i == 0 {
			key = "after"
		}
		if err := setPolicy(out.Policy, name, key, arg); err != nil {
			l.refuse(arg, "%v", err)
		}
	}
	switch p := out.Policy; {
	case name == "timeout" && p.Timeout == 0:
		l.refuse(call, `timeout takes a call and a time: timeout(action(...), "30s")`)
	case name == "retry" && p.Attempts == 0:
		l.refuse(call, "retry takes a call and the number of attempts in all: retry(action(...), attempts = 3)")
	case p.Factor != 0 && p.Backoff == 0:
		l.refuse(call, `factor needs the first pause: backoff = "1s"`)
	}
	if err := out.Policy.Check(); err != nil {
		l.refuse(call, "%v", err)
	}
	return out
}

// oneOf has what to write in place of a combinator within itself.
var oneOf = map[string]string{
	"retry":   `write one retry, with all types of errors: retry(action(...), attempts = 3, on = ["Busy", "Offline"])`,
	"timeout": "write the shorter time",
}

// nested returns the call of a combinator that stands within others, nil if there is none.
func nested(x syntax.Expr, name string) *syntax.CallExpr {
	for {
		call, inner := callOf(x)
		switch {
		case call == nil || inner != "retry" && inner != "timeout" || len(call.Args) == 0:
			return nil
		case inner == name:
			return call
		}
		x = call.Args[0]
	}
}

// setPolicy sets one field of a policy, which must be a literal.
func setPolicy(p *workflow.Policy, what, key string, x syntax.Expr) (err error) {
	switch what + " " + key {
	case "timeout after":
		p.Timeout, err = duration(x)
	case "retry attempts":
		var n float64
		if n, err = literal(x); err == nil && (n < 1 || n > workflow.MaxAttempts) {
			err = fmt.Errorf("attempts are from 1 to %d in all", workflow.MaxAttempts)
		}
		p.Attempts = int(n)
	case "retry backoff":
		p.Backoff, err = duration(x)
	case "retry max_backoff":
		p.MaxBackoff, err = duration(x)
	case "retry factor":
		if p.Factor, err = literal(x); err == nil && p.Factor < 1 { // 0 would be none
			err = fmt.Errorf("a factor is from 1 to %d", workflow.MaxFactor)
		}
	case "retry step":
		p.Step, err = duration(x)
	case "retry on":
		p.On, err = texts(x)
	default:
		err = fmt.Errorf(`write retry(action(...), attempts = 3, on = ["Type"], backoff = "1s", factor = 2, max_backoff = "1m"), with step = "1s" in place of factor for pauses that grow by a time, or timeout(action(...), "30s")`)
	}
	return err
}

func literal(x syntax.Expr) (float64, error) {
	if lit, is := x.(*syntax.Literal); is {
		switch v := lit.Value.(type) {
		case int64:
			return float64(v), nil
		case float64:
			return v, nil
		}
	}
	return 0, fmt.Errorf("a policy is written out, as a number")
}

// duration returns the milliseconds of a literal, at least one.
func duration(x syntax.Expr) (int64, error) {
	var v starlark.Value
	if lit, is := x.(*syntax.Literal); is && lit.Token == syntax.STRING {
		v = starlark.String(lit.Value.(string))
	} else if s, err := literal(x); err == nil {
		v = starlark.Float(s)
	} else {
		return 0, fmt.Errorf(`a time is written out, as "30s" or a number of seconds`)
	}
	s, err := workflow.Seconds(v)
	if err == nil && s <= 0 {
		err = fmt.Errorf("a time is longer than nothing")
	}
	return max(int64(s*1000), 1), err
}

func texts(x syntax.Expr) (list []string, err error) {
	all, is := x.(*syntax.ListExpr)
	if !is {
		return nil, fmt.Errorf(`types of errors are written out: on = ["Type"]`)
	}
	for _, e := range all.List {
		lit, is := e.(*syntax.Literal)
		if !is || lit.Token != syntax.STRING {
			return nil, fmt.Errorf(`types of errors are written out: on = ["Type"]`)
		}
		list = append(list, lit.Value.(string))
	}
	return list, nil
}

// parallel handles parallel(call, call), parallel([call, call]) or parallel([call for x in xs]).
func (l *lowering) parallel(call *syntax.CallExpr, into *workflow.Code, attempt bool) {
	fan := workflow.Node{Kind: workflow.Fan}
	join := workflow.Node{Kind: workflow.Join, Into: into, Attempt: attempt}
	var calls []syntax.Expr
	for _, arg := range call.Args {
		if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
			lit, isLit := b.Y.(*syntax.Literal)
			if b.X.(*syntax.Ident).Name != "on_error" || !isLit || lit.Value != "collect" && lit.Value != "fail" {
				l.refuse(arg, `parallel takes calls, and on_error = "collect" or "fail"`)
				return
			}
			join.Collect = lit.Value == "collect"
			continue
		}
		calls = append(calls, arg)
	}
	if len(calls) == 1 {
		switch x := calls[0].(type) {
		case *syntax.Comprehension:
			join.List = true
			l.each(&fan, x)
			calls = nil
		case *syntax.ListExpr:
			join.List = true
			calls = x.List
		}
	}
	for i, x := range calls {
		before := slices.ContainsFunc(calls[i+1:], l.inner)
		if before {
			l.later++
		}
		fan.Calls = append(fan.Calls, l.call(x))
		if before {
			l.later--
		}
	}
	at := syntax.Start(call)
	fan.Edges = []workflow.Edge{{Kind: workflow.Forward}}
	i := l.add(fan, at)
	l.open = []dangling{{i, 0}}
	l.step(join, at)
}

// each turns a comprehension into a fan-out.
func (l *lowering) each(fan *workflow.Node, comp *syntax.Comprehension) {
	first, is := comp.Clauses[0].(*syntax.ForClause)
	if comp.Curly || !is || len(comp.Clauses) > 2 {
		l.refuse(comp, "parallel([call for x in list if condition]) has one for and at most one if")
		return
	}
	own := l.vars.targets(first.Vars)
	fan.Each = &workflow.Each{Over: l.value(first.X)}
	l.fixed = "the calls of parallel([...]) begin at the same time, so what is inside of them calls nothing; write a function that calls both, one after the other, and call that here"
	defer func() { l.fixed = "" }()
	hidden := names{}
	for _, name := range own {
		hidden[name] = l.known[name]
		l.known[name] = true
	}
	added := slices.DeleteFunc(slices.Clone(own), func(name string) bool { return l.vars.all[name] })
	l.vars.declare(added)
	defer l.vars.undeclare(added)
	fan.Each.Target = l.target(first.Vars, syntax.EQ)
	if len(comp.Clauses) == 2 {
		cond, is := comp.Clauses[1].(*syntax.IfClause)
		if !is {
			l.refuse(comp, "parallel([call for x in list if condition]) has one for and at most one if")
			return
		}
		fan.Each.If = l.value(cond.Cond)
	}
	fan.Calls = []workflow.Call{l.call(comp.Body)}
	for _, name := range own {
		if !hidden[name] {
			delete(l.known, name)
		}
	}
}
