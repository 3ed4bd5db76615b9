package compile

import (
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/workflow"
)

// whole runs the body of a workflow without a reload, and ends its actions.
func whole(t *testing.T, body string) workflow.Effects {
	t.Helper()
	g, err := Compile("w.star", []byte("load('actions', 'a')\ndef run():\n    a(0)\n    "+body+"\nworkflow('w', run)\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	r := workflow.New(p)
	e, err := r.Step(workflow.Input{Begin: jsontext.Value("{}")})
	for err == nil && len(e.Start) > 0 {
		e, err = r.Step(workflow.Input{Done: &workflow.Done{Work: e.Start[0].ID, Attempt: e.Start[0].Attempt, Result: jsontext.Value("1")}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Code that needs too much memory fails with words, before it has it.
func TestMemory_TooMuchFailsTheRunBeforeItIsAllocated(t *testing.T) {
	for _, body := range []string{
		"return len('x' * 1000000000)",
		"return len(1000000000 * 'x')",
		"return len([0] * 100000000)",
		"return len((0, 1) * 100000000)",
		"return len(b'x' * 1000000000)",
		"return len(list(range(1000000000)))",
		"return len(tuple(range(1000000000)))",
		"return len(sorted(range(1000000000)))",
		"return len(reversed(range(1000000000)))",
		"return len(set(range(1000000000)))",
		"return len(enumerate(range(1000000000)))",
		"return len(zip(range(1000000000), range(1000000000)))",
		"return len((lambda *xs: xs)(*range(1000000000)))",
		"x = 'x'\n    for i in range(60):\n        x = x + x\n    return len(x)",
		"x = 'x'\n    for i in range(60):\n        x += x\n    return len(x)",
		"x = ['x']\n    for i in range(60):\n        x += x\n    return len(x)",
		"x = [1]\n    for i in range(60):\n        x.extend(x)\n    return len(x)",
		"x = ('x',)\n    for i in range(60):\n        x += x\n    return len(x)",
		"x = []\n    x += range(1000000000)\n    return len(x)",
		"x = {'k': 'x'}\n    for i in range(60):\n        x['k'] += x['k']\n    return len(x['k'])",
		"x = {'k': 'x'}\n    x['k'] *= 1000000000\n    return len(x['k'])",
		"x = ['%(a)s' * 10000]\n    x[0] %= {'a': 'x' * 1000000}\n    return 1",
		"x = 'x'\n    x *= 1000000000\n    return len(x)",
		"x = 'x'\n    for i in range(60):\n        x = '%s%s' % (x, x)\n    return len(x)",
		"x = 'x'\n    for i in range(60):\n        x = '%(a)s%(a)s' % {'a': x}\n    return len(x)",
		"return len(('%(a)s' * 10000) % {'a': 'x' * 1000000})",
		"x = 'x'\n    for i in range(60):\n        x = '{0}{0}'.format(x)\n    return len(x)",
		"return len(('x' * 1000000).join(['x'] * 1000000))",
		"return len(('x' * 1000000).replace('x', 'y' * 1000000))",
		"return len(getattr('x' * 1000000, 'replace')('x', 'y' * 1000000))",
		"f = ('x' * 1000000).replace\n    return len(f('x', 'y' * 1000000))",
		"return len(('x ' * 10000000).split())",
		"return len(list(('x' * 20000000).elems()))",
		"x = [1]\n    for i in range(60):\n        x = [x, x]\n    return len(str(x))",
		"x = [1]\n    for i in range(60):\n        x = [x, x]\n    return len('%s' % x)",
		"x = [1]\n    for i in range(60):\n        x = [x, x]\n    fail(x)",
		"return len(sum([[0] * 1000000] * 1000000, []))",
		"x = 3\n    for i in range(60):\n        x = x * x\n    return 1",
		"return len([{} for i in range(1000000)])",
		"x = list(range(1000000))\n    return len([x[:] for i in range(1000000)])",
		"x = list(range(1000000))\n    return len([x[::2] for i in range(1000000)])",
		"x = {i: i for i in range(100000)}\n    return len([x | {} for i in range(1000000)])",
		"x = {i: i for i in range(100000)}\n    return len([x.items() for i in range(1000000)])",
		"x = []\n    for i in range(100):\n        x.append('x' * 10000000)\n    return len(x)",
		"x = []\n    for i in range(100):\n        x.append('x' * 10000000)\n        a(1)\n    return len(x)",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e := whole(t, body)
		runtime.ReadMemStats(&after)
		if e.Outcome == nil || e.Outcome.Error == nil || e.Outcome.Error.Name != workflow.LimitError || !strings.Contains(e.Outcome.Error.Message, "iB") {
			t.Errorf("%s: %+v", body, e.Outcome)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 2<<30 {
			t.Errorf("%s: %d MiB were allocated", body, used>>20)
		}
	}
}

// What is garbage between two nodes does not count, nor does a text of which only parts are taken.
func TestMemory_CountsWhatTheVariablesHold(t *testing.T) {
	for _, body := range []string{
		"n = 0\n    for i in range(100):\n        x = 'x' * 10000000\n        n += len(x)\n        a(1)\n    return n == 1000000000",
		"x = 'x' * 100000\n    while x:\n        x = x[1:]\n    return x == ''",
		"x = ['x' * 10000000] * 5\n    y = [x] * 1000000\n    for i in range(20):\n        y = list(y)\n        a(1)\n    return len(y) == 1000000",
		"x = [1]\n    x.append(x)\n    return str(x) == '[1, [...]]'",
	} {
		e := whole(t, body)
		if e.Outcome == nil || string(e.Outcome.Result) != "true" {
			t.Errorf("%s: %+v", body, e.Outcome)
		}
	}
}

// Code that is counted has the results of the interpreter, in the same order.
func TestMemory_CountingChangesNoResult(t *testing.T) {
	for _, body := range []string{
		"x = [1, 2]\n    y = x\n    x += [3]\n    x = x + [4]\n    return [x, y]",
		"x = {'a': 1}\n    y = x\n    x |= {'b': 2}\n    x['b'] += 5\n    x['a'] *= 7\n    return [x, y]",
		"x = {'a': [1]}\n    y = x['a']\n    x['a'] += [2]\n    x['a'] *= 2\n    return [x, y]",
		"seen = []\n    at = lambda k: [seen.append(k), k][1]\n    x = [1, 2, '%s!']\n    x[at(0)] += at(10)\n    x[at(1)] *= at(20)\n    x[at(2)] %= at(30)\n    (x[at(0)]) += 1\n    return [x, seen]",
		"return ['a%sb' % 1, 'a%d%s' % (1, 'x'), '%(x)s' % {'x': 5}, 7 % 4, -7 % 4, 7.5 % 2, '%r' % 'x', '%%']",
		"return [3 * 'ab', 'ab' * 3, [1] * 2, 2 * (1,), 6 * 7, 1.5 * 2, -1 * 'x', 'x' * 0]",
		"return ['a,b'.split(','), ' a b '.split(), 'a-b-c'.rsplit('-', 1), '-'.join(['a', 'b']), 'aXbX'.replace('X', 'yy', 1), '{}-{x}'.format(1, x = 2)]",
		"return [list('abc'.elems()), list('abc'.codepoints()), 'aB'.upper(), 'aB'.lower(), 'ab cd'.title(), 'x'.join([]), 'abc'[1:], [1, 2, 3][::-1]]",
		"d = {'a': 1}\n    d.update({'b': 2}, c = 3)\n    x = [1]\n    x.extend((2, 3))\n    return [d, d.keys(), d.values(), d.items(), x, sorted(set([1]).union([2])), list(reversed(x)), list(enumerate(x)), list(zip(x, x))]",
		"return [str([1, 'x', None]), repr('x'), type([].extend), type(list), getattr('a', 'upper')(), getattr(1, 'no', 'none'), hasattr('a', 'join'), sum([[1], [2]], [])]",
		"return [(lambda *a, **k: [a, k])(*[1, 2], **{'x': 3}), [x + y for x in [1, 2] for y in [10] if x + y > 11], {k: k * 2 for k in 'ab'.elems()}]",
		"return 1 + 'x'",
		"return [] * 'x'",
		"return 'x'.nothing()",
		"return '%s' % (1, 2)",
		"x = [1]\n    for i in x:\n        x.append(i)\n    return x",
		"return {'a': 1}['b'] + 1",
		"return -{'a': 1}",
	} {
		src := "def run():\n    " + body + "\nworkflow('w', run)\n"
		want := stock(t, src, "{}", nil)
		if got := driven(t, src, "{}", nil, false); got.result != want.result {
			t.Errorf("%s: %s, want %s", body, got.result, want.result)
		}
	}
}
