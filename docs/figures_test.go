package docs_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"time"
)

// A figure in a page is compared with its constant or default: a figure that is not compared becomes wrong in
// time, and one wrong figure discredits the others.
//
// `model.MaxNameLen` names a constant, `space.Config.MaxLater` the default of a field of that type. Both are
// read from the syntax of the source, so that unexported ones can be named, too.

// source is the syntax of one package, without its tests.
type source struct {
	dir   string
	files []*ast.File
	// constants are their expressions, by name.
	constants map[string]ast.Expr
}

// sources caches packages by directory.
var sources = map[string]*source{}

func load(dir string) (*source, error) {
	if s := sources[dir]; s != nil {
		return s, nil
	}
	names, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("there is no package in %s", dir)
	}
	s := &source{dir: dir, constants: map[string]ast.Expr{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
		s.collect(f)
	}
	sources[dir] = s
	return s, nil
}

// collect adds the constants of a file.
func (s *source) collect(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, x := range v.Values {
				s.constants[v.Names[i].Name] = x
			}
		}
	}
}

// figures returns the values of a constant or field such as model.MaxNameLen or space.Config.MaxLater.
// Durations are nanoseconds.
func figures(place string) ([]float64, error) {
	slash := strings.LastIndexByte(place, '/') + 1
	base, names, ok := strings.Cut(place[slash:], ".")
	if !ok {
		return nil, fmt.Errorf("%q is no place in the source", place)
	}
	dir := place[:slash] + base
	if dir == "settle" {
		dir = "."
	}
	s, err := load(dir)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(names, ".")
	if len(parts) == 1 {
		x, ok := s.constants[names]
		if !ok {
			return nil, fmt.Errorf("package %s has no constant %s", s.dir, names)
		}
		n, err := number(s.eval(x), place)
		return []float64{n}, err
	}
	return s.defaultOf(parts[len(parts)-1])
}

// defaultOf returns the nonzero constants that the package assigns to a field, in f = x, g(&f, x) and {f: x}:
// its default, and perhaps a bound.
func (s *source) defaultOf(field string) (found []float64, err error) {
	add := func(name, value ast.Expr) {
		if u, ok := name.(*ast.UnaryExpr); ok && u.Op == token.AND {
			name = u.X
		}
		if sel, ok := name.(*ast.SelectorExpr); ok {
			name = sel.Sel
		}
		if id, ok := name.(*ast.Ident); ok && id.Name == field {
			if v, err := number(s.eval(value), field); err == nil && v != 0 {
				found = append(found, v)
			}
		}
	}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if len(n.Lhs) == 1 && len(n.Rhs) == 1 && n.Tok == token.ASSIGN {
					add(n.Lhs[0], n.Rhs[0])
				}
			case *ast.CallExpr:
				if len(n.Args) == 2 {
					add(n.Args[0], n.Args[1])
				}
			case *ast.KeyValueExpr:
				add(n.Key, n.Value)
			}
			return true
		})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("package %s sets no %s to a constant", s.dir, field)
	}
	return found, nil
}

func number(v constant.Value, what string) (float64, error) {
	if v.Kind() != constant.Int && v.Kind() != constant.Float {
		return 0, fmt.Errorf("%s is no number that this test can work out", what)
	}
	x, _ := constant.Float64Val(v)
	return x, nil
}

var units = map[string]time.Duration{
	"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// eval evaluates the kinds of expressions that limits are written in; any other is unknown.
func (s *source) eval(x ast.Expr) constant.Value {
	switch x := x.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.ParenExpr:
		return s.eval(x.X)
	case *ast.Ident:
		if c, ok := s.constants[x.Name]; ok {
			return s.eval(c)
		}
	case *ast.SelectorExpr:
		pkg, _ := x.X.(*ast.Ident)
		if pkg != nil && pkg.Name == "time" && units[x.Sel.Name] != 0 {
			return constant.MakeInt64(int64(units[x.Sel.Name]))
		}
		if pkg != nil {
			if other, err := load(pkg.Name); err == nil && other.constants[x.Sel.Name] != nil {
				return other.eval(other.constants[x.Sel.Name])
			}
		}
	case *ast.BinaryExpr:
		a, b := s.eval(x.X), s.eval(x.Y)
		if a.Kind() == constant.Unknown || b.Kind() == constant.Unknown {
			break
		}
		switch x.Op {
		case token.SHL:
			n, _ := constant.Uint64Val(b)
			return constant.Shift(a, token.SHL, uint(n))
		case token.ADD, token.SUB, token.MUL:
			return constant.BinaryOp(a, x.Op, b)
		}
	}
	return constant.MakeUnknown()
}

// rows returns the trimmed cells of the rows of a page's tables, without their heads.
func rows(text string) [][]string {
	var all [][]string
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "|---"):
			inTable = true
		case inTable:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	return all
}
