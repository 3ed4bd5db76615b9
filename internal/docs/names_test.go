package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named is a test in a page: `worker.TestDue_…`, or with its whole name.
var named = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.((?:Test|Fuzz|Example)\\w*)(…?)`")

func TestGuarantees_TheTestsThatAreNamedExist(t *testing.T) {
	text, err := page("guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
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

// one reports whether one of the names is a name, or begins with it.
func one(names []string, name string, prefix bool) bool {
	for _, n := range names {
		if n == name || prefix && strings.HasPrefix(n, name) {
			return true
		}
	}
	return false
}

// testsOf are the test functions of a directory.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
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

var (
	code     = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	fileName = regexp.MustCompile("`((?:[a-z]+/)+[\\w.]+\\.(?:go|txt|md|star))`")
)

func TestPages_LinksLeadToFiles(t *testing.T) {
	for _, p := range pages(t) {
		text, err := page(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			at := filepath.Join(root, "docs", path.Dir(p), m[1])
			if _, err := os.Stat(at); err != nil {
				t.Errorf("docs/%s: a link leads to %s, which is not there", p, m[1])
			}
		}
		for _, m := range fileName.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("docs/%s: there is no file %s", p, m[1])
			}
		}
	}
}

// pages are those of docs/ but for decisions, which tell of the time when they were made.
func pages(t *testing.T) []string {
	t.Helper()
	var names []string
	docs := filepath.Join(root, "docs")
	err := filepath.WalkDir(docs, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "adr" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if strings.HasSuffix(p, ".md") {
			rel, err := filepath.Rel(docs, p)
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
