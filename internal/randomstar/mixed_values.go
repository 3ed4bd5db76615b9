package randomstar

import (
	"fmt"
	"math/rand/v2"
)

// Lambdas is Mixed with lambdas in variables. A run that has one cannot be stored, and is loaded from its inputs.
func Lambdas(seed uint64) *Source {
	return (&mixed{Rand: rand.New(rand.NewPCG(seed, 3)), lambdas: true}).source(seed)
}

// Capturing is Lambdas whose lambdas use any variable. A workflow has no such lambda if the variable is assigned after the
// lambda is made, so it may be refused.
func Capturing(seed uint64) *Source {
	return (&mixed{Rand: rand.New(rand.NewPCG(seed, 4)), lambdas: true, capturing: true}).source(seed)
}

// lambda writes a lambda that is kept, or a variable for lambdas.
func (m *mixed) lambda(depth int) {
	switch k := m.IntN(6); {
	case k < 2 && m.loops == 0 && !m.capturing:
		e, c := m.int(), m.fresh("c")
		m.line(depth, "%s = %s", c, e)
		m.fixed = append(m.fixed, c)
	case k < 3:
		d, f := m.atom(), m.fresh("f")
		m.line(depth, "%s = lambda k, d = %s: (k + d) %% 13", f, d)
		m.funcs = append(m.funcs, f)
	case k < 5:
		uses := m.fixed
		if m.capturing {
			uses = m.ints
		}
		if len(uses) == 0 {
			return
		}
		body := fmt.Sprintf(m.oneOf("(k + %s) %%%% 13", "k if %s > 3 else 4", "sum([k + e for e in range(%s %%%% 3)])", "(lambda e: (e + %s) %%%% 7)(k)"), m.of(uses))
		f := m.fresh("f")
		m.line(depth, "%s = lambda k: "+body, f)
		m.funcs = append(m.funcs, f)
	case len(m.lists) > 0 && len(m.funcs) > 0:
		over, l := m.of(m.lists), m.fresh("l")
		m.line(depth, "%s = [%s(e) for e in %s if type(e) == \"int\"]", l, m.of(m.funcs), over)
		m.lists = append(m.lists, l)
	}
}

// other assigns a value of another type, or compares two.
func (m *mixed) other(depth int) {
	if len(m.others) > 1 && m.IntN(3) > 0 {
		v, a, b := m.fresh("v"), m.of(m.others), m.of(m.others)
		m.line(depth, "%s = [%s == %s, %s in [%s], 1].index(%s)", v, a, b, a, b, m.oneOf("True", "False", "1"))
		m.ints = append(m.ints, v)
		return
	}
	list := []string{
		fmt.Sprintf("range(%s, %s + 4, 3)", m.atom(), m.atom()), fmt.Sprintf("set([%s, 1, 2])", m.atom()), fmt.Sprintf("\"%%d é\" %% (%s)", m.atom()),
		fmt.Sprintf("%s / 2", m.atom()), "twice", "sum", "b\"x\"", fmt.Sprintf("(%s, 1 << 80)", m.atom()), "None", fmt.Sprintf("{(%s, 1): [2]}", m.atom()), `error("B", "made")`,
	}
	for _, l := range m.lists {
		list = append(list, fmt.Sprintf("(%s, %s)", l, m.atom()))
	}
	for _, r := range m.tries {
		list = append(list, r+".error", r+".error", r)
	}
	e := m.of(list)
	for range 1 + m.IntN(2) { // two equal ones are worth a comparison
		o := m.fresh("o")
		m.line(depth, "%s = %s", o, e)
		m.others = append(m.others, o)
	}
}
