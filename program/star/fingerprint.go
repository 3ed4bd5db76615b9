package star

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// dialect is part of every fingerprint: a change of what the language means is a change of
// every node.
const dialect = "settle/starlark/1"

// position tells functions apart.
type position struct {
	file      string
	line, col int32
}

func positionOf(p syntax.Position) position { return position{p.Filename(), p.Line, p.Col} }

// body is the code of a function, as far as it can make a difference: its tokens, and the
// names in it. What the names stand for is known when the file has been resolved and
// executed.
type body struct {
	code   []byte
	idents []*syntax.Ident
}

// bodiesOf finds the functions of a file. It is to be called before rewrite.
func bodiesOf(f *syntax.File) (map[position]*body, error) {
	bodies := map[position]*body{}
	var err error
	depth := 0
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if depth++; depth > 4*maxNesting {
			if err == nil {
				err = errorAt(syntax.Position{}, "%s is nested too deep", f.Path)
			}
			depth--
			return false
		}
		switch n := n.(type) {
		case *syntax.DefStmt:
			bodies[positionOf(n.Def)] = bodyOf(n)
		case *syntax.LambdaExpr:
			bodies[positionOf(n.Lambda)] = bodyOf(n)
		}
		return true
	})
	return bodies, err
}

func bodyOf(n syntax.Node) *body {
	b := &body{}
	b.walk(n)
	return b
}

func (b *body) emit(format string, args ...any) {
	b.code = fmt.Appendf(b.code, format, args...)
}

// walk writes the tokens of a tree. Names of fields and of arguments are tokens; other
// names are looked up later too.
func (b *body) walk(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil:
			b.emit(")")
			return true
		case *syntax.ExprStmt:
			if lit, ok := n.X.(*syntax.Literal); ok && lit.Token == syntax.STRING {
				return b.leaf("text") // a comment, as docstrings are
			}
			b.emit("(expr")
		case *syntax.Ident:
			b.idents = append(b.idents, n)
			b.emit("(name %s", n.Name)
		case *syntax.Literal:
			b.emit("(lit %d %q", n.Token, fmt.Sprint(n.Value))
		case *syntax.DotExpr:
			b.emit("(dot %s ", n.Name.Name)
			b.walk(n.X)
			return b.leaf("")
		case *syntax.BinaryExpr:
			b.emit("(op %d ", n.Op)
			if name, ok := n.X.(*syntax.Ident); ok && n.Op == syntax.EQ {
				b.emit("%s=", name.Name)
				b.walk(n.Y)
				return b.leaf("")
			}
		case *syntax.UnaryExpr:
			b.emit("(unary %d", n.Op)
		case *syntax.AssignStmt:
			b.emit("(assign %d", n.Op)
		case *syntax.BranchStmt:
			b.emit("(branch %d", n.Token)
		case *syntax.DefStmt:
			b.emit("(def %d", len(n.Params))
		case *syntax.LambdaExpr:
			b.emit("(lambda %d", len(n.Params))
		case *syntax.IfStmt:
			b.emit("(if %d %d", len(n.True), len(n.False))
		case *syntax.Comprehension:
			b.emit("(comp %t", n.Curly)
		case *syntax.SliceExpr:
			b.emit("(slice %t %t %t", n.Lo != nil, n.Hi != nil, n.Step != nil)
		case *syntax.ParenExpr:
			b.emit("(")
		default:
			b.emit("(%T", n)
		}
		return true
	})
}

// leaf ends a node whose inside has been written, or does not count.
func (b *body) leaf(what string) bool {
	b.emit("%s)", what)
	return false
}

// fingerprints makes those of a program's nodes.
type fingerprints struct{ p *Program }

func newFingerprints(p *Program) *fingerprints { return &fingerprints{p} }

// of is the fingerprint of a node: of its function and options, and of all that the
// function names, directly or through others.
func (f *fingerprints) of(d *decl) string {
	p := printing{p: f.p, h: sha256.New(), seen: map[*starlark.Function]int{}}
	s := &d.spec
	p.put("%s %s %q %q %v %v %t %q %v %v %v", dialect, d.kind, d.id, s.Output, s.Gate.Debounce, s.Gate.Throttle,
		s.Volatile, s.Group, s.Writes, s.Envelope, s.DeclaredReads)
	if d.from != nil {
		p.value(d.from)
	}
	p.value(d.fn)
	return hex.EncodeToString(p.h.Sum(nil))[:16]
}

// printing is the making of one fingerprint.
type printing struct {
	p    *Program
	h    hash.Hash
	seen map[*starlark.Function]int
}

func (p *printing) put(format string, args ...any) {
	fmt.Fprintf(p.h, format, args...)
	p.h.Write([]byte{0})
}

func (p *printing) value(x starlark.Value) {
	switch x := x.(type) {
	case nil:
		p.put("unset")
	case *starlark.Function:
		p.function(x)
	case *starlark.Builtin:
		p.put("builtin %s", x.Name())
		p.value(x.Receiver())
	case *place:
		p.put("place %s %s %s", x, x.def.Kind(), x.def)
	case *view:
		p.put("value %s", x.v)
	case *starlark.List:
		p.put("list %d", x.Len())
		for e := range x.Elements() {
			p.value(e)
		}
	case starlark.Tuple:
		p.put("tuple %d", len(x))
		for _, e := range x {
			p.value(e)
		}
	case *starlark.Set:
		p.put("set %d", x.Len())
		for e := range x.Elements() {
			p.value(e)
		}
	case *starlark.Dict:
		p.put("dict %d", x.Len())
		for k, v := range x.Entries() {
			p.value(k)
			p.value(v)
		}
	default:
		p.put("%s %s", x.Type(), x)
	}
}

// function puts in the code of a function and what it names. One that was put in already
// is told by its number: functions may name each other.
func (p *printing) function(fn *starlark.Function) {
	if n, ok := p.seen[fn]; ok {
		p.put("function %d", n)
		return
	}
	p.seen[fn] = len(p.seen)
	at := positionOf(fn.Position())
	p.put("function")
	b := p.p.bodyAt(at)
	if b == nil {
		p.put("%v", at) // cannot be; such a one changes with its place
		return
	}
	p.h.Write(b.code)
	for i := range fn.NumParams() {
		p.value(fn.ParamDefault(i))
	}
	for i := range fn.NumFreeVars() {
		name, v := fn.FreeVar(i)
		p.put("free %s", name.Name)
		p.value(v)
	}
	globals := fn.Module().Globals()
	done := map[string]bool{}
	for _, id := range b.idents {
		bind, _ := id.Binding.(*resolve.Binding)
		if bind == nil || bind.Scope != resolve.Global || done[id.Name] {
			continue
		}
		done[id.Name] = true
		p.put("global %s", id.Name)
		p.value(globals[id.Name])
	}
}

func (p *Program) bodyAt(at position) *body {
	if f := p.files[at.file]; f != nil {
		return f.bodies[at]
	}
	return nil
}

// Bounds of what a program keeps: of everything that its globals hold.
const (
	maxKept      = 200_000
	maxKeptDepth = 200
)

// mayFreeze refuses globals that cannot be gone through: freezing, fingerprints and much
// else follow what they hold to its end.
func (l *level) mayFreeze(g starlark.StringDict) error {
	w := keeping{room: maxKept, seen: map[any]bool{}}
	for _, name := range g.Keys() {
		if !w.value(g[name], 0) {
			return fmt.Errorf("the global %s holds more than %d values, or is nested more than %d deep", name, maxKept, maxKeptDepth)
		}
	}
	for _, d := range l.m.decls {
		if d.fn != nil && !w.value(d.fn, 0) {
			return fmt.Errorf("function %s holds more than %d values, or is nested more than %d deep", d.fn.Name(), maxKept, maxKeptDepth)
		}
	}
	return l.charge((maxKept-w.room)/16, 0)
}

// keeping goes through values. Lists, dicts and functions are looked at once, tuples as
// often as they are met, since freezing does the same.
type keeping struct {
	room int
	seen map[any]bool
}

func (w *keeping) value(x starlark.Value, depth int) bool {
	if w.room--; w.room < 0 || depth > maxKeptDepth {
		return false
	}
	switch x := x.(type) {
	case *starlark.List:
		return w.met(x) || w.all(x.Elements(), depth)
	case starlark.Tuple:
		return w.all(x.Elements(), depth)
	case *starlark.Set:
		return w.met(x) || w.all(x.Elements(), depth)
	case *starlark.Dict:
		if w.met(x) {
			return true
		}
		for k, v := range x.Entries() {
			if !w.value(k, depth+1) || !w.value(v, depth+1) {
				return false
			}
		}
	case *starlark.Function:
		if w.met(x) {
			return true
		}
		for i := range x.NumParams() {
			if v := x.ParamDefault(i); v != nil && !w.value(v, depth+1) {
				return false
			}
		}
		for i := range x.NumFreeVars() {
			if _, v := x.FreeVar(i); v != nil && !w.value(v, depth+1) {
				return false
			}
		}
	}
	return true
}

// met reports whether x was met before.
func (w *keeping) met(x any) bool {
	before := w.seen[x]
	w.seen[x] = true
	return before
}

func (w *keeping) all(elems func(yield func(starlark.Value) bool), depth int) bool {
	ok := true
	elems(func(e starlark.Value) bool {
		ok = w.value(e, depth+1)
		return ok
	})
	return ok
}
