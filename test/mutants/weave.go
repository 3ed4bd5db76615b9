package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Building a tree for each mutant would take longer than running its tests. So all mutants go into one
// tree: the function that contains a mutant is copied, the mutant is applied to the copy, and the
// function begins with a call of the copy if the environment names the mutant. A mutant outside of any
// function, or in a signature, is tried in a tree of its own (see try).

// choose is the environment variable that names the mutant.
const choose = "SETTLE_MUTANT"

// woven is a file with its mutants.
type woven struct {
	file    string
	edits   []edit
	copies  map[string]string // the text of each mutant's file
	present map[string]bool   // mutants
}

type edit struct {
	from, to int
	text     string
}

// weave puts mutants into one file of the tree, and returns those for which that is not possible.
func weave(dir, file string, list []*mutant) (w *woven, alone []*mutant, err error) {
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	w = &woven{file: file, copies: map[string]string{}, present: map[string]bool{}}
	calls := map[*ast.FuncDecl][]string{}
	var order []*ast.FuncDecl
	for _, m := range list {
		mutated, err := m.mutate(text)
		if err != nil {
			alone = append(alone, m) // which reports the error
			continue
		}
		at := bytes.Index(text, []byte(m.old))
		d := enclosing(fset, f, at, at+len(m.old))
		if d == nil {
			alone = append(alone, m)
			continue
		}
		c, ok := copyOf(m, mutated, fset.Position(d.Pos()).Offset)
		if !ok {
			alone = append(alone, m)
			continue
		}
		w.copies[m.id], w.present[m.id] = c, true
		if calls[d] == nil {
			order = append(order, d)
		}
		calls[d] = append(calls[d], m.id)
	}
	for _, d := range order {
		w.edits = append(w.edits, dispatch(fset, d, calls[d])...)
	}
	out := text
	slices.SortFunc(w.edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	for _, e := range w.edits { // from the end to the beginning
		out = slices.Concat(out[:e.from], []byte(e.text), out[e.to:])
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), out, 0o644); err != nil {
		return nil, nil, err
	}
	for id, c := range w.copies { // any order: files
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(path.Dir(file)), "mutant_"+strings.ToLower(id)+".go"), []byte(c), 0o644); err != nil {
			return nil, nil, err
		}
	}
	chooser := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar settleMutant = os.Getenv(%q)\n", f.Name.Name, choose)
	return w, alone, os.WriteFile(filepath.Join(dir, filepath.FromSlash(path.Dir(file)), "mutant_chosen.go"), []byte(chooser), 0o644)
}

// enclosing returns the function whose body contains a range of the file, nil if there is none.
func enclosing(fset *token.FileSet, f *ast.File, from, to int) *ast.FuncDecl {
	for _, decl := range f.Decls {
		d, is := decl.(*ast.FuncDecl)
		if is && d.Body != nil && d.Name.Name != "init" && fset.Position(d.Body.Lbrace).Offset < from && to <= fset.Position(d.Body.Rbrace).Offset {
			return d
		}
	}
	return nil
}

// copyOf returns a file with the function that begins at an offset of the mutated text.
func copyOf(m *mutant, mutated []byte, at int) (string, bool) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, m.file, mutated, 0)
	if err != nil {
		return "", false
	}
	for _, decl := range f.Decls {
		d, is := decl.(*ast.FuncDecl)
		if !is || fset.Position(d.Pos()).Offset != at {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "package %s\n\n", f.Name.Name)
		for _, spec := range f.Imports {
			if uses(f, d, importName(spec)) {
				b.WriteString("import ")
				if spec.Name != nil {
					b.WriteString(spec.Name.Name + " ")
				}
				b.WriteString(spec.Path.Value + "\n")
			}
		}
		name, end := fset.Position(d.Name.End()).Offset, fset.Position(d.End()).Offset
		b.WriteString("\n")
		b.Write(mutated[at:name])
		b.WriteString("_" + m.id)
		b.Write(mutated[name:end])
		b.WriteString("\n")
		return b.String(), true
	}
	return "", false
}

// uses reports whether a function names an import.
func uses(f *ast.File, d *ast.FuncDecl, name string) bool {
	return slices.ContainsFunc(f.Unresolved, func(id *ast.Ident) bool {
		return id.Name == name && id.Pos() >= d.Pos() && id.Pos() < d.End()
	})
}

var majorVersion = regexp.MustCompile(`/v\d+$`)

func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	p, _ := strconv.Unquote(spec.Path.Value)
	return strings.TrimSuffix(path.Base(majorVersion.ReplaceAllString(p, "")), ".go")
}

// dispatch returns the edits by which a function calls its copies. Unnamed parameters and results get
// names.
func dispatch(fset *token.FileSet, d *ast.FuncDecl, ids []string) (edits []edit) {
	n := 0
	named := func(fields *ast.FieldList) (names []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			if len(field.Names) == 0 {
				n++
				name := fmt.Sprintf("unnamed%d", n)
				at := fset.Position(field.Type.Pos()).Offset
				edits = append(edits, edit{at, at, name + " "})
				names = append(names, name+spread(field))
			}
			for _, id := range field.Names {
				name := id.Name
				if name == "_" {
					n++
					name = fmt.Sprintf("unnamed%d", n)
					edits = append(edits, edit{fset.Position(id.Pos()).Offset, fset.Position(id.End()).Offset, name})
				}
				names = append(names, name+spread(field))
			}
		}
		return names
	}
	before := ""
	if r := named(d.Recv); len(r) > 0 {
		before = r[0] + "."
	}
	args := strings.Join(named(d.Type.Params), ", ")
	var b strings.Builder
	for _, id := range ids {
		call := fmt.Sprintf("%s%s_%s(%s)", before, d.Name.Name, id, args)
		if d.Type.Results == nil {
			fmt.Fprintf(&b, " if settleMutant == %q { %s; return };", id, call)
		} else {
			fmt.Fprintf(&b, " if settleMutant == %q { return %s };", id, call)
		}
	}
	at := fset.Position(d.Body.Lbrace).Offset + 1
	return append(edits, edit{at, at, b.String()})
}

func spread(field *ast.Field) string {
	if _, is := field.Type.(*ast.Ellipsis); is {
		return "..."
	}
	return ""
}
