package star

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/space"
)

// file is a file of a program, compiled.
type file struct {
	code *starlark.Program
	doc  string
	// ops are the accounted operations that it uses.
	ops map[string]bool
	// bodies are its functions by position, for fingerprints.
	bodies map[position]*body
}

// fileOptions is the dialect: loops and conditions at the top, for programs that register
// what a list names; no recursion, no while, no reassignment of globals.
var fileOptions = syntax.FileOptions{Set: true, TopLevelControl: true}

// Compile reads a program, executes its files once, under the limits, and collects what
// they register. The error is an *Error, but for a Source that is no program at all.
func Compile(src Source, o Options) (_ *Program, err error) {
	defer contain(src.Entry, &err)
	if err := src.check(); err != nil {
		return nil, err
	}
	p := &Program{name: src.Name, entry: src.Entry, version: Version(src), limits: o.Limits.fill(), files: map[string]*file{}}
	if o.Context != nil {
		context.AfterFunc(o.Context, func() { p.Stop(context.Cause(o.Context).Error()) })
	}
	if isTest(src.Entry) {
		return nil, &Error{File: src.Entry, Message: "a file of tests is no program"}
	}
	if err := p.read(src, src.names()...); err != nil {
		return nil, err
	}
	p.doc = p.files[src.Entry].doc
	m, err := p.instantiate()
	if err != nil {
		return nil, err
	}
	if err := p.register(m); err != nil {
		return nil, err
	}
	p.idle = append(p.idle, m)
	return p, nil
}

// read compiles files.
func (p *Program) read(src Source, names ...string) error {
	for _, name := range names {
		f, err := p.compileFile(name, src.Files[name])
		if err != nil {
			return err
		}
		p.files[name] = f
	}
	return nil
}

// contain makes an error of a panic: whoever compiles a program is not to end with it. That
// of a run is contained by the space.
func contain(file string, err *error) {
	if p := recover(); p != nil {
		*err = &Error{File: file, Message: clip(fmt.Sprintf("internal error: %v", p))}
	}
}

func (p *Program) compileFile(name, text string) (_ *file, err error) {
	defer contain(name, &err)
	tree, err := fileOptions.Parse(name, text, 0)
	if err != nil {
		return nil, asError(name, err)
	}
	bodies, err := bodiesOf(tree)
	if err != nil {
		return nil, err
	}
	f := &file{doc: docOf(tree.Stmts), bodies: bodies}
	if f.ops, err = rewrite(tree); err != nil {
		return nil, err
	}
	unknown := 0
	f.code, err = starlark.FileProgram(tree, func(name string) bool {
		switch {
		case known(name) || f.ops[name] || p.tests && testDeeds[name] != nil:
			return true
		case starlark.Universe.Has(name):
			return false
		}
		// For each name that it does not know the library looks for one that resembles it,
		// among all. One such error is enough.
		unknown++
		return unknown > maxUnknown
	})
	if err != nil {
		return nil, asError(name, err)
	}
	return f, nil
}

const maxUnknown = 3

// docOf is the string that a block begins with.
func docOf(stmts []syntax.Stmt) string {
	if len(stmts) == 0 {
		return ""
	}
	x, ok := stmts[0].(*syntax.ExprStmt)
	if !ok {
		return ""
	}
	lit, ok := x.X.(*syntax.Literal)
	if !ok || lit.Token != syntax.STRING {
		return ""
	}
	text, _ := lit.Value.(string)
	return strings.TrimSpace(text)
}

// instantiate executes the files.
func (p *Program) instantiate() (_ *machine, err error) {
	defer contain(p.entry, &err)
	m := &machine{p: p}
	m.pre = m.builtins()
	mods := &modules{m: m, done: map[string]starlark.StringDict{}}
	m.mods = mods
	l := m.enter(nil, nil, nil)
	defer m.leave()
	if p.tests {
		m.test = &testRun{}
	}
	globals, err := mods.load(&l.thread, p.entry)
	if err != nil {
		return nil, asError(p.entry, err)
	}
	if p.tests {
		m.test.collect(globals)
	}
	for _, d := range m.decls { // closures that no global leads to would remember things
		if d.fn != nil {
			d.fn.Freeze()
		}
	}
	m.mods, m.loaded = nil, true
	return m, nil
}

// modules are the files that have been executed so far.
type modules struct {
	m     *machine
	done  map[string]starlark.StringDict
	stack []string
}

func (m *machine) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	if m.mods == nil {
		return nil, fmt.Errorf("files are loaded at the beginning only")
	}
	return m.mods.load(t, name)
}

func (s *modules) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	if g, ok := s.done[name]; ok {
		return g, nil
	}
	f := s.m.p.files[name]
	if f == nil {
		return nil, fmt.Errorf("there is no file %q in this program; load finds its own files only", name)
	}
	for _, open := range s.stack {
		if open == name {
			return nil, fmt.Errorf("files load each other: %s", strings.Join(append(s.stack, name), " -> "))
		}
	}
	s.stack = append(s.stack, name)
	g, err := f.code.Init(t, s.m.pre)
	s.stack = s.stack[:len(s.stack)-1]
	if err != nil {
		return nil, err
	}
	if err := s.m.cur.mayFreeze(g); err != nil {
		return nil, err
	}
	g.Freeze()
	s.done[name] = g
	return g, nil
}

// register makes the program of what its files have registered.
func (p *Program) register(m *machine) error {
	p.space = space.NewProgram(p.name)
	p.space.Version = p.version
	prints := newFingerprints(p)
	for i, d := range m.decls {
		if err := d.register(p, i, prints); err != nil {
			return errorAt(d.pos, "%s", strings.TrimPrefix(err.Error(), "program "+p.name+": "))
		}
	}
	if c := p.space.Clash(); c != nil {
		return errorAt(m.nodeNamed(c.Second.Node).pos, "%s", c)
	}
	for _, d := range m.decls {
		if d.kind == "cron" && !slices.Contains(p.streams, d.job.Stream) {
			return errorAt(d.pos, "cron %s: there is no handler for stream %s; handle(%q, ...)", d.id, d.job.Stream, d.job.Stream)
		}
	}
	return nil
}

// nodeNamed is what has registered a node.
func (m *machine) nodeNamed(id string) *decl {
	at := slices.IndexFunc(m.decls, func(d *decl) bool { return d.spec.ID == id })
	return m.decls[at]
}
