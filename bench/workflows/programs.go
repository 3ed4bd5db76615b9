package workflows

import (
	"errors"
	"strings"
	"sync/atomic"
)

// Actions are the actions of all programs. They do nothing but count.
type Actions struct{ calls atomic.Int64 }

// The names of the actions.
const (
	noop   = "noop"
	double = "double"
)

// do performs an action.
func (a *Actions) do(action string, in int64) int64 {
	a.calls.Add(1)
	return pure(action, in)
}

func pure(action string, in int64) int64 {
	if action == double {
		return 2 * in
	}
	return in
}

// program is a workflow, in both languages.
type program struct {
	name  string
	about string
	star  string
	run   func(f steps, n int64) (int64, error)
}

// source returns the file of the program in Starlark.
func (p *program) source() []byte {
	return []byte("noop = action(\"noop\")\ndouble = action(\"double\")\n" + p.star + "\nworkflow(\"" + p.name + "\", " + p.name + ")\n")
}

var programs = []*program{
	{"sequence", "ten actions, each given the result of the one before", `
def sequence(n):
` + strings.Repeat("    n = noop(n)\n", 10) + `    return n
`, func(f steps, n int64) (_ int64, err error) {
		for range 10 {
			if n, err = f.call(noop, n).get(); err != nil {
				return 0, err
			}
		}
		return n, nil
	}},
	{"loop", "a loop of N rounds with an action each", `
def loop(n):
    total = 0
    for i in range(n):
        r = noop(i)
        total += r
    return total
`, func(f steps, n int64) (total int64, err error) {
		for i := range n {
			r, err := f.call(noop, i).get()
			if err != nil {
				return 0, err
			}
			total += r
		}
		return total, nil
	}},
	{"fan", "N actions at the same time", `
def fan(n):
    rs = parallel([noop(i) for i in range(n)])
    return sum(rs)
`, func(f steps, n int64) (int64, error) { return sum(spread(f, noop, n)) }},
	{"stress", "43 actions: one, 16 at the same time, a loop of 8 with three each, a condition, one", `
def stress(n):
    base = noop(n)
    parts = parallel([noop(i) for i in range(16)])
    total = 0
    for i in range(8):
        v = noop(parts[i])
        p = noop(v + 1)
        total = noop(p + total)
    if total > 10:
        last = noop(total)
    else:
        last = double(total)
    end = noop(last + base)
    return end
`, stress},
	{"forloop", "3N + 1 actions: N at the same time, a loop of N with two each, one", `
def forloop(n):
    hs = parallel([noop(i) for i in range(n)])
    total = 0
    for h in hs:
        a = noop(h)
        if a % 2 == 0:
            p = noop(a)
        else:
            p = double(a)
        total += p
    end = noop(total)
    return end
`, forLoop},
	{"smoke", "6 actions: three, two, one", `
def smoke(n):
    ds = parallel([double(i) for i in range(3)])
    a, b = parallel(noop(n), double(n))
    end = noop(sum(ds) + a + b)
    return end
`, func(f steps, n int64) (int64, error) {
		ds, err := sum(spread(f, double, 3))
		if err != nil {
			return 0, err
		}
		a, b := f.call(noop, n), f.call(double, n)
		two, err := sum([]future{a, b})
		if err != nil {
			return 0, err
		}
		return f.call(noop, ds+two).get()
	}},
	{"control", "1 action after a loop with conditions, continue, break and a dictionary", `
def control(n):
    factor = {"a": 1, "b": 2}
    total = 0
    for i, v in enumerate([n, n + 1, n + 2, n + 3]):
        if i == 0:
            continue
        elif i == 3:
            break
        total += v * factor["b"]
    end = noop(total)
    return end
`, func(f steps, n int64) (int64, error) {
		factor := map[string]int64{"a": 1, "b": 2}
		total := int64(0)
		for i, v := range []int64{n, n + 1, n + 2, n + 3} {
			if i == 0 {
				continue
			} else if i == 3 {
				break
			}
			total += v * factor["b"]
		}
		return f.call(noop, total).get()
	}},
	{"spread", "6 actions: three, two, one", `
def spread(n):
    rs = parallel([noop(i) for i in range(n)])
    a, b = parallel(noop(n), noop(n + 1))
    end = noop(sum(rs) + a + b)
    return end
`, func(f steps, n int64) (int64, error) {
		rs, err := sum(spread(f, noop, n))
		if err != nil {
			return 0, err
		}
		two, err := sum([]future{f.call(noop, n), f.call(noop, n+1)})
		if err != nil {
			return 0, err
		}
		return f.call(noop, rs+two).get()
	}},
	{"caught", "no action: a division by zero in a helper is caught", `
def divide(a, b):
    if b == 0:
        fail(error("ZeroDivision", "division by zero"))
    return a // b

def caught(n):
    total = 0
    for d in [1, 0, 2]:
        r = attempt(divide(n, d))
        if r.ok:
            total += r.value
        elif r.failed("ZeroDivision"):
            total += 100
    return total
`, func(_ steps, n int64) (total int64, _ error) {
		zero := errors.New("division by zero")
		divide := func(a, b int64) (int64, error) {
			if b == 0 {
				return 0, zero
			}
			return a / b, nil
		}
		for _, d := range []int64{1, 0, 2} {
			if r, err := divide(n, d); errors.Is(err, zero) {
				total += 100
			} else {
				total += r
			}
		}
		return total, nil
	}},
	{"count", "no action: a loop that counts", `
def count(n):
    i = 0
    while i < n:
        i += 1
    return i
`, func(_ steps, n int64) (i int64, _ error) {
		for i < n {
			i++
		}
		return i, nil
	}},
	{"sleeper", "a sleep", `
def sleeper(n):
    sleep(n)
    return n
`, func(f steps, n int64) (int64, error) { return n, f.sleep(n) }},
}

func stress(f steps, n int64) (int64, error) {
	start, err := f.call(noop, n).get()
	if err != nil {
		return 0, err
	}
	var parts []int64
	for _, p := range spread(f, noop, 16) {
		v, err := p.get()
		if err != nil {
			return 0, err
		}
		parts = append(parts, v)
	}
	total := int64(0)
	for i := range 8 {
		v, err := f.call(noop, parts[i]).get()
		if err == nil {
			v, err = f.call(noop, v+1).get()
		}
		if err == nil {
			total, err = f.call(noop, v+total).get()
		}
		if err != nil {
			return 0, err
		}
	}
	action := double
	if total > 10 {
		action = noop
	}
	last, err := f.call(action, total).get()
	if err != nil {
		return 0, err
	}
	return f.call(noop, last+start).get()
}

func forLoop(f steps, n int64) (int64, error) {
	total := int64(0)
	hs := make([]int64, 0, n)
	for _, h := range spread(f, noop, n) {
		v, err := h.get()
		if err != nil {
			return 0, err
		}
		hs = append(hs, v)
	}
	for _, h := range hs {
		a, err := f.call(noop, h).get()
		if err != nil {
			return 0, err
		}
		action := double
		if a%2 == 0 {
			action = noop
		}
		p, err := f.call(action, a).get()
		if err != nil {
			return 0, err
		}
		total += p
	}
	return f.call(noop, total).get()
}

// spread starts n actions.
func spread(f steps, action string, n int64) (list []future) {
	for i := range n {
		list = append(list, f.call(action, i))
	}
	return list
}

func sum(list []future) (total int64, err error) {
	for _, f := range list {
		v, err := f.get()
		if err != nil {
			return 0, err
		}
		total += v
	}
	return total, nil
}

func programNamed(name string) *program {
	for _, p := range programs {
		if p.name == name {
			return p
		}
	}
	return nil
}

// oracle is the engine that says what is right: every action returns at once.
type oracle struct{ calls int64 }

type known int64

func (k known) get() (int64, error) { return int64(k), nil }

func (o *oracle) call(action string, in int64) future {
	o.calls++
	return known(pure(action, in))
}

func (o *oracle) sleep(int64) error { return nil }

// expect returns the result of a program, and the number of its actions.
func (p *program) expect(n int64) (result, actions int64) {
	o := &oracle{}
	result, _ = p.run(o, n) // no action of the oracle fails
	return result, o.calls
}
