package randomstar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Source is a program in two forms: a workflow, and the same for an interpreter in which calls inside of combinators
// are values: later(f, x) is the call f(x) to be made, retry, timeout, parallel, waiting and until take and return such values,
// and now(v) or attempt(v) makes the call.
type Source struct{ lines []string }

// Marks in the lines of a source.
const (
	markCall = "\x01" // before a call inside of a combinator
	markNow  = "\x02" // around a combinator that is not attempted
	markEnd  = "\x03"
	markWait = "\x04" // before the name wait
	// markUntil is before the name wait of a condition that is attempted.
	markUntil = "\x05"
)

// Workflow returns the text of the workflow. Its name is w.
func (s *Source) Workflow() string {
	text := strings.NewReplacer(markCall, "", markNow, "", markEnd, "", markWait, "", markUntil, "").Replace(strings.Join(s.lines, "\n"))
	return text + "\nworkflow('w', run)\n"
}

// Oracle returns the text for the interpreter.
func (s *Source) Oracle() string {
	var b strings.Builder
	for _, line := range s.lines {
		for {
			before, rest, is := strings.Cut(line, markCall)
			b.WriteString(before)
			if !is {
				break
			}
			name, args, _ := strings.Cut(rest, "(")
			b.WriteString("later(" + name + ", ")
			line = args
		}
		b.WriteString("\n")
	}
	return strings.NewReplacer(markNow, "now(", markEnd, ")", markWait+"wait", "waiting", markUntil+"wait", "until").Replace(b.String())
}

// Lines returns the number of lines.
func (s *Source) Lines() int { return len(s.lines) }

// Without returns the source without a line and what is nested below it.
func (s *Source) Without(at int) *Source {
	depth := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	end := at + 1
	for end < len(s.lines) && depth(s.lines[end]) > depth(s.lines[at]) {
		end++
	}
	return &Source{slices.Delete(slices.Clone(s.lines), at, end)}
}

// Constructs are patterns of the constructs that the workflows have.
var Constructs = map[string]string{
	"a call": `= inc\(`, "a call with a named argument": `add\(.*, y = `, "augmented assignment of a call": ` v?\w+ \+= (inc|add|h\d|grow)\(`,
	"augmented assignment to an element": `"\] \+= (inc|add|h\d|grow|retry|timeout)\(`, "assignment to an element": `\] = (inc|add|h\d|grow|retry|timeout)\(`,
	"two targets": `, \w+ = (pair|parallel)\(`, "if": `(?m)^ +if .*:$`, "elif": `elif `, "else": `else:`, "for": `for \w+ in range`, "for with two targets": `(?m)^ +for \w+, \w+ in `,
	"for over a dict": `\.items\(\):`, "while": `while w`, "while with an action": `while small\(`, "break": `break`, "continue": `continue`, "early return": `if .*: return `,
	"return of a call": `return (inc|add|h\d)\(`, "condition with an action": `if small\(`, "comprehension of calls": `= \[inc\(`, "augmented comprehension of calls": `\+= \[inc\(`,
	"comprehension without calls": `\[e \+ 1 for`, "conditional expression": ` if \S+ > \S+ else `, "and": ` and loud\(`, "or": ` or loud\(`, "slice": `\[:2\]`, "index": `l\d+\[\w+\]`,
	"division": ` // `, "nested data": `\{"a": \[`, "shared list": `(?m)^ +l\d+ = l\d+$`, "part of a value": `\.get\("a"`, "append": `\.append\(`, "lambda": `lambda `, "lambda that is kept": `= lambda k`, "kept lambda that uses a variable": `= lambda k: .*\bc\d`, "call of a kept lambda": `\bf\d+\(`, "constant": `FIXED\[`,
	"helper that changes its argument": `= grow\(`, "parallel of calls": `parallel\([a-z]`, "parallel of a list": `parallel\(\[.*\w\)(, on_error = "collect")?[\]\)]`, "parallel of a comprehension": `parallel\(\[.* for \w+ in `,
	"parallel with a filter": `parallel\(\[.* if \w+ != 7\]`, "collected errors": `on_error = "collect"`, "attempt": `attempt\((inc|add)`, "attempt of parallel": `attempt\(parallel\(`,
	"attempt of a helper": `attempt\(h\d`, "attempt of a retry": `attempt\(retry\(`, "retry": `retry\(`, "retry by type": `on = \["`, "backoff": `backoff`, "retry of a timeout": `retry\(timeout\(`,
	"timeout": `timeout\(`, "sleep": `sleep\(`, "wait": `wait\("s"\)`, "wait with timeout": `wait\("never"`, "fail": `: fail\("no"\)`, "fail with an error": `: fail\(error\(`,
	"fail with a handled error": `fail\(\w+\.error\)`, "handler by type": `if \w+\.failed\("`, "handler by ancestor": `if \w+\.failed\("Base"\)`, "two statements in a line": `; `, "two calls in a line": `\); \w+ \+= .*; `,
	"helper": `h1\(`, "helper of a helper": `(?s)def h2.*h1\(.*def run`, "error as a value": `= problem\(`, "exchange": `(?m)^ +\w+, \w+ = \w+, \w+$`, "data through an action": `= echo\(`,
	"loop without actions": `(?m)^ +while w\d+ < 2:$`, "helper that changes an element": `"\] \+= bump\(`, "negated action": `(if|while) not small\(`, "range as a value": `= range\(`, "set as a value": `= set\(`, "large int": `1 << 80`, "function as a value": `= (twice|sum)\b`,
	"error as a variable": `(?m) = r\d+\.error$`, "comparison of values": `\[\w+ == \w+, \w+ in \[`, "loop over a list that may change": `(?m)for i\d+ in l\d+:$`, "loop over bytes": `\.elems\(\):`, "return of a comprehension of calls": `return \[inc`,
	"a call in a sum": `\(\w+\([^()]*\) [-+*] `, "a call of a call": `inc\(inc\(`, "a call in a dict": `\{"a": \w+\(`, "a call in a method": `\.append\(.*(inc|add)\(`, "a call in a star argument": `, \*\[`,
	"a call in a side of a conditional expression": ` if .*small\(.* else (inc|add)\(`, "and with a call": ` and (not )?small\(`, "or with a call": ` or (not )?small\(`, "elif with a call": `elif .*small\(`, "while with a call in an expression": `while inc\(`,
	"comprehension of two loops": `\[[^\[\]]* for \w+ in .* for \w+ in range\(`, "comprehension with a call in a condition": ` if small\(\w+\)( for|\])`, "comprehension over a call": ` in (part|echo)\(`, "dict comprehension of calls": `\{inc\(\w+\): `,
	"arguments with calls in parallel": `parallel\(inc\(.*, add\((inc|add)`, "arguments with calls in attempt": `attempt\((inc|add|twice)\((inc|add)\(`, "a list that changes in its expression": `len\(l\d+\) \+ grow\(`,
	"sleep with a call": `sleep\(.*(inc|add)\(`, "wait for a condition": `= wait\(lambda: get`, "attempt of a condition": `attempt\(wait\(lambda`, "a condition that is not met": `wait\(lambda: (get\("f"\)|not get)`, "a condition that fails": `wait\(lambda: fail`,
	"a condition of a function": `wait\(lambda: seen\(`, "a condition with a call in its timeout": `wait\(lambda: .*timeout = .*(inc|add|h\d)\(`, "early return in nested loops": `(?m)^            +if .*: return `,
	"result of an action in a list": `if len\(\w+\) > 0: \w+\[0\] = `,
}

// Mixed returns a random program of a seed with every supported construct. Its workflow has the parameter n, and calls
// the actions inc, add, small, part and echo.
func Mixed(seed uint64) *Source {
	return (&mixed{Rand: rand.New(rand.NewPCG(seed, 2))}).source(seed)
}

func (m *mixed) source(seed uint64) *Source {
	m.lines = []string{
		"load('actions', 'add', 'echo', 'inc', 'part', 'small')",
		"FIXED = {\"a\": [1, 2], \"b\": 3}",
		"def twice(x): return x * 2",
		"def loud(x):",
		"    if x > 20: fail(error(\"A\", \"loud\"))",
		"    return x",
		"def plain(v): return v.type if type(v) == \"error\" else [e.type if type(e) == \"error\" else e for e in v] if type(v) in (\"list\", \"tuple\") else v",
		"def told(r): return [r.ok, plain(r.value), r.error.type if r.failed() else None, r.failed(\"Base\")]",
		"def grow(xs, x):",
		"    y = inc(x)",
		"    xs.append(y)",
		"    if len(xs) > 4: return add(y, len(xs))",
		"    return len(xs)",
		"def show(o): return o.type if type(o) == \"error\" else told(o) if type(o) == \"attempt\" else str(o)",
		"def bump(d, x):",
		"    d[\"n\"] = 9",
		"    y = inc(x)",
		"    return y",
		"def seen(x): return get(\"v%d\" % x) == x",
		"def pair(x):",
		"    y = inc(x)",
		"    return y, x",
		"def problem(x):",
		"    r = attempt(\x01inc(x))",
		"    return r.error",
	}
	size := 1 // most programs are small, so that there can be many
	if seed%5 == 0 {
		size = 2
	}
	for i := range m.IntN(3) {
		name := fmt.Sprintf("h%d", i+1)
		m.function(name, "x, y = 3", []string{"x", "y"}, size*(2+m.IntN(3)))
		m.helpers = append(m.helpers, name)
	}
	m.main = true
	m.function("run", "n, m = 2", []string{"n", "m"}, size*(5+m.IntN(6)))
	return &Source{m.lines}
}

// mixed is the state of the generator.
type mixed struct {
	*rand.Rand
	lines   []string
	helpers []string
	main    bool

	ints, lists, dicts, tries, others []string // variables with a value here
	funcs                             []string // variables with a function of a number here
	fixed                             []string // variables with a number that are not assigned again
	dead                              []string // names that may be used again
	n, loops, left                    int
	plain                             bool // statements without actions
	lambdas                           bool // there are variables with lambdas
	capturing                         bool // lambdas use any variable
}

func (m *mixed) line(depth int, format string, args ...any) {
	m.lines = append(m.lines, strings.Repeat("    ", depth)+fmt.Sprintf(format, args...))
}

func (m *mixed) function(name, params string, ints []string, statements int) {
	m.line(0, "def %s(%s):", name, params)
	m.ints, m.lists, m.dicts, m.tries, m.others, m.dead, m.n, m.left = slices.Clone(ints), nil, nil, nil, nil, nil, 0, statements
	m.funcs, m.fixed = nil, nil
	for m.left > 0 {
		m.statement(1)
	}
	if !m.main {
		if m.IntN(3) == 0 {
			m.line(1, "return %s", m.call(false))
		} else {
			m.line(1, "return %s", m.int())
		}
		return
	}
	var all []string
	all = append(append(all, m.ints...), m.lists...)
	all = append(all, m.dicts...)
	for _, r := range m.tries {
		all = append(all, "told("+r+")")
	}
	for _, o := range m.others {
		all = append(all, "show("+o+")")
	}
	m.line(1, "return [%s]", strings.Join(all, ", "))
}

func (m *mixed) fresh(kind string) string {
	if len(m.dead) > 0 && m.IntN(3) == 0 {
		i := m.IntN(len(m.dead))
		name := m.dead[i]
		m.dead = slices.Delete(m.dead, i, i+1)
		return name
	}
	m.n++
	return fmt.Sprintf("%s%d", kind, m.n)
}

func (m *mixed) of(list []string) string     { return list[m.IntN(len(list))] }
func (m *mixed) oneOf(list ...string) string { return m.of(list) }

func (m *mixed) atom() string {
	if m.IntN(4) == 0 {
		return fmt.Sprint(m.IntN(6))
	}
	return m.of(m.ints)
}

func (m *mixed) cond() string {
	c := fmt.Sprintf("%s %s %s", m.atom(), m.oneOf("<", ">", "==", "!=", "<=", ">="), m.atom())
	switch m.IntN(6) {
	case 0:
		return fmt.Sprintf("%s and loud(%s) > 2", c, m.atom())
	case 1:
		return fmt.Sprintf("%s or loud(%s) > 2", c, m.atom())
	case 2:
		return "not " + c
	}
	return c
}

// int returns an expression without actions.
func (m *mixed) int() string {
	if len(m.funcs) > 0 && m.IntN(3) == 0 {
		return fmt.Sprintf("%s(%s)", m.of(m.funcs), m.atom())
	}
	switch m.IntN(14) {
	case 0:
		return fmt.Sprintf("(%s + %s)", m.atom(), m.atom())
	case 1:
		return fmt.Sprintf("(%s - %s) %% 11", m.atom(), m.atom())
	case 2:
		return fmt.Sprintf("twice(%s) %% 9", m.atom())
	case 3:
		return m.either()
	case 4:
		return fmt.Sprintf("(lambda k: k + %s)(%s)", m.atom(), m.atom())
	case 5:
		return fmt.Sprintf("sum([e + 1 for e in range(%s %% 4)])", m.atom())
	case 6:
		return m.oneOf(`FIXED["b"]`, `FIXED["a"][1]`, `len(FIXED["a"])`)
	case 7:
		if len(m.lists) > 0 {
			return fmt.Sprintf("len(%s[:2])", m.of(m.lists))
		}
	case 8:
		if len(m.lists) > 0 {
			return fmt.Sprintf("sum([e if type(e) == \"int\" else 1 for e in %s])", m.of(m.lists))
		}
	case 9:
		if len(m.lists) > 0 && m.IntN(6) == 0 {
			return fmt.Sprintf("%s[%s]", m.of(m.lists), m.atom()) // may be out of range
		}
	case 10:
		if len(m.dicts) > 0 {
			return fmt.Sprintf("%s[\"n\"]", m.of(m.dicts))
		}
	case 12:
		return fmt.Sprintf("len(\"é%d\")", m.IntN(5))
	case 11:
		if m.IntN(8) == 0 {
			return fmt.Sprintf("%s // %s", m.atom(), m.atom()) // may be a division by zero
		}
	}
	return m.atom()
}

func (m *mixed) either() string {
	if m.main {
		return fmt.Sprintf("(%s if n > 1 else %s)", m.atom(), m.atom())
	}
	return fmt.Sprintf("(%s if %s > %s else %s)", m.atom(), m.atom(), m.atom(), m.atom())
}

// call returns the call of an action or a helper that returns a number. Inside of a combinator it has no effect on
// its arguments.
func (m *mixed) call(inside bool) string {
	mark := ""
	if inside {
		mark = markCall
	}
	if !inside && len(m.lists) > 0 && m.IntN(8) == 0 {
		return fmt.Sprintf("grow(%s, %s)", m.of(m.lists), m.int())
	}
	if !inside && len(m.dicts) > 0 && m.IntN(4) == 0 {
		return fmt.Sprintf("bump(%s, %s)", m.of(m.dicts), m.int())
	}
	if len(m.helpers) > 0 && m.IntN(4) == 0 {
		h := m.of(m.helpers)
		return mark + m.oneOf(fmt.Sprintf("%s(%s)", h, m.int()), fmt.Sprintf("%s(%s, y = %s)", h, m.int(), m.int()), fmt.Sprintf("%s(%s, %s)", h, m.int(), m.atom()))
	}
	switch m.IntN(5) {
	case 0:
		return mark + fmt.Sprintf("add(%s, y = %s)", m.int(), m.int())
	case 1:
		return mark + fmt.Sprintf("add(%s, %s)", m.int(), m.int())
	default:
		return mark + fmt.Sprintf("inc(%s)", m.int())
	}
}

// action returns the call of an action, inside of a policy or not.
func (m *mixed) action() string {
	c := markCall + m.oneOf(fmt.Sprintf("inc(%s)", m.int()), fmt.Sprintf("add(%s, %s)", m.int(), m.int()))
	if m.IntN(4) == 0 {
		c = fmt.Sprintf("timeout(%s, %s)", c, m.oneOf(`"30s"`, "5", "2.5"))
	}
	if m.IntN(2) == 0 {
		more := m.oneOf("", "", `, on = ["A"]`, `, on = ["Base", "TimeoutError"]`) + m.oneOf("", "", `, backoff = "1s"`, `, backoff = 2, factor = 2, max_backoff = "1m"`)
		c = fmt.Sprintf("retry(%s, attempts = %d%s)", c, 1+m.IntN(4), more)
	}
	return c
}

// combined returns a combinator that returns a number.
func (m *mixed) combined() string {
	c := m.action()
	if call, is := strings.CutPrefix(c, markCall); is { // without a policy
		return call
	}
	return markNow + c + markEnd
}

// fan returns a parallel, and whether its result is a list.
func (m *mixed) fan() (text string, size int) {
	onError := m.oneOf("", "", `, on_error = "collect"`)
	if len(m.lists) > 0 && m.IntN(2) == 0 {
		x := m.fresh("x")
		m.dead = append(m.dead, x)
		where := m.oneOf("", fmt.Sprintf(" if %s != 7", x))
		f := m.oneOf("inc(%s)", "add(%s, 1)", "retry(\x01inc(%s), attempts = 2)")
		if len(m.helpers) > 0 && m.IntN(2) == 0 {
			f = m.of(m.helpers) + "(%s)"
		}
		f = fmt.Sprintf(f, x)
		if !strings.Contains(f, markCall) {
			f = markCall + f
		}
		return fmt.Sprintf("parallel([%s for %s in %s%s]%s)", f, x, m.of(m.lists), where, onError), -1
	}
	size = 1 + m.IntN(3)
	var calls []string
	for range size {
		calls = append(calls, m.oneOf(m.call(true), m.action()))
	}
	if m.IntN(2) == 0 {
		return fmt.Sprintf("parallel([%s]%s)", strings.Join(calls, ", "), onError), -1
	}
	return fmt.Sprintf("parallel(%s%s)", strings.Join(calls, ", "), onError), size
}

// suite writes statements whose variables are out of scope afterwards.
func (m *mixed) suite(depth, n int) {
	was := m.scope()
	for range n {
		m.statement(depth)
	}
	m.line(depth, "pass")
	m.leave(was)
}

func (m *mixed) leave(was variables) {
	for i, now := range [...]*[]string{&m.ints, &m.lists, &m.dicts, &m.tries, &m.others, &m.funcs} {
		m.dead = append(m.dead, (*now)[len(was[i]):]...)
		*now = slices.Clone(was[i])
	}
	m.fixed = slices.Clone(was[6])
}

func (m *mixed) statement(depth int) {
	m.left--
	if m.lambdas && m.IntN(4) == 0 {
		m.lambda(depth)
		return
	}
	if m.plain {
		m.without(depth)
		return
	}
	if depth < 4 && m.left > 0 && m.IntN(10) < 3 {
		m.compound(depth)
		return
	}
	switch k := m.IntN(36); {
	case k < 4:
		c := m.call(false)
		v := m.fresh("v")
		if m.IntN(4) == 0 {
			m.line(depth, "%s = %s; %s += %s; %s = %s", v, c, v, m.atom(), v, m.call(false))
		} else {
			m.line(depth, "%s = %s", v, c)
		}
		m.ints = append(m.ints, v)
	case k < 5:
		m.line(depth, "%s = %s", m.of(m.ints), m.call(false))
	case k < 7:
		m.line(depth, "%s += %s", m.of(m.ints), m.call(false))
	case k < 8:
		c := m.int()
		a, b := m.fresh("v"), m.fresh("v")
		m.line(depth, "%s, %s = pair(%s)", a, b, c)
		m.ints = append(m.ints, a, b)
	case k < 10 && len(m.dicts) > 0:
		m.line(depth, "%s[\"n\"] %s %s", m.of(m.dicts), m.oneOf("=", "+=", "+="), m.oneOf(m.call(false), m.combined()))
	case k < 11 && len(m.lists) > 0:
		l := m.of(m.lists)
		m.line(depth, "if len(%s) > 0: %s[0] %s %s", l, l, m.oneOf("=", "="), m.call(false))
	case k < 14:
		c, kind := m.tried()
		r := m.fresh("r")
		m.line(depth, "%s = attempt(%s)", r, c)
		m.handle(depth, r, kind)
		m.tries = append(m.tries, r)
	case k < 16:
		c := m.combined()
		v := m.fresh("v")
		m.line(depth, "%s = %s", v, c)
		m.ints = append(m.ints, v)
	case k < 19:
		c, size := m.fan()
		m.parallel(depth, c, size)
	case k < 21 && len(m.lists) > 0:
		over := m.of(m.lists)
		op, l := "=", ""
		if m.IntN(3) == 0 {
			op, l = "+=", m.of(m.lists)
		} else {
			l = m.fresh("l")
		}
		x := m.oneOf(m.of(m.ints), m.of(m.lists)) // which it hides
		if m.IntN(2) == 0 {
			x = m.fresh("x")
			m.dead = append(m.dead, x)
		}
		m.line(depth, "%s %s [inc(%s) for %s in %s if type(%s) == \"int\" and %s < 9]", l, op, x, x, over+"[:3]", x, x)
		if op == "=" {
			m.lists = append(m.lists, l)
		}
	case k < 22:
		m.line(depth, "sleep(%s)", m.oneOf(`"1s"`, "0", "0.5", m.atom()))
	case k < 23 && m.main:
		v := m.fresh("v")
		m.line(depth, "%s = wait(\"s\")", v)
		m.ints = append(m.ints, v)
	case k < 24 && m.main:
		r := m.fresh("r")
		m.line(depth, "%s = attempt(\x04wait(\"never\", timeout = %s))", r, m.oneOf(`"1h"`, "60", "0"))
		m.tries = append(m.tries, r)
	case k < 25 && len(m.dicts) > 0:
		l := m.fresh("l")
		m.line(depth, "%s = echo([%s, %s])", l, m.int(), m.oneOf(m.of(m.dicts), m.int(), "(1, 2)"))
		m.line(depth, "%s = [e for e in %s if type(e) == \"int\"]", l, l)
		m.lists = append(m.lists, l)
	case k < 26:
		d := m.fresh("d")
		m.line(depth, "%s = part(%s)", d, m.int())
		m.dicts = append(m.dicts, d)
	case k < 27:
		r := m.fresh("v")
		m.line(depth, "%s = problem(%s)", r, m.int())
		m.line(depth, "%s = 1 if %s else 0", r, r)
		m.ints = append(m.ints, r)
	case k < 32:
		m.expression(depth)
	case k < 33 && m.main:
		m.condition(depth)
	case k < 34 && m.IntN(3) == 0:
		m.n++
		m.line(depth, "if %s: return [inc(x%d) for x%d in [%s, %s]]", m.cond(), m.n, m.n, m.int(), m.int())
	default:
		m.without(depth)
	}
}

// parallel assigns the result of a fan-out.
func (m *mixed) parallel(depth int, c string, size int) {
	collects := strings.Contains(c, "collect")
	c = markNow + c + markEnd
	if size > 0 && !collects && m.IntN(2) == 0 {
		var names []string
		for range size {
			names = append(names, m.fresh("v"))
		}
		list := strings.Join(names, ", ")
		if size == 1 {
			list = "(" + list + ",)"
		}
		m.line(depth, "%s = %s", list, c)
		m.ints = append(m.ints, names...)
		return
	}
	l := m.fresh("l")
	m.line(depth, "%s = %s", l, c)
	m.line(depth, "%s = [e if type(e) == \"int\" else len(e.type) for e in %s]", l, l)
	m.lists = append(m.lists, l)
}

// tried returns what is attempted, and whether its result is a number.
func (m *mixed) tried() (string, bool) {
	if m.IntN(4) == 0 {
		c, _ := m.fan()
		return c, false
	}
	return m.oneOf(m.call(true), m.action()), true
}

// handle handles the result of an attempt.
func (m *mixed) handle(depth int, r string, isInt bool) {
	switch m.IntN(5) {
	case 0:
		m.line(depth, "if %s.failed(\"%s\"):", r, m.oneOf("A", "B", "Base", "CodeError", "TimeoutError"))
		m.suite(depth+1, 1+m.IntN(2))
		if m.IntN(2) == 0 {
			m.line(depth, "elif %s.failed(): fail(%s.error)", r, r)
		}
	case 1:
		m.line(depth, "if not %s: %s += 1", r, m.of(m.ints))
	case 2:
		if isInt {
			v := m.fresh("v")
			m.line(depth, "%s = %s.value if %s.ok else -1", v, r, r)
			m.ints = append(m.ints, v)
		}
	}
}

// compound writes a statement with suites.
func (m *mixed) compound(depth int) {
	m.plain = m.IntN(5) == 0
	defer func() { m.plain = false }()
	n := 1 + m.IntN(3)
	switch m.IntN(7) {
	case 0, 1:
		if !m.plain && m.IntN(4) == 0 {
			m.line(depth, "if %ssmall(%s):", m.oneOf("", "not "), m.int())
		} else if !m.plain && m.IntN(3) == 0 {
			m.line(depth, "if %s:", m.deepCond())
		} else {
			m.line(depth, "if %s:", m.cond())
		}
		m.suite(depth+1, n)
		if m.IntN(2) == 0 {
			if !m.plain && m.IntN(4) == 0 {
				m.line(depth, "elif %s:", m.deepCond())
			} else {
				m.line(depth, "elif %s:", m.cond())
			}
			m.suite(depth+1, n)
		}
		if m.IntN(2) == 0 {
			m.line(depth, "else:")
			m.suite(depth+1, n)
		}
	case 2:
		was := m.scope()
		if len(m.lists) > 0 && m.IntN(4) == 0 { // the list itself, which the body may try to change
			l := m.of(m.lists)
			i := m.fresh("i")
			m.line(depth, "for %s in %s:", i, l)
			m.line(depth+1, "%s = %s if type(%s) == \"int\" else 0", i, i, i)
			m.ints = append(m.ints, i)
			m.body(depth, n, was)
			return
		}
		over := m.oneOf(fmt.Sprintf("range(%d)", m.IntN(4)), fmt.Sprintf("range(%s %% 3)", m.atom()), "[3, 1]", "(2, 5)", "FIXED[\"a\"]", "b\"ab\".elems()", "set([2, 2, 1])", fmt.Sprintf("range(5, %s %% 4, -2)", m.atom()))
		if len(m.lists) > 0 && m.IntN(2) == 0 {
			over = "[e for e in " + m.of(m.lists) + "[:3] if type(e) == \"int\"]"
		}
		i := m.fresh("i")
		m.line(depth, "for %s in %s:", i, over)
		m.ints = append(m.ints, i)
		m.body(depth, n, was)
	case 3:
		was := m.scope()
		over := m.oneOf("enumerate([4, 2])", "[(1, 2), (3, 4)]", "zip([1, 2], [0, 5])")
		i, k := m.fresh("i"), m.fresh("k")
		m.line(depth, "for %s, %s in %s:", i, k, over)
		m.ints = append(m.ints, i, k)
		m.body(depth, n, was)
	case 4:
		if len(m.dicts) == 0 {
			m.without(depth)
			return
		}
		was := m.scope()
		d := m.of(m.dicts)
		i, k := m.fresh("i"), m.fresh("k")
		m.line(depth, "for %s, %s in %s.items():", i, k, d)
		m.line(depth+1, "%s = len(%s)", i, i)
		m.line(depth+1, "%s = %s if type(%s) == \"int\" else 0", k, k, k)
		m.ints = append(m.ints, i, k)
		m.body(depth, n, was)
	case 5:
		w := m.fresh("w")
		m.line(depth, "%s = 0", w)
		was := m.scope()
		m.line(depth, "while %s < %d:", w, m.IntN(4))
		m.line(depth+1, "%s += 1", w)
		m.body(depth, n, was)
	case 6:
		w := m.fresh("w")
		m.line(depth, "%s = 0", w)
		was := m.scope()
		if m.plain {
			m.line(depth, "while %s < 2:", w)
		} else {
			m.line(depth, "while %s:", m.oneOf(fmt.Sprintf("small(%s + %d)", w, m.IntN(3)), fmt.Sprintf("not small(4 - %s)", w), fmt.Sprintf("not (not small(%s + 1))", w), fmt.Sprintf("inc(%s) < %d and %s", w, 2+m.IntN(3), m.deepCond())))
		}
		m.line(depth+1, "%s += 1", w)
		m.body(depth, n, was)
	}
}

// variables are those with a value at some place, by their kind.
type variables [7][]string

func (m *mixed) scope() variables {
	return variables{slices.Clone(m.ints), slices.Clone(m.lists), slices.Clone(m.dicts), slices.Clone(m.tries), slices.Clone(m.others), slices.Clone(m.funcs), slices.Clone(m.fixed)}
}

func (m *mixed) body(depth, n int, was variables) {
	m.loops++
	m.suite(depth+1, n+1)
	m.loops--
	m.leave(was)
}

// without writes a statement without actions.
func (m *mixed) without(depth int) {
	switch k := m.IntN(26); {
	case k < 2:
		l := m.fresh("l")
		m.line(depth, "%s = [%s, %s]", l, m.int(), m.int())
		m.lists = append(m.lists, l)
	case k < 3 && len(m.lists) > 0:
		m.line(depth, "%s.append(%s)", m.of(m.lists), m.int())
	case k < 5 && len(m.lists) > 0:
		over := m.of(m.lists)
		l := m.fresh("l")
		m.line(depth, "%s = %s", l, over) // the same list
		m.lists = append(m.lists, l)
	case k < 6 && len(m.lists) > 0:
		over := m.of(m.lists)
		l := m.fresh("l")
		m.line(depth, "%s = sorted([e for e in %s if type(e) == \"int\"], key = lambda e: -e)[:%d]", l, over, 1+m.IntN(3))
		m.lists = append(m.lists, l)
	case k < 8:
		a, b := m.int(), m.int()
		d := m.fresh("d")
		m.line(depth, "%s = {\"a\": [%s], \"n\": %s}", d, b, a)
		m.dicts = append(m.dicts, d)
	case k < 9 && len(m.dicts) > 0:
		old := m.of(m.dicts)
		d := m.fresh("d")
		m.line(depth, "%s = %s", d, m.oneOf(old, "dict("+old+", n = 5)"))
		m.dicts = append(m.dicts, d)
	case k < 10 && len(m.dicts) > 0:
		m.line(depth, "%s[\"n\"] += %s", m.of(m.dicts), m.int())
	case k < 11 && len(m.dicts) > 0:
		from := m.of(m.dicts)
		l := m.fresh("l")
		m.line(depth, "%s = %s.get(\"a\", [])", l, from)
		m.lists = append(m.lists, l)
	case k < 13 && m.loops > 0:
		m.line(depth, "if %s: %s", m.cond(), m.oneOf("break", "continue"))
	case k < 14 && m.IntN(2) == 0:
		if m.IntN(3) == 0 && !m.plain {
			m.line(depth, "if %s: return %s", m.cond(), m.call(false))
		} else {
			m.line(depth, "if %s: return %s", m.cond(), m.int())
		}
	case k < 15 && m.IntN(4) == 0:
		m.line(depth, "if %s: fail(%s)", m.cond(), m.oneOf(`error("B", "of the workflow")`, `"no"`))
	case k < 16:
		m.line(depth, "%s = %s; %s = %s", m.of(m.ints), m.int(), m.of(m.ints), m.int())
	case k < 17:
		a, b := m.of(m.ints), m.of(m.ints)
		if a != b {
			m.line(depth, "%s, %s = %s, %s", a, b, b, a)
		}
	case k < 18:
		m.line(depth, "%s += %s", m.of(m.ints), m.int())
	case k < 22:
		m.other(depth)
	default:
		v := m.fresh("v")
		e := m.int()
		if strings.Contains(e, v) {
			e = "1"
		}
		m.line(depth, "%s = %s", v, e)
		m.ints = append(m.ints, v)
	}
}
