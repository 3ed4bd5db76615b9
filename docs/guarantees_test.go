package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named matches a test in a page: `worker.TestDue_…`, or its whole name.
var named = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.((?:Test|Fuzz|Example)\\w*)(…?)`")

func TestGuarantees_TheTestsThatAreNamedExist(t *testing.T) {
	text := read(t, "guarantees.md")
	tests := map[string][]string{}
	for _, row := range rows(text) {
		found := named.FindAllStringSubmatch(row[len(row)-1], -1)
		if len(found) == 0 {
			t.Errorf("the guarantee %q names no test", row[0])
		}
		for _, m := range found {
			dir := m[1]
			if dir == "settle" {
				dir = "."
			}
			if tests[dir] == nil {
				tests[dir] = testsOf(t, dir)
			}
			if !one(tests[dir], m[2], m[3] != "") {
				t.Errorf("%q: there is no test %s%s in %s", row[0], m[2], m[3], dir)
			}
		}
	}
}

// one reports whether one of the names equals name or, with prefix, begins with it.
func one(names []string, name string, prefix bool) bool {
	for _, n := range names {
		if n == name || prefix && strings.HasPrefix(n, name) {
			return true
		}
	}
	return false
}

// testsOf returns the test functions of a directory.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

var fileName = regexp.MustCompile("`((?:[a-z]+/)+[\\w.]+\\.(?:go|txt|md|star))`")

// A file that a page names exists.
func TestPages_TheFilesTheyNameExist(t *testing.T) {
	for _, p := range pages(t, ".") {
		for _, m := range fileName.FindAllStringSubmatch(read(t, p), -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: there is no file %s", p, m[1])
			}
		}
	}
}
