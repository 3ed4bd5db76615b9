package tidy

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostNames bounds the exported names of the root package; docs/adr/0039-names-carry-their-space.md says
// what belongs elsewhere. It only goes down, unless an ADR says why: 0071 added two, 0098 one.
const mostNames = 95

// A reader of `go doc` has to find the names for writing a program among these.
func TestRoot_HasFewNames(t *testing.T) {
	fset := token.NewFileSet()
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, filepath.Join("..", "..", name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	p, err := doc.NewFromFiles(fset, files, module)
	if err != nil {
		t.Fatal(err)
	}
	names := func(values ...*doc.Value) (n int) {
		for _, v := range values {
			n += len(v.Names)
		}
		return n
	}
	n := names(p.Consts...) + names(p.Vars...) + len(p.Funcs) + len(p.Types)
	for _, typ := range p.Types {
		n += names(typ.Consts...) + names(typ.Vars...) + len(typ.Funcs)
	}
	if n > mostNames {
		t.Errorf("package settle exports %d names, more than %d: can one of them be a method, or belong to another package?", n, mostNames)
	}
	t.Logf("package settle exports %d names", n)
}
