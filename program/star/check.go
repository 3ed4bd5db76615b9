package star

import (
	"errors"
	"slices"

	"go.starlark.net/resolve"

	"github.com/settlehq/settle/program/star/internal/fingerprint"
	"github.com/settlehq/settle/program/star/internal/interp"
)

// Check returns the mistakes of a program that can be found without running its functions, in the order of files and lines: all unknown names of all
// files, and the first mistake of syntax of each; if there are none, the first mistake that loading the program finds. testFile, if not "", is checked, too.
func Check(src Source, testFile string) []*Error {
	if err := src.check(); err != nil {
		return []*Error{{Message: err.Error()}}
	}
	var all []*Error
	for _, name := range src.names() {
		all = append(all, checkFile(src, name, spaceBuiltins.has)...)
	}
	if testFile != "" {
		all = append(all, checkFile(src, testFile, testBuiltins.has)...)
	}
	if len(all) > 0 || testFile != "" {
		return all
	}
	if _, err := Compile(src, Options{}); err != nil {
		all = errorsOf(src.Entry, err)
	}
	return all
}

func checkFile(src Source, name string, predeclared func(string) bool) []*Error {
	c := &code{name: src.Name, files: map[string]*file{}, bodies: fingerprint.Bodies{}, predeclared: predeclared, all: true}
	return errorsOf(name, c.read(src, name))
}

// errorsOf returns the errors in one, in the order of their lines.
func errorsOf(file string, err error) (all []*Error) {
	if err == nil {
		return nil
	}
	var list resolve.ErrorList
	if errors.As(err, &list) {
		for _, e := range list {
			all = append(all, errorAt(e.Pos, "%s", interp.NameHint(e.Msg)))
		}
		slices.SortStableFunc(all, func(a, b *Error) int { return (a.Line-b.Line)*1000 + a.Col - b.Col })
		return all
	}
	var own *Error
	if errors.As(asError(file, err), &own) {
		return []*Error{own}
	}
	return []*Error{{File: file, Message: err.Error()}}
}
