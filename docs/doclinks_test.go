package docs_test

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var docLink = regexp.MustCompile(`\[(space|model)\.(\w+)(?:\.(\w+))?\]`)

// The comments of the root package link to methods of the types that it renames; those methods exist.
func TestDocLinks_LeadToWhatIsThere(t *testing.T) {
	production := func(name string) bool { return !strings.HasSuffix(name, "_test.go") }
	known := map[string][]string{}
	for _, dir := range []string{"space", "model"} {
		for _, f := range parse(t, filepath.Join("..", dir), production) {
			known[dir] = append(known[dir], declared(f)...)
		}
	}
	found := 0
	for _, f := range parse(t, "..", production) {
		for _, c := range f.Comments {
			for _, m := range docLink.FindAllStringSubmatch(c.Text(), -1) {
				found++
				if name := strings.TrimSuffix(m[2]+"."+m[3], "."); !slices.Contains(known[m[1]], name) {
					t.Errorf("package settle: a comment links to %s, which there is not in package %s", name, m[1])
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("the comments of package settle have %d links; the aliases alone have more", found)
	}
}

// declared returns the types of a file, and Type.Method for methods.
func declared(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				names = append(names, receiver(d)+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					names = append(names, ts.Name.Name)
				}
			}
		}
	}
	return names
}
