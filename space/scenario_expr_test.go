package space

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// The expressions of scenarios: literals, addresses and calls only. Without operators there is no precedence
// to document.

// expr is a compiled expression.
type expr func(*env) model.Value

// env is the environment of an expression.
type env struct {
	tx    *Tx          // nil if only literals are allowed
	event *model.Event // nil outside of handlers
	// ticks is the counter behind tick(), for functions that are not deterministic.
	ticks *int
	how   []reading // of shallow, peek and target, innermost last
}

// get reads an address.
func (v *env) get(a address) model.Value { return v.read(a, readDeep) }

func (v *env) read(a address, how reading) model.Value {
	if v.tx == nil {
		panic(failure{why: "nothing can be read here: the value must be a constant, such as 5, \"x\", {\"a\":1} or sum(1, 2)"})
	}
	return v.tx.of.read(a.space, a.doc, a.path, how)
}

// failure makes an expression end a handler or node with an error.
type failure struct {
	why       string
	transient bool
}

func (f failure) Error() string { return f.why }

// eval evaluates e. A failure becomes an error; panic(...) stays a panic, since scenarios show what the core
// does with one.
func (e expr) eval(v *env) (out model.Value, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			if err = p; p.transient {
				err = Transient(p)
			}
		default:
			panic(p)
		}
	}()
	return e(v), nil
}

type exprParser struct {
	src string
	pos int
}

func parseExpr(src string) (expr, error) {
	p := &exprParser{src: src}
	e, err := p.expr()
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", src, err)
	}
	if p.skip(); p.pos < len(src) {
		return nil, fmt.Errorf("expression %q: %q is left over", src, src[p.pos:])
	}
	return e, nil
}

func (p *exprParser) skip() {
	for p.pos < len(p.src) && p.src[p.pos] == ' ' {
		p.pos++
	}
}

func (p *exprParser) peek() byte {
	if p.skip(); p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *exprParser) expr() (expr, error) {
	switch c := p.peek(); {
	case strings.IndexByte(`"[{-0123456789`, c) >= 0 && c != 0:
		return p.literal()
	case c == '$':
		return p.payload()
	case c == '@' || isLetter(c):
		return p.name()
	case c == 0:
		return nil, fmt.Errorf("ends too early")
	default:
		return nil, fmt.Errorf("%q cannot begin an expression", p.src[p.pos:])
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isWord(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || strings.IndexByte("_-/.~", c) >= 0
}

// word consumes the characters of a name or an address.
func (p *exprParser) word() string {
	from := p.pos
	for p.pos++; p.pos < len(p.src) && isWord(p.src[p.pos]); {
		p.pos++
	}
	return p.src[from:p.pos]
}

// literal consumes a JSON value.
func (p *exprParser) literal() (expr, error) {
	from := p.pos
	depth, quoted := 0, false
scan:
	for ; p.pos < len(p.src); p.pos++ {
		c := p.src[p.pos]
		switch {
		case quoted && c == '\\':
			p.pos++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case depth == 0 && strings.IndexByte(",) ", c) >= 0:
			break scan
		}
	}
	v, err := model.ParseValue([]byte(p.src[from:p.pos]))
	if err != nil && (p.src[from] == '{' || p.src[from] == '[') {
		err = fmt.Errorf("%w; a literal is JSON, and object(\"k\", a) and list(a) are made of expressions", err)
	}
	return constant(v), err
}

func constant(v model.Value) expr { return func(*env) model.Value { return v } }

// payload consumes $, $/path or $id.
func (p *exprParser) payload() (expr, error) {
	word := p.word()
	if word == "$id" {
		return func(v *env) model.Value { return model.String(v.handled().ID) }, nil
	}
	path, err := model.ParsePath(word[1:])
	if err != nil {
		return nil, err
	}
	return func(v *env) model.Value {
		return v.handled().Payload.At(path)
	}, nil
}

// handled returns the event that the handler is called with.
func (v *env) handled() *model.Event {
	if v.event == nil {
		panic(failure{why: "$ is for handlers"})
	}
	return v.event
}

func (p *exprParser) name() (expr, error) {
	word := p.word()
	if p.peek() == '(' {
		args, err := p.args()
		if err != nil {
			return nil, err
		}
		return call(word, args)
	}
	switch word {
	case "true", "false", "null":
		v, err := model.ParseValue([]byte(word))
		return constant(v), err
	case "absent":
		return constant(model.Value{}), nil
	}
	a, err := parseAddress(word)
	if err != nil {
		return nil, err
	}
	return a.reader(), nil
}

func (p *exprParser) args() ([]expr, error) {
	var args []expr
	p.pos++
	for {
		if len(args) == 0 && p.peek() == ')' {
			p.pos++
			return nil, nil
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		args = append(args, e)
		switch c := p.peek(); c {
		case ',', ')':
			p.pos++
			if c == ')' {
				return args, nil
			}
		default:
			return nil, fmt.Errorf("a comma or a closing parenthesis is missing before %q", p.src[p.pos:])
		}
	}
}

// address is a place in a document: doc/path, or @space/doc/path.
type address struct {
	space, doc string
	path       model.Path
}

func parseAddress(s string) (a address, err error) {
	rest := s
	if strings.HasPrefix(s, "@") {
		a.space, rest, _ = strings.Cut(s[1:], "/")
	}
	doc, pointer, nested := strings.Cut(rest, "/")
	a.doc = doc
	if nested {
		a.path, err = model.ParsePath("/" + pointer)
	}
	if err == nil {
		err = model.CheckName("document", a.doc)
	}
	return a, err
}

// lazy are the functions that evaluate only what they need, so that a node's reads depend on the values that
// it finds.
var lazy = map[string]func(*env, []expr) model.Value{
	"if": func(v *env, args []expr) model.Value {
		if truth(args[0](v)) {
			return args[1](v)
		}
		if len(args) < 3 {
			return model.Value{}
		}
		return args[2](v)
	},
	"switch": func(v *env, args []expr) model.Value {
		x := args[0](v)
		rest := args[1:]
		for ; len(rest) >= 2; rest = rest[2:] {
			if model.Equal(x, rest[0](v)) {
				return rest[1](v)
			}
		}
		if len(rest) == 0 {
			return model.Value{}
		}
		return rest[0](v)
	},
	"read": func(v *env, args []expr) model.Value {
		s, _ := args[0](v).AsString()
		a, err := parseAddress(s)
		if err != nil {
			panic(failure{why: fmt.Sprintf("read: %q is no address", s)})
		}
		return v.get(a)
	},
	"shallow": reads(readShallow),
	"peek":    reads(readNothing),
	"target": func(v *env, args []expr) model.Value {
		l, ok := reads(readLink)(v, args).AsLink()
		if !ok {
			return model.Value{}
		}
		return model.String(l.String())
	},
	"log": func(v *env, args []expr) model.Value {
		var in []model.Value
		for _, a := range args {
			in = append(in, a(v))
		}
		v.tx.Log(text(in))
		return in[len(in)-1]
	},
	"task": func(v *env, args []expr) model.Value {
		return taskValue(v.tx.Task(text([]model.Value{args[0](v)}), text([]model.Value{args[1](v)})))
	},
	"want": func(v *env, args []expr) model.Value {
		return taskValue(v.tx.WantTask(text([]model.Value{args[0](v)}), text([]model.Value{args[1](v)})))
	},
	"tick": func(v *env, _ []expr) model.Value {
		*v.ticks++
		return model.Int(int64(*v.ticks))
	},
}

// reads returns a function that reads the address in its argument in another way. The syntax distinguishes an
// address from other expressions.
func reads(how reading) func(*env, []expr) model.Value {
	return func(v *env, args []expr) model.Value {
		v.how = append(v.how, how)
		defer func() { v.how = v.how[:len(v.how)-1] }()
		return args[0](v)
	}
}

// reader returns an expression that reads an address.
func (a address) reader() expr {
	return func(v *env) model.Value {
		if len(v.how) > 0 {
			return v.read(a, v.how[len(v.how)-1])
		}
		return v.get(a)
	}
}

// strict are the functions that evaluate all of their arguments.
var strict = map[string]func(args []model.Value) model.Value{
	"sum":       fold(func(a, b int64) int64 { return a + b }),
	"mul":       fold(func(a, b int64) int64 { return a * b }),
	"min":       fold(func(a, b int64) int64 { return min(a, b) }),
	"max":       fold(func(a, b int64) int64 { return max(a, b) }),
	"sub":       fold(func(a, b int64) int64 { return a - b }),
	"div":       fold(floorDiv),
	"mod":       fold(func(a, b int64) int64 { return a - b*floorDiv(a, b) }),
	"const":     func(args []model.Value) model.Value { return args[len(args)-1] },
	"eq":        func(a []model.Value) model.Value { return model.Bool(model.Equal(a[0], a[1])) },
	"lt":        func(a []model.Value) model.Value { return model.Bool(integer(a[0]) < integer(a[1])) },
	"not":       func(a []model.Value) model.Value { return model.Bool(!truth(a[0])) },
	"list":      func(a []model.Value) model.Value { return model.Array(a...) },
	"text":      func(a []model.Value) model.Value { return model.String(text(a)) },
	"fail":      func(a []model.Value) model.Value { panic(failure{why: text(a)}) },
	"transient": func(a []model.Value) model.Value { panic(failure{text(a), true}) },
	"panic":     func(a []model.Value) model.Value { panic(text(a)) },
	"die":       func([]model.Value) model.Value { runtime.Goexit(); return model.Value{} },
	"len":       func(a []model.Value) model.Value { return model.Int(int64(a[0].Len())) },
	"keys": func(a []model.Value) model.Value {
		var keys []model.Value
		for _, k := range a[0].Keys() {
			keys = append(keys, model.String(k))
		}
		return model.Array(keys...)
	},
	"append": func(a []model.Value) model.Value {
		return model.Array(append(slices.Collect(a[0].Elements()), a[1:]...)...)
	},
	"sort": func(a []model.Value) model.Value {
		return model.Array(slices.SortedFunc(a[0].Elements(), compareValues)...)
	},
	"atleast": func(a []model.Value) model.Value {
		var kept []model.Value
		for x := range a[0].Elements() {
			if integer(x) >= integer(a[1]) {
				kept = append(kept, x)
			}
		}
		return model.Array(kept...)
	},
	"object": func(a []model.Value) model.Value {
		var fields []model.Field
		for ; len(a) >= 2; a = a[2:] {
			fields = append(fields, model.F(text(a[:1]), a[1]))
		}
		return model.Object(fields...)
	},
}

// fewest is the minimum number of arguments of a function, if that is not one.
var fewest = map[string]int{"if": 2, "switch": 3, "task": 2, "want": 2, "eq": 2, "lt": 2, "append": 2, "atleast": 2, "div": 2, "mod": 2, "sub": 2, "list": 0, "object": 0, "tick": 0, "die": 0}

func call(name string, args []expr) (expr, error) {
	need, ok := fewest[name]
	if !ok {
		need = 1
	}
	if len(args) < need {
		return nil, fmt.Errorf("%s needs %d arguments, not %d", name, need, len(args))
	}
	if f := lazy[name]; f != nil {
		return func(v *env) model.Value { return f(v, args) }, nil
	}
	f := strict[name]
	if f == nil {
		return nil, fmt.Errorf("there is no function %s", name)
	}
	return func(v *env) model.Value {
		var in []model.Value
		for _, a := range args {
			in = append(in, a(v))
		}
		return f(in)
	}, nil
}

func fold(f func(a, b int64) int64) func([]model.Value) model.Value {
	return func(args []model.Value) model.Value {
		acc := integer(args[0])
		for _, a := range args[1:] {
			acc = f(acc, integer(a))
		}
		return model.Int(acc)
	}
}

// floorDiv rounds down, even below zero.
func floorDiv(a, b int64) int64 {
	if b == 0 {
		panic(failure{why: "division by zero"})
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// integer returns a number, 0 for an absent value.
func integer(v model.Value) int64 {
	n, ok := v.AsInt()
	if !ok && !v.IsAbsent() {
		panic(failure{why: show(v) + " is not a number"})
	}
	return n
}

func truth(v model.Value) bool {
	if b, ok := v.AsBool(); ok {
		return b
	}
	n, ok := v.AsInt()
	return ok && n != 0
}

func compareValues(a, b model.Value) int {
	if s, ok := a.AsString(); ok {
		t, _ := b.AsString()
		return strings.Compare(s, t)
	}
	return cmp.Compare(integer(a), integer(b))
}

// text joins values, strings without their quotes.
func text(vs []model.Value) string {
	var b strings.Builder
	for _, v := range vs {
		if s, ok := v.AsString(); ok {
			b.WriteString(s)
		} else {
			b.WriteString(show(v))
		}
	}
	return b.String()
}

// show formats values.
func show(v model.Value) string {
	if v.IsAbsent() {
		return "absent"
	}
	return v.String()
}
