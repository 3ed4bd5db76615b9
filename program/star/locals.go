package star

import (
	"fmt"

	"go.starlark.net/syntax"
)

// An assignment in a function makes a local variable, so that `total += e` changes no cell total of the file: it fails when it runs, with
// words about a variable that the author does not know of. It is reported when the file is compiled, with what to write.

// refuseLocalUpdates returns an error for the first update, such as x += 1, of a name of the file in a function that has no such variable.
func refuseLocalUpdates(tree *syntax.File) error {
	u := updates{globals: globalsOf(tree)}
	for _, s := range tree.Stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if def, is := n.(*syntax.DefStmt); is && u.err == nil {
				u.function(def)
			}
			return u.err == nil
		})
	}
	return u.err
}

// updates are the updates of a file. globals has, for each name of the file, whether it is that of a place.
type updates struct {
	globals map[string]bool
	err     error
}

// function checks one function, without those in it.
func (u *updates) function(def *syntax.DefStmt) {
	own := map[string]bool{}
	for _, p := range def.Params {
		bind(own, p)
	}
	var found []*syntax.AssignStmt
	inside(def, func(n syntax.Node) {
		switch n := n.(type) {
		case *syntax.AssignStmt:
			if n.Op != syntax.EQ {
				found = append(found, n)
			} else {
				bind(own, n.LHS)
			}
		case *syntax.ForStmt:
			bind(own, n.Vars)
		case *syntax.DefStmt:
			own[n.Name.Name] = true
		}
	})
	for _, s := range found {
		if name, is := s.LHS.(*syntax.Ident); is && !own[name.Name] && u.err == nil {
			u.update(s, name.Name)
		}
	}
}

func (u *updates) update(s *syntax.AssignStmt, name string) {
	place, global := u.globals[name]
	op := s.Op.String()
	switch {
	case !global:
	case place:
		u.err = syntax.Error{Pos: s.OpPos, Msg: fmt.Sprintf("%s %s ... would make a variable of this function; to change the document, write %s.set(%s %s ...)", name, op, name, name, op[:len(op)-1])}
	default:
		u.err = syntax.Error{Pos: s.OpPos, Msg: fmt.Sprintf("%s %s ... would make a variable of this function, and names of a file are assigned once; keep what changes in a document: %s = cell(...), and %s.set(%s %s ...)", name, op, name, name, name, op[:len(op)-1])}
	}
}

// inside visits the nodes of a function, and not those of functions in it.
func inside(def *syntax.DefStmt, visit func(syntax.Node)) {
	for _, s := range def.Body {
		syntax.Walk(s, func(n syntax.Node) bool {
			if n == nil {
				return false
			}
			visit(n)
			_, another := n.(*syntax.DefStmt)
			return !another
		})
	}
}

// bind adds the names that an assignment to x makes.
func bind(own map[string]bool, x syntax.Node) {
	switch x := x.(type) {
	case *syntax.Ident:
		own[x.Name] = true
	case *syntax.ParenExpr:
		bind(own, x.X)
	case *syntax.BinaryExpr: // a parameter with a default
		bind(own, x.X)
	case *syntax.UnaryExpr: // *args, **kwargs
		if x.X != nil {
			bind(own, x.X)
		}
	case *syntax.TupleExpr:
		for _, e := range x.List {
			bind(own, e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			bind(own, e)
		}
	}
}

// globalsOf returns the names of a file, and whether each is that of a place: of a cell, or of what a node derives.
func globalsOf(tree *syntax.File) map[string]bool {
	globals := map[string]bool{}
	for _, s := range tree.Stmts {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			if name, is := s.LHS.(*syntax.Ident); is {
				globals[name.Name] = isPlace(s.RHS)
			} else {
				bind(globals, s.LHS)
			}
		case *syntax.LoadStmt:
			for _, to := range s.To {
				globals[to.Name] = true // probably
			}
		}
	}
	return globals
}

func isPlace(x syntax.Expr) bool {
	call, is := x.(*syntax.CallExpr)
	if !is {
		return false
	}
	fn, is := call.Fn.(*syntax.Ident)
	return is && (fn.Name == "cell" || fn.Name == "doc")
}
