package tidy

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/settlehq/settle"

// finding is one broken rule.
type finding struct {
	path string // relative to the root of the tree, with slashes
	line int
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text) }

// file is one text file of a tree; syntax is nil unless it is Go.
type file struct {
	path   string
	text   []byte
	fset   *token.FileSet
	syntax *ast.File
}

func (f *file) dir() string         { return path.Dir(f.path) }
func (f *file) isTest() bool        { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

func (f *file) found(n ast.Node, format string, args ...any) finding {
	return finding{f.path, f.line(n), fmt.Sprintf(format, args...)}
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

func (f *file) importsPackage(name string) bool {
	return slices.ContainsFunc(f.syntax.Imports, func(s *ast.ImportSpec) bool { return importPath(s) == name })
}

func TestTree(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("this test reads the tree two directories up: %v", err)
	}
	for _, f := range check(t, root) {
		t.Error(f)
	}
}

var wanted = regexp.MustCompile(`want "([^"]+)"`)

func TestRulesFindWhatTheyShould(t *testing.T) {
	root := filepath.Join("testdata", "tree")
	type place struct {
		path string
		line int
	}
	want := map[place][]string{}
	for _, f := range readTree(t, root) {
		for i, line := range bytes.Split(f.text, []byte("\n")) {
			for _, m := range wanted.FindAllSubmatch(line, -1) {
				at := place{f.path, i + 1}
				want[at] = append(want[at], string(m[1]))
			}
		}
	}
	if len(want) == 0 {
		t.Fatal("testdata/tree wants nothing")
	}
	for _, got := range check(t, root) {
		at := place{got.path, got.line}
		i := slices.IndexFunc(want[at], func(w string) bool { return strings.Contains(got.text, w) })
		if i < 0 {
			t.Errorf("found too much: %v", got)
			continue
		}
		want[at] = slices.Delete(want[at], i, i+1)
	}
	for at, texts := range want {
		for _, text := range texts {
			t.Errorf("%s:%d: nothing says %q", at.path, at.line, text)
		}
	}
}

// check applies every rule to the tree under root.
func check(t *testing.T, root string) []finding {
	t.Helper()
	files := readTree(t, root)
	var found []finding
	var code []*file
	for _, f := range files {
		found = append(found, checkText(f)...)
		if f.syntax == nil {
			continue
		}
		code = append(code, f)
		found = append(found, checkLength(f)...)
		found = append(found, checkImports(f)...)
		found = append(found, checkTestHabits(f)...)
	}
	found = append(found, checkPackageComments(code)...)
	found = append(found, checkCore(t, code)...)
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	return found
}

// notOurs lists files of git, of builds and of runs, and the tree of deliberate violations next to this
// file.
var notOurs = []string{
	".git", ".settle", "bin", "bench/bin", "internal/tidy/testdata", "examples/performers/typescript/node_modules", "examples/performers/typescript/dist",
	"clients/typescript/node_modules", "clients/typescript/dist", "clients/typescript/test-out", "test/browser/node_modules",
}

// readTree reads all text files under root.
func readTree(t *testing.T, root string) []*file {
	t.Helper()
	fset := token.NewFileSet()
	var files []*file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if slices.Contains(notOurs, rel) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil // .git is a file in a worktree
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if ext := path.Ext(rel); ext == ".gz" || ext == ".png" {
			return nil // the only kinds that are not text
		}
		f := &file{path: rel, text: text, fset: fset}
		// Go files in a testdata directory belong to no package; they are text.
		if strings.HasSuffix(rel, ".go") && !strings.Contains("/"+rel, "/testdata/") {
			f.syntax, err = parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
