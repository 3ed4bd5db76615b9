package star

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/program/star/internal/interp"
)

// builtinFunc is the function of a builtin.
type builtinFunc = func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)

// builtinTable has the builtins that act on an instance, by name.
type builtinTable map[string]func(inst *instance) builtinFunc

func (t builtinTable) has(name string) bool { return t[name] != nil }

// instantiate executes the files of c with the builtins of the table, and returns the globals of the
// entry file. test is nil for a program.
func instantiate(c *code, table builtinTable, test *testRun) (inst *instance, globals starlark.StringDict, err error) {
	defer contain(c.entry, &err)
	inst = &instance{code: c, test: test}
	mods := &modules{inst: inst, pre: predeclared(inst, table), done: map[string]starlark.StringDict{}}
	inst.load = mods.load
	first := inst.enter(nil, nil, nil)
	defer inst.leave()
	if globals, err = mods.load(&first.Thread, c.entry); err != nil {
		return nil, nil, asError(c.entry, err)
	}
	for _, d := range inst.decls { // a closure that no global refers to could keep state
		if d.fn != nil {
			d.fn.Freeze()
		}
	}
	inst.load = nil
	return inst, globals, nil
}

// predeclared returns the names that the files of an instance find.
func predeclared(inst *instance, table builtinTable) starlark.StringDict {
	pre := interp.Builtins(&inst.Current)
	for name, f := range table {
		pre[name] = starlark.NewBuiltin(name, f(inst))
	}
	for _, f := range inst.code.files {
		for op := range f.ops { // any order: each is made once
			if pre[op] == nil {
				pre[op] = interp.Operation(&inst.Current, op)
			}
		}
	}
	return pre
}

// modules are the files that have been executed so far.
type modules struct {
	inst  *instance
	pre   starlark.StringDict
	done  map[string]starlark.StringDict
	stack []string
}

func (s *modules) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	if g, ok := s.done[name]; ok {
		return g, nil
	}
	f := s.inst.code.files[name]
	if f == nil {
		return nil, fmt.Errorf("this program has no file %q; load only finds files of the same program", name)
	}
	for _, open := range s.stack {
		if open == name {
			return nil, fmt.Errorf("files load each other in a circle: %s", strings.Join(append(s.stack, name), " -> "))
		}
	}
	s.stack = append(s.stack, name)
	g, err := f.code.Init(t, s.pre)
	s.stack = s.stack[:len(s.stack)-1]
	if err != nil {
		return nil, err
	}
	if err := interp.CheckFreeze(s.inst.Run, g, s.inst.functions()); err != nil {
		return nil, err
	}
	g.Freeze()
	s.done[name] = g
	return g, nil
}
