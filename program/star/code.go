package star

import (
	"fmt"
	"maps"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/program/star/internal/fingerprint"
	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// code is the compiled text of a program, or of a file of tests. It is immutable.
type code struct {
	name   string
	entry  string
	bounds meter.Bounds
	files  map[string]*file
	bodies fingerprint.Bodies
	// predeclared reports whether the files find a name beside the builtins that compute.
	predeclared func(name string) bool
	stop        stopper
	usage       *Usage // nil for none
	all         bool   // all unknown names are reported
}

// file is a file of a program, compiled.
type file struct {
	code *starlark.Program
	doc  string
	// ops are the charged operations that it uses.
	ops map[string]bool
	// workflows are the graphs of its workflows, by name.
	workflows map[string]*workflow.Graph
}

// fileOptions is the dialect: loops and conditions at the top level, for programs that register what a
// list names; no recursion, while in workflows only, no reassignment of globals.
var fileOptions = syntax.FileOptions{Set: true, TopLevelControl: true, While: true}

// read compiles files.
func (c *code) read(src Source, names ...string) error {
	for _, name := range names {
		f, err := c.compileFile(name, src.Files[name])
		if err != nil {
			return err
		}
		c.files[name] = f
	}
	return nil
}

// contain turns a panic into an error, so that compiling a program cannot end the process. The space
// contains panics of runs.
func contain(file string, err *error) {
	if p := recover(); p != nil {
		*err = &Error{File: file, Message: meter.Clip(fmt.Sprintf("internal error: %v", p))}
	}
}

func (c *code) compileFile(name, text string) (_ *file, err error) {
	defer contain(name, &err)
	tree, err := fileOptions.Parse(name, text, 0)
	if err != nil {
		return nil, workflowError(name, compile.Explain([]byte(text), err))
	}
	f := &file{doc: docOf(tree.Stmts)}
	if err := f.readWorkflows(name, text, tree); err != nil {
		return nil, err
	}
	if err := refuseWhile(tree); err != nil {
		return nil, asError(name, err)
	}
	if err := refuseLocalUpdates(tree); err != nil {
		return nil, asError(name, err)
	}
	bodies, err := fingerprint.Read(tree)
	if err != nil {
		return nil, asError(name, err)
	}
	maps.Copy(c.bodies, bodies)
	if f.ops, err = interp.Rewrite(tree); err != nil {
		return nil, asError(name, err)
	}
	unknown := 0
	f.code, err = starlark.FileProgram(tree, func(name string) bool {
		switch {
		case interp.IsBuiltin(name) || f.ops[name] || c.predeclared(name):
			return true
		case starlark.Universe.Has(name):
			return false
		}
		// For each unknown name the library searches all known names for a similar one. A few such
		// errors are enough.
		unknown++
		return unknown > maxUnknown && (!c.all || unknown > maxChecked)
	})
	if err != nil {
		return nil, asError(name, err)
	}
	return f, nil
}

const (
	maxUnknown = 3
	maxChecked = 100 // for Check
)

// docOf returns the string that a block begins with.
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
