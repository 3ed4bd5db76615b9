package compile

import (
	"maps"
	"slices"

	"go.starlark.net/syntax"
)

// names is a set of variables.
type names map[string]bool

func (n names) clone() names { return maps.Clone(n) }

// meet returns the variables that have a value on all paths.
func meet(ways []names) names {
	if len(ways) == 0 {
		return names{}
	}
	out := ways[0].clone()
	for name := range out { // any order: each on its own
		for _, way := range ways[1:] {
			if !way[name] {
				delete(out, name)
			}
		}
	}
	return out
}

// variables are the variables of a function, without those of its comprehensions and lambdas.
type variables struct {
	all   names
	maybe names // assigned somewhere so far
}

func variablesOf(def *syntax.DefStmt) *variables {
	v := &variables{all: names{}, maybe: names{}}
	for _, p := range def.Params {
		switch p := p.(type) {
		case *syntax.Ident:
			v.all[p.Name] = true
		case *syntax.BinaryExpr:
			v.all[p.X.(*syntax.Ident).Name] = true
		}
	}
	for name := range v.all { // any order: each on its own
		v.maybe[name] = true
	}
	for _, s := range def.Body {
		v.declare(v.writes(s))
	}
	return v
}

func (v *variables) declare(list []string) {
	for _, name := range list {
		v.all[name] = true
	}
}

func (v *variables) undeclare(list []string) {
	for _, name := range list {
		delete(v.all, name)
	}
}

// targets returns the variables that an assignment to an expression sets.
func (v *variables) targets(lhs syntax.Expr) (list []string) {
	switch x := lhs.(type) {
	case *syntax.Ident:
		return []string{x.Name}
	case *syntax.ParenExpr:
		return v.targets(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			list = append(list, v.targets(e)...)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			list = append(list, v.targets(e)...)
		}
	}
	return list
}

// writes returns the variables that a statement may set.
func (v *variables) writes(s syntax.Stmt) (list []string) {
	add := func(more []string) {
		for _, name := range more {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	all := func(stmts []syntax.Stmt) {
		for _, s := range stmts {
			add(v.writes(s))
		}
	}
	switch s := s.(type) {
	case *syntax.AssignStmt:
		add(v.targets(s.LHS))
	case *syntax.DefStmt:
		add([]string{s.Name.Name})
	case *syntax.IfStmt:
		all(s.True)
		all(s.False)
	case *syntax.ForStmt:
		add(v.targets(s.Vars))
		all(s.Body)
	case *syntax.WhileStmt:
		all(s.Body)
	}
	return list
}

// assigned returns the variables that have a value after statements, on every path.
func (v *variables) assigned(list []syntax.Stmt, before names) names {
	known := before.clone()
	for _, s := range list {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			for _, name := range v.targets(s.LHS) {
				known[name] = true
			}
		case *syntax.IfStmt:
			known = meet([]names{v.assigned(s.True, known), v.assigned(s.False, known)})
		}
	}
	return known
}

// in returns the variables that statements use, and those that they may set.
func (v *variables) in(list []syntax.Stmt) (used, written []string) {
	for _, s := range list {
		for _, id := range v.reads(s) {
			if !slices.Contains(used, id.Name) {
				used = append(used, id.Name)
			}
		}
		for _, name := range v.writes(s) {
			if !slices.Contains(written, name) {
				written = append(written, name)
			}
			if !slices.Contains(used, name) {
				used = append(used, name)
			}
		}
	}
	return used, written
}

// reads returns the places in a tree that read a variable of the function.
func (v *variables) reads(n syntax.Node) (list []*syntax.Ident) {
	r := reader{v: v}
	r.node(n)
	return r.list
}

// reader walks a tree in which inner scopes hide variables.
type reader struct {
	v      *variables
	hidden []string
	list   []*syntax.Ident
}

func (r *reader) node(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil:
			return false
		case *syntax.Ident:
			if r.v.all[n.Name] && !slices.Contains(r.hidden, n.Name) {
				r.list = append(r.list, n)
			}
			return false
		case *syntax.DotExpr: // the name of an attribute is not a variable
			r.node(n.X)
			return false
		case *syntax.CallExpr:
			r.node(n.Fn)
			for _, arg := range n.Args {
				if b, is := arg.(*syntax.BinaryExpr); is && b.Op == syntax.EQ {
					arg = b.Y
				}
				r.node(arg)
			}
			return false
		case *syntax.Comprehension:
			r.comprehension(n)
			return false
		case *syntax.LambdaExpr:
			r.lambda(n)
			return false
		case *syntax.AssignStmt:
			r.node(n.RHS)
			r.target(n.LHS, n.Op != syntax.EQ)
			return false
		case *syntax.ForStmt:
			r.node(n.X)
			r.target(n.Vars, false)
			for _, s := range n.Body {
				r.node(s)
			}
			return false
		}
		return true
	})
}

// target collects the reads of an assignment's target.
func (r *reader) target(x syntax.Expr, augmented bool) {
	switch x := x.(type) {
	case *syntax.Ident:
		if augmented {
			r.node(x)
		}
	case *syntax.ParenExpr:
		r.target(x.X, augmented)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			r.target(e, augmented)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			r.target(e, augmented)
		}
	default:
		r.node(x)
	}
}

func (r *reader) comprehension(c *syntax.Comprehension) {
	was := len(r.hidden)
	for i, clause := range c.Clauses {
		switch clause := clause.(type) {
		case *syntax.ForClause:
			if i == 0 {
				r.node(clause.X) // outside of its scope
			}
			r.hidden = append(r.hidden, r.v.targets(clause.Vars)...)
			if i > 0 {
				r.node(clause.X)
			}
		case *syntax.IfClause:
			r.node(clause.Cond)
		}
	}
	r.node(c.Body)
	r.hidden = r.hidden[:was]
}

func (r *reader) lambda(f *syntax.LambdaExpr) {
	was := len(r.hidden)
	for _, p := range f.Params {
		switch p := p.(type) {
		case *syntax.Ident:
			r.hidden = append(r.hidden, p.Name)
		case *syntax.BinaryExpr:
			r.node(p.Y)
			r.hidden = append(r.hidden, p.X.(*syntax.Ident).Name)
		case *syntax.UnaryExpr:
			if id, is := p.X.(*syntax.Ident); is {
				r.hidden = append(r.hidden, id.Name)
			}
		}
	}
	r.node(f.Body)
	r.hidden = r.hidden[:was]
}
