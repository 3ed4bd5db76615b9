package program

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Table is the set of rules of a deployment at one time. It is immutable.
type Table struct {
	exact    map[string]*Rule
	patterns []*Rule // the longest first
}

func newTable(rules map[string]Rule) *Table {
	t := &Table{exact: map[string]*Rule{}}
	for _, r := range rules { // any order: sorted below
		switch {
		case r.Target == (Target{}) && r.broken == nil:
		case r.Exact():
			t.exact[r.Spaces] = &r
		default:
			t.patterns = append(t.patterns, &r)
		}
	}
	slices.SortFunc(t.patterns, func(a, b *Rule) int {
		return cmp.Or(len(b.Spaces)-len(a.Spaces), strings.Compare(a.Spaces, b.Spaces))
	})
	return t
}

// Exactly returns the choice of the rule about a pattern; the zero Choice if there is none.
func (t *Table) Exactly(spaces string) Choice {
	for _, r := range t.All() {
		if r.Spaces == spaces {
			return r.Choice
		}
	}
	return Choice{}
}

// With returns a table in which the rule about a pattern has another choice.
func (t *Table) With(spaces string, c Choice) *Table {
	rules := map[string]Rule{}
	for _, r := range t.All() {
		rules[r.Spaces] = *r
	}
	rules[spaces] = Rule{Spaces: spaces, Choice: c}
	return newTable(rules)
}

// Rule returns the rule that applies to a space, nil if there is none: the space's own, else that
// of the longest prefix, else the rule about all.
func (t *Table) Rule(space string) *Rule {
	if r := t.exact[space]; r != nil {
		return r
	}
	for _, r := range t.patterns {
		if r.Matches(space) {
			return r
		}
	}
	return nil
}

// Of returns what a space is to run, and false if no rule applies to it.
func (t *Table) Of(space string) (Target, bool) {
	r := t.Rule(space)
	if r == nil || r.broken != nil {
		return Target{}, false
	}
	return r.Choice.Of(space), true
}

// All returns the rules: those about one space by name, then the patterns, the longest first.
func (t *Table) All() []*Rule {
	var all []*Rule
	for _, space := range slices.Sorted(maps.Keys(t.exact)) {
		all = append(all, t.exact[space])
	}
	return append(all, t.patterns...)
}

// About returns the rules by which spaces run a program, in the order of All.
func (t *Table) About(program string) []*Rule {
	return slices.DeleteFunc(t.All(), func(r *Rule) bool { return r.Program != program })
}
