// Package interp is the metered interpreter: Starlark's own, over a tree that Rewrite has changed so
// that every operation that can cost more than an instruction is charged before it acts. It has the
// operators, methods and builtins that compute. Builtins that use the space (registering, sending,
// timers) are in package star.
package interp

import (
	"fmt"
	"math/big"

	"go.starlark.net/syntax"

	"github.com/settlehq/settle/program/star/internal/meter"
)

// The interpreter counts instructions, and one of them can join two lists of a million elements, search
// a long string or compare deeply nested values. So the tree of a file is rewritten before it is
// compiled. An expression that can cost more than its instruction becomes a call of an operation, which
// charges for what it goes through and allocates:
//
//	x + y            %add(x, y)               unless one of them is a literal number
//	x == y           %eq(x, y)                also because a place is equal to its value
//	x.join(y)        %m.join(x, y)            for every name of a method of a builtin type
//	x[k]             %index(x, k)             unless k is a short literal
//	x[k] = v         %setindex(x, k, v)
//	x[k] += v        %augindex(x, k, "+", v)
//	x[a:b]           %slice(x, a, b, None)
//	{k: v}           %dict({%key(k): v})      dicts are large, and hashing a key may take long
//	for k in x       for k in %iter(x)
//	f(*a, **k)       f(*%args(a), **%kwargs(k))
//
// A program cannot name these operations. The positions of the tree stay the same.

// MaxNesting is how deep statements and expressions may be nested.
const MaxNesting = 300

// rewriter rewrites one file.
type rewriter struct {
	ops   map[string]bool
	frame *frame // of the function that is being rewritten
	depth int
	err   error
}

// Rewrite changes the tree of a file into one whose costs are counted, and returns the operations that
// it uses. It refuses what the dialect does not have; the error is a syntax.Error.
func Rewrite(f *syntax.File) (map[string]bool, error) {
	r := &rewriter{ops: map[string]bool{}, frame: newFrame()}
	r.stmts(f.Stmts)
	return r.ops, r.err
}

func (r *rewriter) refuse(n syntax.Node, format string, args ...any) {
	if r.err == nil {
		r.err = syntax.Error{Pos: syntax.Start(n), Msg: fmt.Sprintf(format, args...)}
	}
}

// deeper enters a level of nesting, and reports whether that is allowed; shallower leaves it.
func (r *rewriter) deeper(pos syntax.Position) bool {
	r.depth++
	if r.depth > MaxNesting && r.err == nil {
		r.err = syntax.Error{Pos: pos, Msg: fmt.Sprintf("this is nested more than %d deep", MaxNesting)}
	}
	return r.err == nil
}

func (r *rewriter) shallower() { r.depth-- }

func (r *rewriter) stmts(stmts []syntax.Stmt) {
	for i, s := range stmts {
		if r.err != nil {
			return
		}
		stmts[i] = r.stmt(s)
	}
}

func (r *rewriter) stmt(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.ExprStmt:
		s.X = r.expr(s.X)
	case *syntax.AssignStmt:
		return r.assign(s)
	case *syntax.DefStmt:
		r.frame.names[s.Name.Name] = true
		r.params(s.Params)
		outer := r.enter(s.Params)
		r.block(s.Def, s.Body)
		if x := r.frameCharge(s.Def, nil); x != nil {
			s.Body = append([]syntax.Stmt{&syntax.ExprStmt{X: x}}, s.Body...)
		}
		r.frame = outer
	case *syntax.IfStmt:
		s.Cond = r.expr(s.Cond)
		r.block(s.If, s.True)
		r.block(s.If, s.False)
	case *syntax.ForStmt:
		r.target(s.Vars)
		s.X = r.iterated(s.X)
		r.block(s.For, s.Body)
	case *syntax.WhileStmt:
		r.refuse(s, "there is no while; use a for loop over a range")
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = r.expr(s.Result)
		}
	}
	return s
}

func (r *rewriter) block(pos syntax.Position, body []syntax.Stmt) {
	if r.deeper(pos) {
		r.stmts(body)
	}
	r.shallower()
}

// maxParams bounds the parameters of a function: a named argument is searched for among them one by
// one.
const maxParams = 100

func (r *rewriter) params(params []syntax.Expr) {
	if len(params) > maxParams {
		r.refuse(params[maxParams], "a function can have at most %d parameters", maxParams)
	}
	for _, p := range params {
		if b, ok := p.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			b.Y = r.expr(b.Y)
		}
	}
}

// target checks the target of an assignment to several variables, which can only be names.
func (r *rewriter) target(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.Ident:
		r.frame.names[x.Name] = true
	case *syntax.ParenExpr:
		r.target(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			r.target(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			r.target(e)
		}
	default:
		r.refuse(x, "only names can be assigned to here; write to a place in a statement of its own")
	}
}

// assign rewrites an assignment. An assignment to an index becomes a call.
func (r *rewriter) assign(s *syntax.AssignStmt) syntax.Stmt {
	s.RHS = r.expr(s.RHS)
	lhs := s.LHS
	for {
		p, ok := lhs.(*syntax.ParenExpr)
		if !ok {
			break
		}
		lhs = p.X
	}
	s.LHS = lhs
	plain := s.Op == syntax.EQ || (s.Op == syntax.PLUS_EQ || s.Op == syntax.MINUS_EQ) && isNumberLiteral(s.RHS)
	op := &syntax.Literal{Token: syntax.STRING, TokenPos: s.OpPos, Value: s.Op.String()}
	switch x := lhs.(type) {
	case *syntax.Ident:
		r.frame.names[x.Name] = true
		if !plain {
			s.RHS = r.call(s.OpPos, "%aug", sameName(x), op, s.RHS)
			s.Op = syntax.EQ
		}
	case *syntax.DotExpr:
		x.X = r.expr(x.X)
		if !plain {
			name := &syntax.Literal{Token: syntax.STRING, TokenPos: x.NamePos, Value: x.Name.Name}
			return &syntax.ExprStmt{X: r.call(s.OpPos, "%augfield", x.X, name, op, s.RHS)}
		}
	case *syntax.IndexExpr:
		x.X, x.Y = r.expr(x.X), r.expr(x.Y)
		if s.Op == syntax.EQ {
			return &syntax.ExprStmt{X: r.call(s.OpPos, "%setindex", x.X, x.Y, s.RHS)}
		}
		return &syntax.ExprStmt{X: r.call(s.OpPos, "%augindex", x.X, x.Y, op, s.RHS)}
	case *syntax.TupleExpr, *syntax.ListExpr:
		r.target(lhs)
	default:
		r.refuse(lhs, "this cannot be assigned to")
	}
	return s
}

// sameName returns another use of a name.
func sameName(x *syntax.Ident) *syntax.Ident { return &syntax.Ident{NamePos: x.NamePos, Name: x.Name} }

// call returns a call of an operation.
func (r *rewriter) call(pos syntax.Position, op string, args ...syntax.Expr) syntax.Expr {
	r.ops[op] = true
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: pos, Name: op}, Lparen: pos, Args: args, Rparen: pos}
}

func (r *rewriter) exprs(list []syntax.Expr) {
	for i, x := range list {
		list[i] = r.expr(x)
	}
}

// expr rewrites an expression.
func (r *rewriter) expr(x syntax.Expr) syntax.Expr {
	if x == nil || r.err != nil {
		return x
	}
	if !r.deeper(nearStart(x)) {
		r.shallower()
		return x
	}
	x = r.rewritten(x)
	r.shallower()
	return x
}

func (r *rewriter) rewritten(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.Literal:
		r.literal(x)
	case *syntax.ParenExpr:
		x.X = r.expr(x.X)
	case *syntax.ListExpr:
		r.frame.literals += len(x.List)
		r.exprs(x.List)
	case *syntax.TupleExpr:
		r.frame.literals += len(x.List)
		r.exprs(x.List)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = r.expr(x.Cond), r.expr(x.True), r.expr(x.False)
	case *syntax.UnaryExpr:
		x.X = r.expr(x.X)
	case *syntax.LambdaExpr:
		r.params(x.Params)
		outer := r.enter(x.Params)
		x.Body = r.expr(x.Body)
		if charged := r.frameCharge(x.Lambda, x.Body); charged != nil {
			x.Body = charged
		}
		r.frame = outer
	case *syntax.DotExpr:
		x.X = r.expr(x.X)
		if isMethod(x.Name.Name) {
			return r.call(x.Dot, "%a."+x.Name.Name, x.X)
		}
	case *syntax.SliceExpr:
		return r.call(x.Lbrack, "%slice", r.expr(x.X), r.orNone(x.Lo, x), r.orNone(x.Hi, x), r.orNone(x.Step, x))
	case *syntax.IndexExpr:
		x.X, x.Y = r.expr(x.X), r.expr(x.Y)
		if !isShortLiteral(x.Y) {
			return r.call(x.Lbrack, "%index", x.X, x.Y)
		}
	case *syntax.BinaryExpr:
		return r.binary(x)
	case *syntax.CallExpr:
		return r.called(x)
	case *syntax.DictExpr:
		return r.dict(x)
	case *syntax.Comprehension:
		return r.comprehension(x)
	}
	return x
}

// nearStart returns roughly where an expression begins. The start of a long chain is at its other end.
func nearStart(x syntax.Expr) syntax.Position {
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		return x.OpPos
	case *syntax.CallExpr:
		return x.Lparen
	case *syntax.DotExpr:
		return x.Dot
	case *syntax.IndexExpr:
		return x.Lbrack
	case *syntax.SliceExpr:
		return x.Lbrack
	case *syntax.CondExpr:
		return x.If
	case *syntax.TupleExpr:
		if !x.Lparen.IsValid() && len(x.List) > 0 {
			return nearStart(x.List[0])
		}
	}
	return syntax.Start(x)
}

func (r *rewriter) orNone(x syntax.Expr, at *syntax.SliceExpr) syntax.Expr {
	if x == nil {
		return &syntax.Ident{NamePos: at.Lbrack, Name: r.op("%None")}
	}
	return r.expr(x)
}

func (r *rewriter) op(name string) string {
	r.ops[name] = true
	return name
}

func (r *rewriter) literal(x *syntax.Literal) {
	if _, big := x.Value.(*big.Int); big {
		r.refuse(x, "the integer does not fit into 64 bits")
	}
	if x.Token == syntax.BYTES {
		r.refuse(x, "there are no bytes: documents hold strings, numbers, lists and objects")
	}
}

// binaryOps are the operations that replace operators.
var binaryOps = map[syntax.Token]string{
	syntax.PLUS: "%add", syntax.MINUS: "%sub", syntax.STAR: "%mul", syntax.PERCENT: "%mod",
	syntax.SLASH: "%div", syntax.SLASHSLASH: "%quo",
	syntax.PIPE: "%or", syntax.AMP: "%and", syntax.CIRCUMFLEX: "%xor", syntax.LTLT: "%shl", syntax.GTGT: "%shr",
	syntax.EQL: "%eq", syntax.NEQ: "%ne", syntax.LT: "%lt", syntax.LE: "%le", syntax.GT: "%gt", syntax.GE: "%ge",
	syntax.IN: "%in", syntax.NOT_IN: "%notin",
}

func (r *rewriter) binary(x *syntax.BinaryExpr) syntax.Expr {
	x.X, x.Y = r.expr(x.X), r.expr(x.Y)
	switch x.Op {
	case syntax.AND, syntax.OR, syntax.EQ:
		return x
	case syntax.PLUS, syntax.MINUS:
		if isNumberLiteral(x.X) || isNumberLiteral(x.Y) {
			return x
		}
	case syntax.SLASH, syntax.SLASHSLASH, syntax.GTGT:
		return x // for numbers only, and the result is no larger
	}
	if op := binaryOps[x.Op]; op != "" {
		return r.call(x.OpPos, op, x.X, x.Y)
	}
	r.refuse(x, "there is no operator %s", x.Op)
	return x
}

// isNumberLiteral reports whether x is a literal number.
func isNumberLiteral(x syntax.Expr) bool {
	switch x := x.(type) {
	case *syntax.Literal:
		return x.Token == syntax.INT || x.Token == syntax.FLOAT
	case *syntax.UnaryExpr:
		return x.Op == syntax.MINUS && isNumberLiteral(x.X)
	}
	return false
}

// isShortLiteral reports whether x is a literal that can be hashed at the cost of an instruction.
func isShortLiteral(x syntax.Expr) bool {
	lit, ok := x.(*syntax.Literal)
	if !ok {
		return false
	}
	text, _ := lit.Value.(string)
	return len(text) <= meter.TextStep
}

// isScalarLiteral reports whether x is a short literal scalar.
func isScalarLiteral(x syntax.Expr) bool {
	switch x := x.(type) {
	case *syntax.Literal:
		return isShortLiteral(x)
	case *syntax.Ident:
		return x.Name == "None" || x.Name == "True" || x.Name == "False"
	}
	return isNumberLiteral(x)
}

// iterated rewrites the sequence of a loop: the keys of an object are listed first.
func (r *rewriter) iterated(x syntax.Expr) syntax.Expr {
	x = r.expr(x)
	if _, ok := x.(*syntax.ListExpr); ok {
		return x
	}
	return r.call(nearStart(x), "%iter", x)
}

// called rewrites a call.
func (r *rewriter) called(x *syntax.CallExpr) syntax.Expr {
	for i, a := range x.Args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ {
				a.Y = r.expr(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR {
				a.X = r.call(a.OpPos, "%args", r.expr(a.X))
				continue
			}
			if a.Op == syntax.STARSTAR {
				a.X = r.call(a.OpPos, "%kwargs", r.expr(a.X))
				continue
			}
		}
		x.Args[i] = r.expr(a)
	}
	if dot, ok := x.Fn.(*syntax.DotExpr); ok && isMethod(dot.Name.Name) {
		op := r.op("%m." + dot.Name.Name)
		x.Args = append([]syntax.Expr{r.expr(dot.X)}, x.Args...)
		x.Fn = &syntax.Ident{NamePos: dot.NamePos, Name: op}
		return x
	}
	x.Fn = r.expr(x.Fn)
	return x
}

func (r *rewriter) dict(x *syntax.DictExpr) syntax.Expr {
	for _, e := range x.List {
		if e, ok := e.(*syntax.DictEntry); ok {
			e.Key, e.Value = r.key(e.Key), r.expr(e.Value)
		}
	}
	return r.call(x.Lbrace, "%dict", x)
}

// key rewrites a key that will be hashed.
func (r *rewriter) key(k syntax.Expr) syntax.Expr {
	k = r.expr(k)
	if isScalarLiteral(k) {
		return k
	}
	return r.call(nearStart(k), "%key", k)
}

func (r *rewriter) comprehension(x *syntax.Comprehension) syntax.Expr {
	for _, c := range x.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			r.target(c.Vars)
			c.X = r.iterated(c.X)
		case *syntax.IfClause:
			c.Cond = r.expr(c.Cond)
		}
	}
	e, ok := x.Body.(*syntax.DictEntry)
	if !ok {
		if x.Curly {
			r.refuse(x, "there are no set comprehensions; use set([...])")
		}
		x.Body = r.expr(x.Body)
		return x
	}
	e.Key, e.Value = r.key(e.Key), r.expr(e.Value)
	return r.call(x.Lbrack, "%dict", x)
}

// frame is the size of the call of a function. The interpreter allocates its variables and the elements
// of its literal lists when the function is called, and counts nothing for it.
type frame struct {
	names    map[string]bool // variables
	literals int             // elements of literal lists and tuples
}

func newFrame() *frame { return &frame{names: map[string]bool{}} }

// smallFrame is how many values a call may have at the cost of its instructions.
const smallFrame = 128

// enter begins a function, and returns the frame of the enclosing one.
func (r *rewriter) enter(params []syntax.Expr) (outer *frame) {
	outer, r.frame = r.frame, newFrame()
	r.frame.literals = len(params)
	return outer
}

// frameCharge returns the expression that charges for a call with a large frame, and has the value of
// result if that is not nil; nil for a small frame.
func (r *rewriter) frameCharge(pos syntax.Position, result syntax.Expr) syntax.Expr {
	size := len(r.frame.names) + r.frame.literals
	if size <= smallFrame {
		return nil
	}
	n := &syntax.Literal{Token: syntax.INT, TokenPos: pos, Value: int64(size)}
	if result == nil {
		return r.call(pos, "%frame", n)
	}
	return r.call(pos, "%frame", n, result)
}
