package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// entryPoints are the packages for users to import.
var entryPoints = []string{".", "settletest", "ordered", "lanes", "receipts", "cron"}

// Every exported function of a package for users is called in an example whose output is checked, and so is
// every method of the types that programs are written with.
func TestExamples_ThereIsOneForEveryEntryPoint(t *testing.T) {
	for _, dir := range entryPoints {
		t.Run(dir, func(t *testing.T) {
			called := calledInExamples(t, filepath.Join("..", dir))
			for _, name := range exported(t, filepath.Join("..", dir), dir == ".") {
				if !slices.Contains(called, name) {
					t.Errorf("no example calls %s", name)
				}
			}
		})
	}
}

// ofPrograms are the types of the root package that a program is written with.
var ofPrograms = []string{"Cell", "Derived", "Rows", "DerivedRows", "Stream", "Request", "Trigger", "Ref", "Program", "Action", "Input"}

// ofTests are functions that only a test can call, since they take a *testing.T: testing.md shows them, and a
// test of settletest runs that code.
var ofTests = []string{"RunFleet", "Post"}

// ofValues are methods that printing and encoding call.
var ofValues = []string{"String", "MarshalJSON", "UnmarshalJSON", "Address", "Name"}

// ofHosts are methods for packages that run programs, such as settletest.
var ofHosts = []string{"Core"}

func exported(t *testing.T, dir string, methods bool) (names []string) {
	for _, f := range parse(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			if slices.Contains(ofValues, fn.Name.Name) || slices.Contains(ofHosts, fn.Name.Name) || slices.Contains(ofTests, fn.Name.Name) && !methods {
				continue
			}
			if fn.Recv == nil || methods && slices.Contains(ofPrograms, receiver(fn)) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// receiver returns the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	x := fn.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}

// calledInExamples returns the names that are used in files with examples that have an output, by the examples
// or by their helpers.
func calledInExamples(t *testing.T, dir string) (names []string) {
	for _, f := range parse(t, dir, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		if !slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && strings.HasPrefix(fn.Name.Name, "Example") && hasOutput(f, fn)
		}) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				names = append(names, sel.Sel.Name)
			}
			return true
		})
	}
	return names
}

func hasOutput(f *ast.File, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
		return fn.Pos() < c.Pos() && c.End() < fn.End() && strings.Contains(c.Text(), "utput:")
	})
}

func parse(t *testing.T, dir string, wanted func(name string) bool) (files []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || !wanted(e.Name()) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
