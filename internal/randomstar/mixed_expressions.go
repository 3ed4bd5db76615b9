package randomstar

import (
	"fmt"
)

// deep returns an expression with a number as its value, in which actions and helpers are called.
func (m *mixed) deep(levels int) string {
	if levels == 0 {
		return m.oneOf(m.call(false), m.int(), m.combined())
	}
	sub := func() string { return m.deep(levels - 1) }
	switch m.IntN(13) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s) %% 31", sub(), m.oneOf("+", "-", "*"), sub())
	case 2:
		return fmt.Sprintf("inc(%s)", sub())
	case 3:
		return fmt.Sprintf("add(%s, y = %s)", sub(), sub())
	case 4:
		return fmt.Sprintf("(%s if %s else %s)", sub(), m.deepCond(), sub())
	case 5:
		return fmt.Sprintf("twice(%s) %% 9", sub())
	case 6:
		if len(m.helpers) > 0 {
			return fmt.Sprintf("%s(%s, %s)", m.of(m.helpers), sub(), sub())
		}
	case 7:
		return fmt.Sprintf("[%s, %s][%s %% 2]", sub(), sub(), sub())
	case 8:
		return fmt.Sprintf("{\"a\": %s, %s: %s}.get(\"a\", 0)", sub(), m.oneOf("3", "\"a\"", "inc(1)"), sub())
	case 9:
		return fmt.Sprintf("(lambda k, j = 2: k + j)(%s, j = %s)", sub(), sub())
	case 10:
		if len(m.lists) > 0 {
			return fmt.Sprintf("(len(%s) + grow(%s, %s))", m.of(m.lists), m.of(m.lists), sub())
		}
	case 11:
		return m.comprehension(sub)
	case 12:
		return fmt.Sprintf("max(key = twice if small(%s) else loud, *[%s, %s])", m.int(), sub(), sub())
	}
	return sub()
}

// comprehension returns an expression over a comprehension with calls in its parts.
func (m *mixed) comprehension(sub func() string) string {
	m.n += 2
	x, y := fmt.Sprintf("x%d", m.n-1), fmt.Sprintf("x%d", m.n)
	switch m.IntN(5) {
	case 0:
		return fmt.Sprintf("len([%s for %s in part(%s)[\"a\"] for %s in range(inc(%s) %% 3)])", y, x, sub(), y, m.atom())
	case 1:
		return fmt.Sprintf("sum([add(%s, %s) for %s in [1, 2] if small(%s) for %s in range(%s)])", x, y, x, x, y, x)
	case 2:
		return fmt.Sprintf("len({inc(%s): %s for %s in [1, 1, %s]})", x, sub(), x, m.atom())
	case 3:
		return fmt.Sprintf("sum([inc(%s) + %s for %s in range(%d)])", x, m.atom(), x, m.IntN(3))
	}
	return fmt.Sprintf("len([%s for %s in echo([%s, 2])])", x, x, sub())
}

// deepCond returns a condition in which actions are called.
func (m *mixed) deepCond() string {
	switch m.IntN(4) {
	case 0:
		return fmt.Sprintf("%s and small(%s)", m.cond(), m.int())
	case 1:
		return fmt.Sprintf("%s or not small(%s)", m.cond(), m.int())
	case 2:
		return fmt.Sprintf("small(%s) and (loud(%s) > 1 or small(%s))", m.int(), m.call(false), m.int())
	}
	return fmt.Sprintf("%s %s %s", m.call(false), m.oneOf("<", "==", ">="), m.oneOf(m.call(false), m.atom()))
}

// expression writes a statement with calls inside of expressions.
func (m *mixed) expression(depth int) {
	e := m.deep(1 + m.IntN(2))
	switch k := m.IntN(12); {
	case k < 2 && len(m.lists) > 0:
		m.line(depth, "%s.append(%s)", m.of(m.lists), e)
	case k < 3 && len(m.lists) > 0 && m.IntN(6) == 0:
		m.line(depth, "%s.%s(%s)", m.of(m.lists), m.oneOf("extend", "insert", "nothing"), e) // may fail
	case k < 4 && len(m.dicts) > 0:
		m.line(depth, "%s[\"n\"] %s %s + 1", m.of(m.dicts), m.oneOf("=", "+="), e)
	case k < 5 && m.loops > 0:
		m.line(depth, "if %s: %s", m.deepCond(), m.oneOf("break", "continue", "return "+e))
	case k < 6 && m.IntN(4) == 0:
		m.line(depth, "if %s: return %s + 0", m.cond(), e)
	case k < 7:
		m.line(depth, "%s += %s + 0", m.of(m.ints), e)
	case k < 8:
		r := m.fresh("r")
		mark := m.oneOf("\x01inc(%s)", "\x01twice(%s)", "\x01add(1, %s)", "retry(\x01inc(%s), attempts = 2)")
		m.line(depth, "%s = attempt("+mark+")", r, e)
		m.tries = append(m.tries, r)
	case k < 9:
		a, b := m.fresh("v"), m.fresh("v")
		m.line(depth, "%s, %s = \x02parallel(\x01inc(%s), \x01add(%s, %s))\x03", a, b, m.int(), e, m.int())
		m.ints = append(m.ints, a, b)
	case k < 10:
		m.line(depth, "sleep(%s %% 3)", e)
	default:
		v := m.fresh("v")
		m.line(depth, "%s = %s", v, e)
		m.ints = append(m.ints, v)
	}
}

// condition writes a wait for a condition: the documents t and f are true and false, and documents that begin with v are what the
// rest of their name says.
func (m *mixed) condition(depth int) {
	c := m.oneOf("get(\"t\") and %s + 1", "[get(\"v%%d\" %% e) for e in range(%s %% 3)] and 5", "seen(%s) and 2", "fail(error(\"B\", \"%s\"))")
	c = fmt.Sprintf(c, m.atom())
	if m.IntN(2) == 0 {
		r := m.fresh("r")
		until := m.oneOf(c, c, "get(\"f\")", "not get(\"t\") or seen(-1)")
		m.line(depth, "%s = attempt(\x05wait(lambda: %s, timeout = %s))", r, until, m.oneOf(`"1h"`, "30", m.deep(1)+" % 4 + 1"))
		m.tries = append(m.tries, r)
		return
	}
	v := m.fresh("v")
	m.line(depth, "%s = wait(lambda: get(\"t\") and %s %% 9 + 1)", v, m.atom())
	m.ints = append(m.ints, v)
}
