// Package randomstar generates random workflows in Starlark, for tests that compare two ways to execute them.
package randomstar

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Actions are the actions of the programs, in Starlark.
const Actions = `
def inc(x): return x + 1
def add(x, y): return x + y
def odd(x): return x if x % 2 else fail(error("EvenError", "even"))
`

// program generates random programs: every supported construct, in any place.
type program struct {
	*rand.Rand
	b     strings.Builder
	ints  []string // variables with an int
	lists []string // with a list of ints
	n     int
	loops int
	left  int // statements
}

func (p *program) fresh(kind string) string {
	p.n++
	return fmt.Sprintf("%s%d", kind, p.n)
}

func (p *program) int() string {
	switch p.IntN(6) {
	case 0:
		return fmt.Sprint(p.IntN(7) - 1)
	case 1:
		return fmt.Sprintf("(%s + %s)", p.atom(), p.atom())
	case 2:
		return fmt.Sprintf("twice(%s)", p.atom())
	case 3:
		if len(p.lists) > 0 {
			return fmt.Sprintf("len(%s)", p.list())
		}
	case 4:
		return fmt.Sprintf("(%s if %s else %s)", p.atom(), p.cond(), p.atom())
	case 5:
		if len(p.lists) > 0 && p.IntN(4) == 0 {
			return fmt.Sprintf("%s[%s]", p.list(), p.atom()) // may be out of range
		}
	}
	return p.atom()
}

func (p *program) atom() string { return p.ints[p.IntN(len(p.ints))] }
func (p *program) list() string { return p.lists[p.IntN(len(p.lists))] }
func (p *program) cond() string {
	return fmt.Sprintf("%s %s %s", p.atom(), []string{"<", ">", "==", "!="}[p.IntN(4)], p.atom())
}

func (p *program) call() string {
	switch p.IntN(8) {
	case 0:
		return fmt.Sprintf("add(%s, y = %s)", p.int(), p.int())
	case 1:
		return fmt.Sprintf("helper(%s)", p.int())
	case 2:
		return fmt.Sprintf("odd(%s)", p.int()) // may fail
	default:
		return fmt.Sprintf("inc(%s)", p.int())
	}
}

func (p *program) line(depth int, format string, args ...any) {
	p.b.WriteString(strings.Repeat("    ", depth))
	fmt.Fprintf(&p.b, format, args...)
	p.b.WriteString("\n")
}

// suite writes statements; their variables are out of scope afterwards.
func (p *program) suite(depth, n int) {
	ints, lists := len(p.ints), len(p.lists)
	for range n {
		p.statement(depth)
	}
	p.line(depth, "pass")
	if depth > 1 {
		p.ints, p.lists = p.ints[:ints], p.lists[:lists]
	}
}

func (p *program) statement(depth int) {
	if p.left--; p.left < 0 {
		return
	}
	nested := depth < 4
	switch k := p.IntN(20); {
	case k < 4:
		v := p.fresh("v")
		p.line(depth, "%s = %s", v, p.call())
		p.ints = append(p.ints, v)
	case k < 5:
		p.line(depth, "%s = %s", p.atom(), p.call())
	case k < 6:
		p.line(depth, "%s += %s", p.atom(), p.call())
	case k < 7:
		v := p.fresh("l")
		p.line(depth, "%s = [%s, %s]", v, p.int(), p.int())
		p.lists = append(p.lists, v)
	case k < 8 && len(p.lists) > 0:
		p.line(depth, "%s.append(%s)", p.list(), p.int())
	case k < 9 && len(p.lists) > 0:
		v := p.fresh("l")
		p.line(depth, "%s = %s", v, p.list()) // the same list
		p.lists = append(p.lists, v)
	case k < 10 && len(p.lists) > 0:
		v, x := p.fresh("l"), p.fresh("x")
		p.line(depth, "%s = [inc(%s) for %s in %s if %s != 2]", v, x, x, p.list(), x)
		p.lists = append(p.lists, v)
	case k < 11 && len(p.lists) > 0:
		v := p.fresh("l")
		p.line(depth, "%s = parallel([%s(x) for x in %s if x > 0])", v, []string{"inc", "helper"}[p.IntN(2)], p.list())
		p.lists = append(p.lists, v)
	case k < 12:
		v, w := p.fresh("v"), p.fresh("v")
		p.line(depth, "%s, %s = parallel(inc(%s), helper(%s))", v, w, p.int(), p.int())
		p.ints = append(p.ints, v, w)
	case k < 14 && nested:
		p.line(depth, "if %s:", p.cond())
		p.suite(depth+1, 1+p.IntN(3))
		if p.IntN(2) == 0 {
			p.line(depth, "elif %s:", p.cond())
			p.suite(depth+1, 1+p.IntN(2))
			p.line(depth, "else:")
			p.suite(depth+1, 1+p.IntN(2))
		}
	case k < 16 && nested:
		v := p.fresh("i")
		over := fmt.Sprintf("range(%d)", p.IntN(4))
		if len(p.lists) > 0 && p.IntN(2) == 0 {
			over = p.list()
		}
		p.line(depth, "for %s in %s:", v, over)
		p.ints, p.loops = append(p.ints, v), p.loops+1
		p.suite(depth+1, 1+p.IntN(4))
		p.ints, p.loops = p.ints[:len(p.ints)-1], p.loops-1
	case k < 17 && nested:
		v := p.fresh("w")
		p.line(depth, "%s = 0", v)
		p.line(depth, "while %s < %d:", v, p.IntN(4))
		p.line(depth+1, "%s += 1", v)
		p.loops++
		p.suite(depth+1, 1+p.IntN(3))
		p.loops--
	case k < 18 && p.loops > 0:
		p.line(depth, "if %s: %s", p.cond(), []string{"break", "continue"}[p.IntN(2)])
	case k < 19 && p.IntN(3) == 0:
		p.line(depth, "if %s: return %s", p.cond(), p.int())
	default:
		p.line(depth, "%s = %s", p.atom(), p.int())
	}
}

// Program returns the random program of a seed. Its workflow is named w, with the parameter n, and calls the actions
// inc, add and odd.
func Program(seed uint64) string {
	p := &program{Rand: rand.New(rand.NewPCG(seed, 1)), ints: []string{"n", "m"}, left: 25}
	p.b.WriteString("load('actions', 'add', 'inc', 'odd')\ndef twice(x): return x * 2\ndef helper(x):\n    if x > 5: return x\n    y = inc(x)\n    for i in range(2):\n        if y > 3: return add(y, i)\n        y = inc(y)\n    return y\ndef run(n, m = 2):\n")
	p.suite(1, 12)
	p.line(1, "return [%s]", strings.Join(append(p.ints, p.lists...), ", "))
	p.b.WriteString("workflow('w', run)\n")
	return p.b.String()
}
