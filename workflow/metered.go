package workflow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// The interpreter counts its steps, and one step can join two long lists or repeat a text a million times. So the tree of the
// code of a graph is rewritten before it is compiled: what can allocate more than a step stands for becomes a call that counts it.
//
//	x + y, {k: v}            %big(x + y)       counts the result, which is at most as large as what there was
//	x[a:b]                   %part(x[a:b])     the same, but a part of a text costs nothing
//	x * y, x % y             %mul(x, y)        counts before
//	x += y                   x += %grow(x, y)
//	x[k] += y                %1 = x; %2 = k; %1[%2] += %grow(%1[%2], y)
//	x.join                   %method(x.join)   for the methods that can make much of little
//	f(*x)                    f(*%take(x))
//
// The builtins that do so count, too. Neither the graph nor its version changes.

// meter rewrites code.
type meter struct{ temps int }

func (m *meter) stmts(list []syntax.Stmt) []syntax.Stmt {
	var out []syntax.Stmt
	for _, s := range list {
		out = append(out, m.stmt(s)...)
	}
	return out
}

func (m *meter) stmt(s syntax.Stmt) []syntax.Stmt {
	switch s := s.(type) {
	case *syntax.ExprStmt:
		s.X = m.expr(s.X)
	case *syntax.AssignStmt:
		return m.assign(s)
	case *syntax.DefStmt:
		m.params(s.Params)
		s.Body = m.stmts(s.Body)
	case *syntax.IfStmt:
		s.Cond, s.True, s.False = m.expr(s.Cond), m.stmts(s.True), m.stmts(s.False)
	case *syntax.ForStmt:
		m.target(s.Vars)
		s.X, s.Body = m.expr(s.X), m.stmts(s.Body)
	case *syntax.WhileStmt:
		s.Cond, s.Body = m.expr(s.Cond), m.stmts(s.Body)
	case *syntax.ReturnStmt:
		s.Result = m.expr(s.Result)
	}
	return []syntax.Stmt{s}
}

func (m *meter) params(params []syntax.Expr) {
	for _, p := range params {
		if b, is := p.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
			b.Y = m.expr(b.Y)
		}
	}
}

// target rewrites what is in the target of an assignment.
func (m *meter) target(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		m.target(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			m.target(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			m.target(e)
		}
	case *syntax.IndexExpr:
		x.X, x.Y = m.expr(x.X), m.expr(x.Y)
	case *syntax.DotExpr:
		x.X = m.expr(x.X)
	}
}

// assign rewrites an assignment. One to an element, with an operator whose left side has to be known, becomes three.
func (m *meter) assign(s *syntax.AssignStmt) []syntax.Stmt {
	m.target(s.LHS)
	s.RHS = m.expr(s.RHS)
	switch s.Op {
	case syntax.PLUS_EQ, syntax.PIPE_EQ:
		if isNumber(s.RHS) {
			break
		}
		return m.augment(s, "%grow")
	case syntax.STAR_EQ:
		s.Op = syntax.EQ
		return m.augment(s, "%mul")
	case syntax.PERCENT_EQ:
		s.Op = syntax.EQ
		return m.augment(s, "%mod")
	}
	return []syntax.Stmt{s}
}

// augment makes the right side of an assignment an operation on both sides. The sides of an element are evaluated once.
func (m *meter) augment(s *syntax.AssignStmt, op string) []syntax.Stmt {
	for p, is := s.LHS.(*syntax.ParenExpr); is; p, is = s.LHS.(*syntax.ParenExpr) {
		s.LHS = p.X
	}
	at, is := s.LHS.(*syntax.IndexExpr)
	if !is {
		s.RHS = operation(s.OpPos, op, again(s.LHS), s.RHS)
		return []syntax.Stmt{s}
	}
	x, k := m.temp(s.OpPos), m.temp(s.OpPos)
	before := []syntax.Stmt{
		&syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: x, RHS: at.X},
		&syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: k, RHS: at.Y},
	}
	s.RHS = operation(s.OpPos, op, &syntax.IndexExpr{X: again(x), Lbrack: at.Lbrack, Y: again(k), Rbrack: at.Rbrack}, s.RHS)
	s.LHS = &syntax.IndexExpr{X: again(x), Lbrack: at.Lbrack, Y: again(k), Rbrack: at.Rbrack}
	return append(before, s)
}

// temp returns a variable that code cannot name.
func (m *meter) temp(at syntax.Position) *syntax.Ident {
	m.temps++
	return &syntax.Ident{NamePos: at, Name: "%" + strconv.Itoa(m.temps)}
}

// again returns another use of a name.
func again(x syntax.Expr) syntax.Expr {
	if id, is := x.(*syntax.Ident); is {
		return &syntax.Ident{NamePos: id.NamePos, Name: id.Name}
	}
	return x
}

// operation returns a call of an operation.
func operation(at syntax.Position, name string, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}
}

// isNumber reports whether an expression is a literal number.
func isNumber(x syntax.Expr) bool {
	l, is := x.(*syntax.Literal)
	return is && (l.Token == syntax.INT || l.Token == syntax.FLOAT)
}

func (m *meter) exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = m.expr(list[i])
	}
}

func (m *meter) expr(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		x.X = m.expr(x.X)
	case *syntax.ListExpr:
		m.exprs(x.List)
	case *syntax.TupleExpr:
		m.exprs(x.List)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = m.expr(x.Cond), m.expr(x.True), m.expr(x.False)
	case *syntax.UnaryExpr:
		x.X = m.expr(x.X)
	case *syntax.LambdaExpr:
		m.params(x.Params)
		x.Body = m.expr(x.Body)
	case *syntax.IndexExpr:
		x.X, x.Y = m.expr(x.X), m.expr(x.Y)
	case *syntax.SliceExpr:
		x.X, x.Lo, x.Hi, x.Step = m.expr(x.X), m.expr(x.Lo), m.expr(x.Hi), m.expr(x.Step)
		if x.Step == nil {
			return operation(x.Lbrack, "%part", x)
		}
		return operation(x.Lbrack, "%big", x)
	case *syntax.DotExpr:
		x.X = m.expr(x.X)
		if methods[x.Name.Name] != nil {
			return operation(x.Dot, "%method", x)
		}
	case *syntax.BinaryExpr:
		return m.binary(x)
	case *syntax.CallExpr:
		m.call(x)
	case *syntax.DictExpr:
		for _, e := range x.List {
			m.entry(e)
		}
		return operation(x.Lbrace, "%big", x)
	case *syntax.Comprehension:
		return m.comprehension(x)
	}
	return x
}

func (m *meter) entry(e syntax.Expr) {
	if e, is := e.(*syntax.DictEntry); is {
		e.Key, e.Value = m.expr(e.Key), m.expr(e.Value)
	}
}

func (m *meter) binary(x *syntax.BinaryExpr) syntax.Expr {
	x.X, x.Y = m.expr(x.X), m.expr(x.Y)
	switch x.Op {
	case syntax.PLUS, syntax.MINUS:
		if isNumber(x.X) || isNumber(x.Y) {
			return x
		}
		return operation(x.OpPos, "%big", x)
	case syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX, syntax.LTLT:
		return operation(x.OpPos, "%big", x)
	case syntax.STAR:
		return operation(x.OpPos, "%mul", x.X, x.Y)
	case syntax.PERCENT:
		return operation(x.OpPos, "%mod", x.X, x.Y)
	}
	return x
}

func (m *meter) call(x *syntax.CallExpr) {
	x.Fn = m.expr(x.Fn)
	for i, a := range x.Args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ { // a named argument
				a.Y = m.expr(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR {
				a.X = operation(a.OpPos, "%take", m.expr(a.X))
				continue
			}
		}
		x.Args[i] = m.expr(a)
	}
}

func (m *meter) comprehension(x *syntax.Comprehension) syntax.Expr {
	for _, c := range x.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			m.target(c.Vars)
			c.X = m.expr(c.X)
		case *syntax.IfClause:
			c.Cond = m.expr(c.Cond)
		}
	}
	if _, is := x.Body.(*syntax.DictEntry); !is {
		x.Body = m.expr(x.Body)
		return x
	}
	m.entry(x.Body)
	return operation(x.Lbrack, "%big", x)
}

// operations are what rewritten code calls, by name.
func operations() starlark.StringDict {
	all := starlark.StringDict{}
	for name, f := range map[string]func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error){ // any order: each on its own
		"%big": func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return args[0], take(t, shallow(args[0]))
		},
		"%part":   part,
		"%take":   takeElements,
		"%grow":   grow,
		"%mul":    multiply,
		"%mod":    remainder,
		"%method": method,
	} {
		all[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return f(t, args)
		})
	}
	return all
}

// part counts a part of a value. That of a text shares its bytes.
func part(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	switch args[0].(type) {
	case starlark.String, starlark.Bytes:
		return args[0], nil
	}
	return args[0], take(t, shallow(args[0]))
}

// takeElements counts what is added to the arguments of a call.
func takeElements(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	return args[0], take(t, elements(args[0], slotBytes))
}

// grow counts what x += y or x |= y allocates, and returns y.
func grow(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	x, y := args[0], args[1]
	switch x.(type) {
	case *starlark.List, *starlark.Dict: // are changed
		return y, take(t, max(shallow(y), elements(y, slotBytes)))
	}
	return y, take(t, shallow(x)+shallow(y))
}

// maxInt is the largest size of the product of two ints, in bytes: multiplying is more than linear.
const maxInt = 64 << 10

func multiply(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	x, y := args[0], args[1]
	size := shallow(x) + shallow(y)
	_, xInt := x.(starlark.Int)
	_, yInt := y.(starlark.Int)
	if xInt && yInt && size > maxInt {
		return nil, &Failure{Name: LimitError, Message: fmt.Sprintf("an int has more than %d KiB: multiplying it takes too long", maxInt>>10)}
	}
	if n, is := y.(starlark.Int); is {
		size = repeated(x, n)
	} else if n, is := x.(starlark.Int); is {
		size = repeated(y, n)
	}
	if err := take(t, size); err != nil {
		return nil, err
	}
	return starlark.Binary(syntax.STAR, x, y)
}

// repeated returns the bytes of n times x.
func repeated(x starlark.Value, n starlark.Int) int {
	if i, is := x.(starlark.Int); is {
		return shallow(i) + shallow(n)
	}
	size := shallow(x)
	times, ok := n.Int64()
	switch {
	case size == 0 || ok && times <= 0:
		return 0
	case !ok || times > int64(math.MaxInt/4/size):
		return math.MaxInt / 4
	}
	return size * int(times)
}

// remainder is x % y, which formats a text if x is one.
func remainder(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if format, is := args[0].(starlark.String); is {
		x := text{room: room(t)}
		x.add(len(format))
		x.formatted(string(format), args[1])
		if err := take(t, x.size); err != nil {
			return nil, err
		}
	}
	return starlark.Binary(syntax.PERCENT, args[0], args[1])
}

// text adds up the bytes of texts of values, as far as there is room for them: a value that has another one twice, which has
// another one twice, has no end.
type text struct {
	size, room int
	values     int
	path       []starlark.Value
}

// maxTextValues bounds how many values are gone through for one text.
const maxTextValues = 2_000_000

func (x *text) add(n int) { x.size = min(x.size+n, math.MaxInt/4) }

// formatted adds what the operator % inserts into a format.
func (x *text) formatted(format string, v starlark.Value) {
	switch v := v.(type) {
	case starlark.Tuple:
		for _, e := range v {
			x.value(e)
		}
		return
	case *starlark.Dict:
		_, rest, more := strings.Cut(format, "%(")
		for ; more && x.size <= x.room; _, rest, more = strings.Cut(rest, "%(") {
			name, _, _ := strings.Cut(rest, ")")
			if e, is, _ := v.Get(starlark.String(name)); is {
				x.value(e)
			}
		}
	}
	x.value(v)
}

// value adds the text of a value.
func (x *text) value(v starlark.Value) {
	if x.size > x.room {
		return
	}
	if x.values++; x.values > maxTextValues {
		x.size = math.MaxInt / 4
		return
	}
	switch v := v.(type) {
	case starlark.String:
		x.add(len(v) + 2)
	case starlark.Bytes:
		x.add(len(v) + 3)
	case starlark.Int:
		x.add(20 + 3*shallow(v))
	case *Failure:
		x.add(len(v.Message) + len(v.Name))
	case *Result:
		if v.Error != nil {
			x.value(v.Error)
		} else {
			x.value(v.Value)
		}
	case *starlark.Dict:
		x.container(v, func() {
			for k, e := range v.Entries() {
				x.value(k)
				x.value(e)
			}
		})
	case starlark.Tuple:
		for _, e := range v {
			x.value(e)
		}
		x.add(2)
	case *starlark.List:
		x.container(v, func() {
			for e := range v.Elements() {
				x.value(e)
			}
		})
	case *starlark.Set:
		x.container(v, func() {
			for e := range v.Elements() {
				x.value(e)
			}
		})
	default:
		x.add(30)
	}
}

// container adds a value that may hold itself; then its text has an ellipsis there.
func (x *text) container(v starlark.Value, each func()) {
	x.add(5)
	for _, outer := range x.path {
		if outer == v {
			return
		}
	}
	x.path = append(x.path, v)
	each()
	x.path = x.path[:len(x.path)-1]
}

// cost returns the bytes that a call is going to allocate beside its result, or for that if it can be large.
type cost func(t *starlark.Thread, of starlark.Value, args starlark.Tuple) int

// nothing is the cost of what has a result that is about as large as what it is made of; the result counts.
func nothing(*starlark.Thread, starlark.Value, starlark.Tuple) int { return 0 }

// each is the cost of what makes something of each element of its arguments.
func each(bytes int) cost {
	return func(_ *starlark.Thread, _ starlark.Value, args starlark.Tuple) (n int) {
		for _, a := range args {
			n = min(n+elements(a, bytes), math.MaxInt/4)
		}
		return n
	}
}

// own is the cost of a method that makes something of each element of its receiver.
func own(bytes int) cost {
	return func(_ *starlark.Thread, of starlark.Value, _ starlark.Tuple) int {
		if s, is := of.(starlark.String); is {
			return min(len(s), math.MaxInt/4/bytes) * bytes
		}
		return elements(of, bytes)
	}
}

// methods are the methods that can make much of little, or of one step.
var methods = map[string]cost{
	"join": joined, "format": formats, "replace": replaced, "split": parts, "rsplit": parts, "splitlines": parts,
	"elems": own(partBytes), "codepoints": own(partBytes), "elem_ords": own(slotBytes), "codepoint_ords": own(slotBytes),
	"keys": own(slotBytes), "values": own(slotBytes), "items": own(3 * slotBytes),
	"extend": each(slotBytes), "update": each(entryBytes), "union": each(entryBytes),
	"intersection": nothing, "difference": nothing, "symmetric_difference": nothing, "intersection_update": nothing,
	"upper": nothing, "lower": nothing, "title": nothing, "capitalize": nothing,
}

// method makes a method count what it allocates.
func method(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	b, is := args[0].(*starlark.Builtin)
	if !is || b.Receiver() == nil {
		return args[0], nil
	}
	return counted(b, methods[b.Name()]).BindReceiver(b.Receiver()), nil
}

// counted is a builtin that counts what it allocates, and its result.
func counted(b *starlark.Builtin, before cost) *starlark.Builtin {
	return starlark.NewBuiltin(b.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		all := args
		for _, kv := range kwargs {
			all = append(all[:len(all):len(all)], kv[1])
		}
		n := before(t, b.Receiver(), all)
		if err := take(t, n); err != nil {
			return nil, err
		}
		v, err := b.CallInternal(t, args, kwargs)
		if err != nil {
			return nil, err
		}
		return v, take(t, shallow(v)-n)
	})
}

func joined(_ *starlark.Thread, of starlark.Value, args starlark.Tuple) (n int) {
	sep := shallow(of)
	for _, a := range args {
		if list, is := a.(starlark.Iterable); is {
			for e := range starlark.Elements(list) {
				n = min(n+shallow(e)+sep, math.MaxInt/4)
			}
		}
	}
	return n
}

func formats(t *starlark.Thread, of starlark.Value, args starlark.Tuple) int {
	format, _ := starlark.AsString(of)
	largest := 0
	for _, a := range args {
		x := text{room: room(t)}
		x.value(a)
		largest = max(largest, x.size)
	}
	return len(format) + min(largest, math.MaxInt/4/(len(format)+1))*strings.Count(format, "{")
}

func replaced(_ *starlark.Thread, of starlark.Value, args starlark.Tuple) int {
	s, _ := starlark.AsString(of)
	if len(args) < 2 {
		return 0
	}
	old, _ := starlark.AsString(args[0])
	with, _ := starlark.AsString(args[1])
	return len(s) + min(len(with), math.MaxInt/4/(len(s)+2))*strings.Count(s, old)
}

func parts(_ *starlark.Thread, of starlark.Value, args starlark.Tuple) int {
	s, _ := starlark.AsString(of)
	if len(args) > 0 {
		if sep, is := starlark.AsString(args[0]); is && sep != "" {
			return partBytes * (1 + strings.Count(s, sep))
		}
	}
	n, inside := 1, false
	for _, c := range s {
		if space := unicode.IsSpace(c); space == inside {
			inside = !space
			n++
		}
	}
	return partBytes * n
}

// texts is the cost of what makes a text of each argument.
func texts(t *starlark.Thread, _ starlark.Value, args starlark.Tuple) int {
	x := text{room: room(t)}
	for _, a := range args {
		x.value(a)
	}
	return x.size
}

// countedBuiltins returns the builtins of Starlark that can make much of little, as they count it.
func countedBuiltins() starlark.StringDict {
	all := starlark.StringDict{}
	for name, c := range map[string]cost{ // any order: each on its own
		"list": each(slotBytes), "tuple": each(slotBytes), "sorted": each(2 * slotBytes), "reversed": each(slotBytes),
		"enumerate": each(4 * slotBytes), "zip": each(2 * slotBytes), "dict": each(entryBytes), "set": each(entryBytes),
		"str": texts, "repr": texts, "print": texts, "bytes": each(1),
	} {
		all[name] = counted(starlark.Universe[name].(*starlark.Builtin), c)
	}
	all["getattr"] = starlark.NewBuiltin("getattr", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		v, err := starlark.Universe["getattr"].(*starlark.Builtin).CallInternal(t, args, kwargs)
		if b, is := v.(*starlark.Builtin); is && err == nil && methods[b.Name()] != nil {
			return method(t, starlark.Tuple{b})
		}
		return v, err
	})
	return all
}
