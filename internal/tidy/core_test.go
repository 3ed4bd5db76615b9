package tidy

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checkCore applies the rules of determinism to the files of the core.
func checkCore(t *testing.T, files []*file) []finding {
	t.Helper()
	pkgs := map[string][]*file{}
	imports := map[string]bool{}
	for _, f := range files {
		if !inCore(f) {
			continue
		}
		pkgs[f.dir()] = append(pkgs[f.dir()], f)
		for _, spec := range f.syntax.Imports {
			imports[importPath(spec)] = true
		}
	}
	from := exportData(t, imports)
	var found []finding
	for dir, pkg := range pkgs {
		info := typesOf(module+"/"+dir, pkg, from)
		for _, f := range pkg {
			found = append(found, checkDeterminism(f, info)...)
		}
	}
	return found
}

// typesOf type-checks a package as far as possible, and ignores errors, which the compiler reports. A
// range whose operand has no type is a finding (see unordered), so unchecked code does not pass.
func typesOf(path string, pkg []*file, from types.Importer) *types.Info {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	conf := types.Config{Importer: from, Error: func(error) {}}
	var syntax []*ast.File
	for _, f := range pkg {
		syntax = append(syntax, f.syntax)
	}
	_, _ = conf.Check(path, pkg[0].fset, syntax, info)
	return info
}

// exportData imports packages from the compiler's export data.
func exportData(t *testing.T, imports map[string]bool) types.Importer {
	t.Helper()
	args := []string{"list", "-e", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}\t{{.Export}}{{end}}", "--"}
	for imp := range imports {
		args = append(args, imp)
	}
	slices.Sort(args[7:])
	files := map[string]string{}
	if len(imports) > 0 {
		cmd := exec.Command("go", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
		for line := range strings.Lines(string(out)) {
			path, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
			files[path] = name
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		name, ok := files[path]
		if !ok {
			return nil, errors.New(path + " does not compile")
		}
		return os.Open(name)
	})
}

// clock are the functions of package time that read the time or wait for it.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

func checkDeterminism(f *file, info *types.Info) []finding {
	excused := excuses(f)
	sorted := map[ast.Node]bool{} // arguments of slices.Sorted and its kin
	var handedOut []*ast.ChanType
	var found []finding
	refuse := func(n ast.Node, format string, args ...any) {
		found = append(found, f.found(n, format, args...))
	}
	const loop = "; the loop and everything concurrent is in worker/"
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			refuse(n, "go statement in the core"+loop)
		case *ast.SelectStmt:
			refuse(n, "select in the core"+loop)
			return false // its channel operations are part of the same finding
		case *ast.FuncType:
			handedOut = append(handedOut, receiveOnlyResults(n)...)
		case *ast.ChanType:
			if !slices.Contains(handedOut, n) {
				refuse(n, "channel type in the core"+loop)
			}
		case *ast.SendStmt:
			refuse(n, "channel send in the core"+loop)
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				refuse(n, "channel receive in the core"+loop)
			}
		case *ast.RangeStmt:
			what := unordered(info.TypeOf(n.X))
			if what == "" || excused[f.line(n)] {
				break
			}
			refuse(n, "range over %s: sort the keys (slices.Sorted(maps.Keys(m))), or say why the order cannot matter: // any order: ...", what)
		case *ast.CallExpr:
			switch pkg, name := qualified(n.Fun, info); {
			case pkg == "slices" && strings.HasPrefix(name, "Sorted") && len(n.Args) > 0:
				sorted[n.Args[0]] = true
			case pkg == "maps" && (name == "Keys" || name == "Values" || name == "All") && !sorted[n] && !excused[f.line(n)]:
				refuse(n, "maps.%s has no order: give it to slices.Sorted, or say why the order cannot matter: // any order: ...", name)
			}
		case *ast.SelectorExpr:
			if pkg, name := qualified(n, info); pkg == "time" && slices.Contains(clock, name) {
				refuse(n, "time.%s in the core: the core takes time as an input", name)
			}
		}
		return true
	})
	return found
}

// receiveOnlyResults returns the receive-only channels among the results of a function. They can only be
// go-memdb's, which closes one when a snapshot is out of date: the core can neither make a channel nor
// use one.
func receiveOnlyResults(f *ast.FuncType) []*ast.ChanType {
	if f.Results == nil {
		return nil
	}
	var chans []*ast.ChanType
	for _, result := range f.Results.List {
		if c, ok := result.Type.(*ast.ChanType); ok && c.Dir == ast.RECV {
			chans = append(chans, c)
		}
	}
	return chans
}

// qualified returns the package and name of an imported function: "maps", "Keys".
func qualified(e ast.Expr, info *types.Info) (pkg, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	imported, ok := info.Uses[id].(*types.PkgName)
	if !ok {
		return "", ""
	}
	return imported.Imported().Path(), sel.Sel.Name
}

// unordered describes a type over which the core must not range, "" for other types.
func unordered(t types.Type) string {
	if t == nil {
		return "something of unknown type (does the package compile?)"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Kind() == types.Invalid {
			return "something of unknown type (does the package compile?)"
		}
	case *types.Map:
		return fmt.Sprintf("a map (%s)", types.TypeString(t, func(p *types.Package) string { return p.Name() }))
	case *types.Chan:
		return "a channel"
	case *types.Interface: // a type parameter: check what it stands for
		for i := range u.NumEmbeddeds() {
			if union, ok := u.EmbeddedType(i).(*types.Union); ok {
				for term := range union.Terms() {
					if what := unordered(term.Type()); what != "" {
						return what
					}
				}
			}
		}
	}
	return ""
}

var anyOrder = regexp.MustCompile(`any order: *\S`)

// excuses returns the lines that an "any order:" comment covers: its last line and
// the one after it.
func excuses(f *file) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.syntax.Comments {
		if anyOrder.MatchString(group.Text()) {
			end := f.fset.Position(group.End()).Line
			lines[end], lines[end+1] = true, true
		}
	}
	return lines
}
