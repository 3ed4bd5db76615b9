package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// CheckArguments returns an error if a run cannot begin with arguments of the given names: one that is missing, or that the
// first function does not have. A function that takes all arguments as one object takes any.
func (g *Graph) CheckArguments(given []string) error {
	f := &g.Funcs[0]
	if f.Whole {
		return nil
	}
	var missing []string
	for i := range f.Params {
		if p := &f.Params[i]; p.Default == nil && !slices.Contains(given, p.Name) {
			missing = append(missing, p.Name)
		}
	}
	for _, name := range given {
		if !slices.ContainsFunc(f.Params, func(p Param) bool { return p.Name == name }) {
			return fmt.Errorf("workflow %s has no argument %.100q; %s", g.Name, name, f.arguments())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("workflow %s needs the argument %s, which is missing; %s", g.Name, strings.Join(missing, " and "), f.arguments())
	}
	return nil
}

// arguments says which arguments a function has.
func (f *Func) arguments() string {
	if len(f.Params) == 0 {
		return "it has none"
	}
	var names []string
	for i := range f.Params {
		name := f.Params[i].Name
		if f.Params[i].Default != nil {
			name += " (optional)"
		}
		names = append(names, name)
	}
	return "it has " + strings.Join(names, ", ")
}
