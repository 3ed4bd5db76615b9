package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/telemetry"
)

// Every key that a line of the log may have is in the table of logs.md, and the table has no others.
func TestLogs_TheKeysAreThoseOfThePage(t *testing.T) {
	_, table, found := strings.Cut(read(t, "logs.md"), "<!-- keys -->")
	if !found {
		t.Fatal("logs.md has no table of keys")
	}
	table, _, _ = strings.Cut(table, "<!-- end -->")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]{4,} \\|$").FindAllStringSubmatch(table, -1) {
		if documented[m[1]] {
			t.Errorf("logs.md has the key %s twice", m[1])
		}
		documented[m[1]] = true
	}
	used := logKeys(t)
	for _, key := range []string{telemetry.LogTraceID, telemetry.LogSpanID} {
		used[key] = []string{"internal/telemetry/logs.go"}
	}
	valid := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if !valid.MatchString(key) {
			t.Errorf("%v: %q is no key: use small letters and _", used[key], key)
		}
		if !documented[key] {
			t.Errorf("%v: logs.md does not have the key %s; is there one with the same meaning?", used[key], key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(documented)) {
		if used[key] == nil {
			t.Errorf("no line has the key %s of logs.md", key)
		}
	}
	if len(used) < 40 {
		t.Errorf("%d keys were found; are they still found?", len(used))
	}
}

// logKeys returns the keys that the code gives to its loggers, with the places.
func logKeys(t *testing.T) map[string][]string {
	t.Helper()
	keys, files := map[string][]string{}, token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || slices.Contains([]string{"testdata", "node_modules", "bench", "examples", "simkit", "star", "test"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, key := range keysIn(n) {
				at := files.Position(key.Pos())
				text, _ := strconv.Unquote(key.Value)
				keys[text] = append(keys[text], strings.TrimPrefix(at.Filename, "../")+":"+strconv.Itoa(at.Line))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// logs are the methods that write a line, with the number of arguments before the first key: of a logger, and of what wraps one. A method
// that is named in both has the keys where they are texts.
var logs = map[string][]int{
	"Debug": {1}, "Info": {1}, "Warn": {1, 2}, "Error": {1, 2}, "With": {0},
	"DebugContext": {2}, "InfoContext": {2}, "WarnContext": {2}, "ErrorContext": {2},
}

// keysIn returns the keys of a call that logs, or of a list of keys and values that is passed on: []any{"space", name}, or
// append(about, "error", err).
func keysIn(n ast.Node) []*ast.BasicLit {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if a, is := n.Type.(*ast.ArrayType); is && a.Len == nil {
			if of, is := a.Elt.(*ast.Ident); is && of.Name == "any" {
				return alternating(n.Elts)
			}
		}
	case *ast.CallExpr:
		args := n.Args
		if n.Ellipsis.IsValid() {
			args = args[:len(args)-1]
		}
		switch f := n.Fun.(type) {
		case *ast.Ident:
			if f.Name == "append" && len(args) > 2 && isAbout(args[0]) {
				return alternating(args[1:])
			}
		case *ast.SelectorExpr:
			pkg, _ := f.X.(*ast.Ident)
			if pkg != nil && pkg.Name == "http" || isQuery(f.X) {
				return nil // http.Error, and With of the query of a page
			}
			for _, from := range logs[f.Sel.Name] {
				if len(args) > from {
					if keys := alternating(args[from:]); keys != nil {
						return keys
					}
				}
			}
			if pkg != nil && pkg.Name == "slog" && len(args) == 2 {
				return alternating(args)
			}
		}
	}
	return nil
}

// isAbout reports whether a list is one of keys and values, by the names that such lists have.
func isAbout(list ast.Expr) bool {
	switch list := list.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"about", "args", "what"}, list.Name)
	case *ast.CompositeLit:
		return true
	case *ast.SliceExpr:
		return isAbout(list.X)
	case *ast.SelectorExpr:
		return list.Sel.Name == "about"
	}
	return false
}

// isQuery reports whether a value is the query of a page of the console, whose With has names and values of parameters.
func isQuery(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "q"
	case *ast.SelectorExpr:
		return x.Sel.Name == "q"
	}
	return false
}

// alternating returns the keys of a list of keys and values, nil if it is no such list. Texts that are no keys, as they contain spaces or are
// empty, end it.
func alternating(list []ast.Expr) (keys []*ast.BasicLit) {
	if len(list)%2 != 0 {
		return nil
	}
	for i := 0; i < len(list); i += 2 {
		key, is := list[i].(*ast.BasicLit)
		if !is || key.Kind != token.STRING {
			return nil
		}
		if value, is := list[i+1].(*ast.BasicLit); is && value.Kind == token.STRING && i == 0 && len(list) == 2 {
			return nil // two constant texts are something else
		}
		keys = append(keys, key)
	}
	return keys
}
