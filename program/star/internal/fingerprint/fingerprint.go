// Package fingerprint hashes the code of a node: its function, and all that the function names. Two
// programs whose nodes have the same fingerprint compute the same; comments, docstrings, layout and
// positions do not count. A change of what is hashed here runs every node of every deployed program again.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// dialect is part of every fingerprint: a change of what the language means changes every node.
const dialect = "settle/starlark/1"

// position identifies a function.
type position struct {
	file      string
	line, col int32
}

func positionOf(p syntax.Position) position { return position{p.Filename(), p.Line, p.Col} }

// body is the code of a function: a hash of its tokens, and the names in it. What the names stand for
// is known once the file is resolved and executed. A function inside it is a body of its own, whose
// tokens are represented by their hash, so that nested functions are hashed once.
type body struct {
	tokens hash.Hash
	sum    []byte
	idents []*syntax.Ident
	inner  []*body
	names  []string // set by globals
}

// Bodies are the functions of a program, by position.
type Bodies map[position]*body

// Read finds the functions of a file. It must be called before the file is rewritten.
func Read(f *syntax.File) (Bodies, error) {
	r := bodyReader{found: Bodies{}, in: &body{tokens: sha256.New()}}
	r.walk(f)
	return r.found, r.err
}

// bodyReader goes through a file. in is the function that it is in, or the file.
type bodyReader struct {
	found Bodies
	in    *body
	depth int
	err   error
}

func (r *bodyReader) emit(format string, args ...any) {
	fmt.Fprintf(r.in.tokens, format, args...)
}

// function reads a function, and puts its hash where it is defined.
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

// tokens writes the tokens of a tree. Names of fields and of arguments are tokens only; other names are
// also looked up later.
func (r *bodyReader) tokens(root syntax.Node) {
	syntax.Walk(root, func(n syntax.Node) bool {
		if n == nil {
			r.depth--
			r.emit(")")
			return true
		}
		if r.depth++; r.depth > 4*interp.MaxNesting && r.err == nil {
			r.err = errors.New("the file is nested too deep")
		}
		if r.err != nil || !r.token(n, n == root) {
			r.depth--
			return false
		}
		return true
	})
}

// token writes one token, and reports whether its children follow.
func (r *bodyReader) token(n syntax.Node, root bool) bool {
	switch n := n.(type) {
	case *syntax.ExprStmt:
		if lit, ok := n.X.(*syntax.Literal); ok && lit.Token == syntax.STRING {
			r.emit("text)") // a docstring, which is a comment
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

// globals returns the globals that a function and the functions inside it name, in order of first use.
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

// Hasher computes the fingerprints of a program's nodes.
type Hasher struct {
	bodies Bodies
	// records are the records made so far.
	records map[starlark.Value]*record
	room    int
}

// maxFollowed bounds the values that the nodes of a program name, counted separately for each node.
const maxFollowed = 10_000_000

func NewHasher(bodies Bodies) *Hasher {
	return &Hasher{bodies: bodies, records: map[starlark.Value]*record{}, room: maxFollowed}
}

// Node is a node as its program declares it.
type Node struct {
	Kind, ID string
	Spec     *space.NodeSpec
	Rows     *value.Place // where a node for each row has its rows, nil for others
	Function starlark.Callable
}

// Of returns the fingerprint of a node: of its function and options, and of all that the function
// names, directly or through others.
func (f *Hasher) Of(n Node) (string, error) {
	p := recordWriter{bodies: f.bodies, h: sha256.New()}
	s := n.Spec
	p.put("%s %s %q %q %v %v %t %q", dialect, n.Kind, n.ID, s.Output, s.Gate.Debounce, s.Gate.Throttle, s.Volatile, s.Group)
	if s.Gate.MaxWait != 0 { // else the fingerprint is that of versions without max_wait
		p.put("max_wait %v", s.Gate.MaxWait)
	}
	for _, list := range [][]space.Address{s.Writes, s.Envelope, s.DeclaredReads} {
		p.put("%d", len(list))
		for _, a := range list {
			p.put("%q %q %q", a.Space, a.Doc, a.Path)
		}
	}
	if n.Rows != nil {
		p.value(n.Rows)
	}
	p.value(n.Function)
	g := traversal{f: f, h: sha256.New(), numbers: map[starlark.Value]int{}}
	g.follow(p.record())
	if f.room < 0 {
		return "", fmt.Errorf("the nodes of the program name more than %d values, counted for each of them", maxFollowed)
	}
	return hex.EncodeToString(g.h.Sum(nil))[:16], nil
}

// record is the hash of a value, and the values in it that have records of their own: those that can be
// reached more than once, and so in a circle.
type record struct {
	sum   []byte
	inner []starlark.Value
}

// traversal goes from record to record. A record that was reached before is represented by its number.
type traversal struct {
	f       *Hasher
	h       hash.Hash
	numbers map[starlark.Value]int
}

func (g *traversal) follow(r *record) {
	if g.f.room -= 1 + len(r.inner); g.f.room < 0 {
		return
	}
	g.h.Write(r.sum)
	for _, k := range r.inner {
		if n, met := g.numbers[k]; met {
			fmt.Fprintf(g.h, "again %d ", n)
			continue
		}
		g.numbers[k] = len(g.numbers)
		g.follow(g.f.recordOf(k))
	}
}

func (f *Hasher) recordOf(x starlark.Value) *record {
	r := f.records[x]
	if r == nil {
		p := recordWriter{bodies: f.bodies, h: sha256.New()}
		p.inside(x)
		r = p.record()
		f.records[x] = r
	}
	return r
}

// recordWriter makes one record.
type recordWriter struct {
	bodies Bodies
	h      hash.Hash
	inner  []starlark.Value
}

func (p *recordWriter) record() *record { return &record{p.h.Sum(nil), p.inner} }

func (p *recordWriter) put(format string, args ...any) {
	fmt.Fprintf(p.h, format, args...)
	p.h.Write([]byte{0})
}

// longText is the length of a string, in bytes, beyond which it gets a record of its own.
const longText = 256

func (p *recordWriter) value(x starlark.Value) {
	switch x := x.(type) {
	case nil:
		p.put("unset")
	case *starlark.Function, *value.Place, *value.View, *starlark.List, *starlark.Set, *starlark.Dict:
		p.put("kid")
		p.inner = append(p.inner, x)
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
			p.inner = append(p.inner, x)
			return
		}
		p.inside(x)
	default:
		p.inside(x)
	}
}

// inside writes a value, and collects the inner values that have records of their own.
func (p *recordWriter) inside(x starlark.Value) {
	switch x := x.(type) {
	case *starlark.Function:
		p.function(x)
	case *value.Place:
		p.put("place %s %s %s", x, x.ByDefault.Kind(), x.ByDefault)
		if x.Form != nil { // else the fingerprint is that of places without versions
			p.put("version %d %t", x.Form.Chain.Version(), x.Form.Rows)
			for _, f := range x.Form.Steps {
				p.value(f)
			}
		}
	case *value.View:
		p.put("value %s", x.V)
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

// function writes the code of a function and the values that it names.
func (p *recordWriter) function(fn *starlark.Function) {
	at := positionOf(fn.Position())
	p.put("function")
	b := p.bodies[at]
	if b == nil {
		p.put("%v", at) // unreachable; it would change with its position
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
