package star

import (
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// testProgram is program(spaces, file): in this file of tests, the spaces that match run the program in another file.
func (inst *instance) testProgram(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var spaces, file string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "spaces", &spaces, "file", &file); err != nil {
		return nil, err
	}
	if inst.load == nil {
		return nil, fmt.Errorf("program: call it at the top of the file, not in a function")
	}
	var err error
	if model.IsPattern(spaces) {
		err = model.CheckPattern("spaces", spaces)
	} else {
		err = model.CheckName("space", spaces)
	}
	x := inst.test
	switch {
	case err != nil:
		return nil, fmt.Errorf("program: %w", err)
	case x.others[spaces] != nil:
		return nil, fmt.Errorf("program: the spaces %s have a program already", spaces)
	case inst.code.files[file] == nil:
		return nil, fmt.Errorf("program: there is no file %q beside this one; write its name as a text", file)
	}
	p, err := x.compile(file)
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	x.others[spaces] = p
	return starlark.None, nil
}

// programOf returns the program of a space: that of the longest pattern that it matches, or else the one that the file tests.
func (x *testRun) programOf(name string) *space.Program {
	p, longest := x.program, -1
	for pattern, of := range x.others { // any order: patterns that match one name differ in length
		size := len(pattern)
		if pattern == name {
			size++ // an asterisk can stand for nothing
		}
		if model.MatchesPattern(pattern, name) && size > longest {
			p, longest = of, size
		}
	}
	return p.Space()
}

// programs returns the programs of the test, the one that the file tests first.
func (x *testRun) programs() []*Program {
	all := []*Program{x.program}
	for _, pattern := range slices.Sorted(maps.Keys(x.others)) {
		all = append(all, x.others[pattern])
	}
	return all
}

// deriving returns the node that derives a document, in one of the programs; the name of the document if there is none.
func (x *testRun) deriving(doc string) string {
	derives := func(n Node) bool { return n.Output == doc }
	for _, p := range x.programs() {
		if i := slices.IndexFunc(p.nodes, derives); i >= 0 {
			return p.nodes[i].ID
		}
	}
	return doc
}

// actions returns the names of the actions of the programs.
func (x *testRun) actions() (names []string) {
	for _, p := range x.programs() {
		for _, a := range p.space.Actions() {
			if !a.Input {
				names = append(names, a.Name)
			}
		}
	}
	return names
}
