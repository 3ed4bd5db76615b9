package star

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/space"
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

// body is the code of a function, as far as it can make a difference: a hash of its tokens,
// and the names in it. What the names stand for is known when the file has been resolved and
// executed. A function in it is a body of its own, of which the tokens are told by the hash:
// what is nested would be gone through again and again otherwise.
type body struct {
	tokens hash.Hash
	sum    []byte
	idents []*syntax.Ident
	inner  []*body
	names  []string // see globals
}

// bodiesOf finds the functions of a file. It is to be called before rewrite.
func bodiesOf(f *syntax.File) (map[position]*body, error) {
	r := bodyReader{found: map[position]*body{}, file: f.Path, in: &body{tokens: sha256.New()}}
	r.walk(f)
	return r.found, r.err
}

// bodyReader goes through a file. in is the function that it is in, or the file.
type bodyReader struct {
	found map[position]*body
	file  string
	in    *body
	depth int
	err   error
}

func (r *bodyReader) emit(format string, args ...any) {
	fmt.Fprintf(r.in.tokens, format, args...)
}

// function reads a function, and tells of it where it stands.
func (r *bodyReader) function(at syntax.Position, n syntax.Node) {
	outer := r.in
	r.in = &body{tokens: sha256.New()}
	r.found[positionOf(at)] = r.in
	r.tokens(n)
	b := r.in
	b.sum, b.tokens = b.tokens.Sum(nil), nil
	outer.inner = append(outer.inner, b)
	r.in = outer
	r.emit("(function %x)", b.sum)
}

// walk reads a tree.
func (r *bodyReader) walk(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.DefStmt:
		r.function(n.Def, n)
	case *syntax.LambdaExpr:
		r.function(n.Lambda, n)
	default:
		r.tokens(n)
	}
}

// tokens writes the tokens of a tree. Names of fields and of arguments are tokens; other
// names are looked up later too.
func (r *bodyReader) tokens(root syntax.Node) {
	syntax.Walk(root, func(n syntax.Node) bool {
		if n == nil {
			r.depth--
			r.emit(")")
			return true
		}
		if r.depth++; r.depth > 4*maxNesting && r.err == nil {
			r.err = errorAt(syntax.Position{}, "%s is nested too deep", r.file)
		}
		if r.err != nil || !r.token(n, n == root) {
			r.depth--
			return false
		}
		return true
	})
}

// token writes one, and reports whether what is in it is to follow.
func (r *bodyReader) token(n syntax.Node, root bool) bool {
	switch n := n.(type) {
	case *syntax.ExprStmt:
		if lit, ok := n.X.(*syntax.Literal); ok && lit.Token == syntax.STRING {
			r.emit("text)") // a comment, as docstrings are
			return false
		}
		r.emit("(expr")
	case *syntax.Ident:
		r.in.idents = append(r.in.idents, n)
		r.emit("(name %s", n.Name)
	case *syntax.Literal:
		r.emit("(lit %d %q", n.Token, fmt.Sprint(n.Value))
	case *syntax.DotExpr:
		r.emit("(dot %s ", n.Name.Name)
		r.walk(n.X)
		r.emit(")")
		return false
	case *syntax.BinaryExpr:
		r.emit("(op %d ", n.Op)
		if name, ok := n.X.(*syntax.Ident); ok && n.Op == syntax.EQ {
			r.emit("%s=", name.Name)
			r.walk(n.Y)
			r.emit(")")
			return false
		}
	case *syntax.UnaryExpr:
		r.emit("(unary %d", n.Op)
	case *syntax.AssignStmt:
		r.emit("(assign %d", n.Op)
	case *syntax.BranchStmt:
		r.emit("(branch %d", n.Token)
	case *syntax.DefStmt:
		if !root {
			r.function(n.Def, n)
			return false
		}
		r.emit("(def %d", len(n.Params))
	case *syntax.LambdaExpr:
		if !root {
			r.function(n.Lambda, n)
			return false
		}
		r.emit("(lambda %d", len(n.Params))
	case *syntax.IfStmt:
		r.emit("(if %d %d", len(n.True), len(n.False))
	case *syntax.Comprehension:
		r.emit("(comp %t", n.Curly)
	case *syntax.SliceExpr:
		r.emit("(slice %t %t %t", n.Lo != nil, n.Hi != nil, n.Step != nil)
	case *syntax.ParenExpr:
		r.emit("(")
	default:
		r.emit("(%T", n)
	}
	return true
}

// globals are the names of globals in a function and those in it, in the order in which they
// stand there.
func (b *body) globals() []string {
	if b.names != nil {
		return b.names
	}
	b.names = []string{}
	done := map[string]bool{}
	b.eachIdent(func(id *syntax.Ident) {
		bind, _ := id.Binding.(*resolve.Binding)
		if bind != nil && bind.Scope == resolve.Global && !done[id.Name] {
			done[id.Name] = true
			b.names = append(b.names, id.Name)
		}
	})
	return b.names
}

func (b *body) eachIdent(f func(*syntax.Ident)) {
	for _, id := range b.idents {
		f(id)
	}
	for _, in := range b.inner {
		in.eachIdent(f)
	}
}

// fingerprints makes those of a program's nodes.
type fingerprints struct {
	p *Program
	// records are what was written of values that may be met again.
	records map[starlark.Value]*record
	room    int
}

// maxFollowed is how many values the nodes of a program may name, counted for each node anew.
const maxFollowed = 10_000_000

func newFingerprints(p *Program) *fingerprints {
	return &fingerprints{p: p, records: map[starlark.Value]*record{}, room: maxFollowed}
}

// of is the fingerprint of a node: of its function and options, and of all that the
// function names, directly or through others.
func (f *fingerprints) of(d *decl) (string, error) {
	p := printing{p: f.p, h: sha256.New()}
	s := &d.spec
	p.put("%s %s %q %q %v %v %t %q", dialect, d.kind, d.id, s.Output, s.Gate.Debounce, s.Gate.Throttle, s.Volatile, s.Group)
	if s.Gate.MaxWait != 0 { // else it is that of a program which knows of none
		p.put("max_wait %v", s.Gate.MaxWait)
	}
	for _, list := range [][]space.Address{s.Writes, s.Envelope, s.DeclaredReads} {
		p.put("%d", len(list))
		for _, a := range list {
			p.put("%q %q %q", a.Space, a.Doc, a.Path)
		}
	}
	if d.from != nil {
		p.value(d.from)
	}
	p.value(d.fn)
	g := following{f: f, h: sha256.New(), number: map[starlark.Value]int{}}
	g.follow(p.record())
	if f.room < 0 {
		return "", fmt.Errorf("the nodes of the program name more than %d values, counted for each of them", maxFollowed)
	}
	return hex.EncodeToString(g.h.Sum(nil))[:16], nil
}

// record is what was written of a value, and the values in it that have records of their own:
// what may be met more than once, and so in a circle.
type record struct {
	sum  []byte
	kids []starlark.Value
}

// following goes from record to record. One that was met already is told by its number.
type following struct {
	f      *fingerprints
	h      hash.Hash
	number map[starlark.Value]int
}

func (g *following) follow(r *record) {
	if g.f.room -= 1 + len(r.kids); g.f.room < 0 {
		return
	}
	g.h.Write(r.sum)
	for _, k := range r.kids {
		if n, met := g.number[k]; met {
			fmt.Fprintf(g.h, "again %d ", n)
			continue
		}
		g.number[k] = len(g.number)
		g.follow(g.f.recordOf(k))
	}
}

func (f *fingerprints) recordOf(x starlark.Value) *record {
	r := f.records[x]
	if r == nil {
		p := printing{p: f.p, h: sha256.New()}
		p.inside(x)
		r = p.record()
		f.records[x] = r
	}
	return r
}

// printing is the making of one record.
type printing struct {
	p    *Program
	h    hash.Hash
	kids []starlark.Value
}

func (p *printing) record() *record { return &record{p.h.Sum(nil), p.kids} }

func (p *printing) put(format string, args ...any) {
	fmt.Fprintf(p.h, format, args...)
	p.h.Write([]byte{0})
}

// longText is what a text of so many bytes is: one that gets a record of its own.
const longText = 256

func (p *printing) value(x starlark.Value) {
	switch x := x.(type) {
	case nil:
		p.put("unset")
	case *starlark.Function, *place, *view, *starlark.List, *starlark.Set, *starlark.Dict:
		p.put("kid")
		p.kids = append(p.kids, x)
	case *starlark.Builtin:
		p.put("builtin %s", x.Name())
		p.value(x.Receiver())
	case starlark.Tuple:
		p.put("tuple %d", len(x))
		for _, e := range x {
			p.value(e)
		}
	case starlark.String:
		if len(x) > longText {
			p.put("kid")
			p.kids = append(p.kids, x)
			return
		}
		p.inside(x)
	default:
		p.inside(x)
	}
}

// inside writes a value and tells of those in it.
func (p *printing) inside(x starlark.Value) {
	switch x := x.(type) {
	case *starlark.Function:
		p.function(x)
	case *place:
		p.put("place %s %s %s", x, x.def.Kind(), x.def)
	case *view:
		p.put("value %s", x.v)
	case *starlark.List:
		p.put("list %d", x.Len())
		for e := range x.Elements() {
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

// function puts in the code of a function and what it names.
func (p *printing) function(fn *starlark.Function) {
	at := positionOf(fn.Position())
	p.put("function")
	b := p.p.bodyAt(at)
	if b == nil {
		p.put("%v", at) // cannot be; such a one changes with its place
		return
	}
	p.h.Write(b.sum)
	for i := range fn.NumParams() {
		p.value(fn.ParamDefault(i))
	}
	for i := range fn.NumFreeVars() {
		name, v := fn.FreeVar(i)
		p.put("free %s", name.Name)
		p.value(v)
	}
	names := b.globals()
	if len(names) == 0 {
		return
	}
	globals := fn.Module().Globals()
	for _, name := range names {
		p.put("global %s", name)
		p.value(globals[name])
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

// keeping goes through values. Lists, dicts and sets are looked at once, tuples and functions
// as often as they are met, since freezing does the same: a function that holds another twice,
// which holds another twice, has no end, and neither has one that holds itself.
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
	case *starlark.Builtin: // a method that is kept
		return x.Receiver() == nil || w.value(x.Receiver(), depth+1)
	case *starlark.Function:
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
