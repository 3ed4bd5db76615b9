package star

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/interp"
)

// hostile are handlers that exceed a limit, each with words of the error that stops it. "" is for
// handlers that may complete, as long as they stay within the limits.
var hostile = []struct{ name, body, want string }{
	{"endless loop", "for i in range(1000000000):\n        for j in range(1000000000):\n            pass", "used up its 1000000 steps"},
	{"a range beyond 32 bits", "for i in range(10000000000000):\n        pass", "range"},
	{"a long string by repetition", "x = 'a' * 1000000000", "used up its memory of 64 MiB"},
	{"a string doubled", "x = 'a'\n    for i in range(100):\n        x = x + x", "run has used up"},
	{"a string doubled in place", "x = 'a'\n    for i in range(100):\n        x += x", "run has used up"},
	{"a list by repetition", "x = [0] * 1000000000", "run has used up"},
	{"a list repeated from the left", "x = 1000000000 * [0]", "run has used up"},
	{"a list doubled", "x = [1]\n    for i in range(100):\n        x = x + x", "run has used up"},
	{"a list doubled in place", "x = [1]\n    for i in range(100):\n        x += x", "run has used up"},
	{"a list extended by itself", "x = [1]\n    for i in range(100):\n        x.extend(x)", "run has used up"},
	{"a list of a range", "x = list(range(1000000000))", "run has used up"},
	{"a tuple of a range", "x = tuple(range(1000000000))", "run has used up"},
	{"a tuple doubled", "x = (1,)\n    for i in range(100):\n        x = x + x", "run has used up"},
	{"max of a range", "x = max(range(2000000000))", "run has used up"},
	{"any of a range", "x = any(range(0, 1)) or all(range(1, 2000000000))", "run has used up"},
	{"sum of a range", "x = sum(range(2000000000))", "run has used up"},
	{"sorted range", "x = sorted(range(2000000000))", "run has used up"},
	{"reversed range", "x = reversed(range(2000000000))", "run has used up"},
	{"enumerate a range", "x = enumerate(range(2000000000))", "run has used up"},
	{"zip ranges", "x = zip(range(2000000000), range(2000000000))", "run has used up"},
	{"set of a range", "x = set(range(2000000000))", "run has used up"},
	{"dict of pairs", "x = dict([(i, i) for i in range(1000000)])", "run has used up"},
	{"a range in place", "x = []\n    x += range(1000000000)", "run has used up"},
	{"a range as arguments", "x = max(*range(1000000000))", "arguments"},
	{"unpacking a range", "a, b = range(1000000000)", "unpack"},
	{"join doubled", "x = 'a'\n    for i in range(100):\n        x = x.join([x, x, x])", "run has used up"},
	{"join over a range of strings", "x = ('a' * 100000).join(['b'] * 100000)", "run has used up"},
	{"replace doubled", "x = 'aa'\n    for i in range(100):\n        x = x.replace('a', x)", "run has used up"},
	{"replace nothing", "x = ('a' * 100000).replace('', 'b' * 100000)", "run has used up"},
	{"format doubled", "x = 'a'\n    for i in range(100):\n        x = '{0}{0}{0}'.format(x)", "run has used up"},
	{"format by name", "x = 'a'\n    for i in range(100):\n        x = '{y}{y}{y}'.format(y = x)", "run has used up"},
	{"percent doubled", "x = 'a'\n    for i in range(100):\n        x = '%s%s%s' % (x, x, x)", "run has used up"},
	{"percent by name", "x = 'a'\n    for i in range(100):\n        x = '%(y)s%(y)s%(y)s' % {'y': x}", "run has used up"},
	{"percent of a nest", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    y = '%s' % [x]", "run has used up"},
	{"a method that is kept", "f = ('a' * 100000).join\n    x = f(['b'] * 100000)", "run has used up"},
	{"a method by name", "f = getattr('a', 'join')\n    x = f(['b'])", "write x.join"},
	{"upper", "x = 'ä' * 1000000\n    for i in range(1000):\n        y = x.upper()", "run has used up"},
	{"split", "x = ' a' * 1000000\n    for i in range(1000):\n        y = x.split()", "run has used up"},
	{"elements of a string", "x = list(('a' * 10000000).elems())\n    y = list(('a' * 10000000).elems())", "run has used up"},
	{"codepoints of a string", "x = list(('a' * 30000000).codepoints())", "run has used up"},
	{"squares", "x = 10\n    for i in range(100):\n        x = x * x", "64 bits"},
	{"squares in place", "x = 10\n    for i in range(100):\n        x *= x", "64 bits"},
	{"shifts", "x = 1\n    for i in range(100000):\n        x = x << 500", "64 bits"},
	{"sums", "x = 1\n    for i in range(100000):\n        x = x + x", "64 bits"},
	{"differences", "x = 1\n    for i in range(100000):\n        x = x - (0 - x)", "64 bits"},
	{"a large integer from text", "x = int('9' * 1000000)", "64 bits"},
	{"a large integer in text", "x = str(1 << 500)", "64 bits"},
	{"deep nesting, compared", "x = []\n    y = []\n    for i in range(20000):\n        x = [x]\n        y = [y]\n    return x == y", "nested more than"},
	{"deep nesting, as text", "x = []\n    for i in range(100000):\n        x = [x]\n    return str(x)", "nested more than"},
	{"deep nesting, returned", "x = []\n    for i in range(100000):\n        x = [x]\n    return x", "nested more than"},
	{"deep nesting of tuples, hashed", "x = ()\n    for i in range(100000):\n        x = (x,)\n    return {x: 1}", "cannot be a key"},
	{"deep nesting, sorted", "x = []\n    for i in range(100000):\n        x = [x]\n    return sorted([x, x])", "nested more than"},
	{"a cycle as text", "x = []\n    x.append(x)\n    return str(x)", "nested more than"},
	{"a cycle returned", "x = {}\n    x['x'] = x\n    return x", "nested more than"},
	{"a cycle compared", "x = []\n    x.append(x)\n    y = []\n    y.append(y)\n    return x == y", "nested more than"},
	{"a wide nest, compared", "x = [1]\n    y = [1]\n    for i in range(50):\n        x = [x, x]\n        y = [y, y]\n    return x == y", "run has used up"},
	{"a wide nest, as text", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    return str(x)", "run has used up"},
	{"a wide nest, returned", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    return x", "256 KiB"},
	{"a wide nest, written", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    c.x = x", "256 KiB"},
	{"a wide nest, sent", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    send('B', 's', x)", "256 KiB"},
	{"a wide nest, logged", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    log(x)", "run has used up"},
	{"a wide nest, failed with", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    fail(x)", "[[["},
	{"a wide nest, in a message", "x = [1]\n    for i in range(50):\n        x = [x, x]\n    return {}[str(x)]", "run has used up"},
	{"a wide nest of tuples, hashed", "x = (1,)\n    for i in range(50):\n        x = (x, x)\n    d = {}\n    d[x] = 1", "cannot be a key"},
	{"a wide nest of tuples, looked up", "x = (1,)\n    for i in range(50):\n        x = (x, x)\n    return x in {}", "cannot be a key"},
	{"a wide nest of tuples, in a set", "x = (1,)\n    for i in range(50):\n        x = (x, x)\n    set([x])", "cannot be a key"},
	{"a wide nest of tuples, in a comprehension", "x = (1,)\n    for i in range(50):\n        x = (x, x)\n    return {k: 1 for k in [x]}", "cannot be a key"},
	{"a wide nest of tuples, as pairs", "x = (1,)\n    for i in range(50):\n        x = (x, x)\n    return dict([(x, 1)])", "cannot be a key"},
	{"a wide nest in a list, looked for", "x = [1]\n    y = [1]\n    for i in range(50):\n        x = [x, x]\n        y = [y, y]\n    return x in [y]", "run has used up"},
	{"a wide nest in a list, removed", "x = [1]\n    y = [1]\n    for i in range(50):\n        x = [x, x]\n        y = [y, y]\n    [y].remove(x)", "run has used up"},
	{"a wide nest in sets, compared", "x = (1,)\n    for i in range(50):\n        x = (x, x)\n    return [x] == [x, x] or max([x], [x])", "run has used up"},
	{"sorting with a dear key", "def k(x):\n        return 'a' * 1000000\n    return sorted(range(1000), key = k)", "run has used up"},
	{"sorting long strings", "x = ['a' * 1000000 for i in range(30)]\n    for i in range(10000):\n        y = sorted(x)", "run has used up"},
	{"a dict that grows", "x = {}\n    for i in range(10000000):\n        x[i] = i", "run has used up"},
	{"a list that grows", "x = []\n    for i in range(10000000):\n        x.append('a')", "run has used up"},
	{"dicts in a list", "x = [{} for i in range(10000000)]", "run has used up"},
	{"comprehensions in each other", "x = [[[j for j in range(1000)] for k in range(1000)] for i in range(1000)]", "run has used up"},
	{"a dict by comprehension", "x = {i: str(i) for i in range(10000000)}", "run has used up"},
	{"dict union", "x = {i: i for i in range(1000)}\n    for i in range(100000):\n        y = x | x", "run has used up"},
	{"dict items", "x = {i: i for i in range(10000)}\n    for i in range(100000):\n        y = x.items()", "run has used up"},
	{"dict update", "x = {i: i for i in range(10000)}\n    for i in range(100000):\n        x.update(x)", "run has used up"},
	{"set union", "x = set(range(10000))\n    for i in range(100000):\n        y = x.union(x)", "run has used up"},
	{"set operators", "x = set(range(10000))\n    for i in range(100000):\n        y = x | x", "run has used up"},
	{"slices", "x = [0] * 100000\n    for i in range(100000):\n        y = x[:]", "run has used up"},
	{"backward slices of a string", "x = 'a' * 1000000\n    for i in range(100000):\n        y = x[::-1]", "run has used up"},
	{"inserting in front", "x = [0] * 1000000\n    for i in range(100000):\n        x.insert(0, 0)", "run has used up"},
	{"popping in front", "x = [0] * 1000000\n    for i in range(900000):\n        x.pop(0)", "run has used up"},
	{"searching a list", "x = [0] * 1000000\n    for i in range(100000):\n        y = 1 in x", "run has used up"},
	{"searching a string", "x = 'a' * 10000000\n    for i in range(100000):\n        y = 'b' in x", "run has used up"},
	{"comparing long strings", "x = 'a' * 10000000\n    y = x + 'b'\n    z = x + 'c'\n    for i in range(100000):\n        w = y == z", "run has used up"},
	{"hashing long strings", "x = 'a' * 10000000\n    d = {}\n    for i in range(100000):\n        d[x] = 1", "run has used up"},
	{"counting in long strings", "x = 'a' * 10000000\n    for i in range(100000):\n        x.count('b')", "run has used up"},
	{"recursion", "return h(e)", "called recursively"},
	{"recursion by a lambda", "f = lambda g, n: g(g, n + 1)\n    return f(f, 0)", "called recursively"},
	{"a large result", "return 'a' * 300000", "256 KiB"},
	{"a large document", "c.x = ['abcdefghij'] * 50000", "256 KiB"},
	{"a document out of many writes", "for i in range(1000):\n        c[str(i)] = 'a' * 10000", ""},
	{"a large send", "send('B', 's', 'a' * 300000)", "256 KiB"},
	{"many sends", "for i in range(100000):\n        send('B', 's', 'a' * 10000)", ""},
	{"many lines", "for i in range(1000):\n        log('a')", "100 lines"},
	{"long lines", "for i in range(50):\n        log('a' * 100000)", "256 KiB"},
	{"many reads", "for i in range(1000000):\n        x = c[str(i)]", ""},
	{"a place in itself", "c.x = c\n    for i in range(100):\n        c.x = {'a': c.x, 'b': c.x}", ""},
	{"an integer beyond a document", "return 9223372036854775807 + 1", "64 bits"},
	{"a float that is none", "x = 1e308\n    return x * 10.0", "finite"},
	{"infinity by division", "x = 1e308\n    return x / 1e-10", "cannot be stored in a document"},
	{"not a number", "return float('nan')", "finite"},
	{"many closures", "x = []\n    for i in range(10000000):\n        x.append(lambda: x)", "run has used up"},
	{"long messages", "fail('a' * 10000000)", "aaa"},
	{"a document that grows key by key", "for i in range(1000000):\n        c[str(i)] = i", "run has used up"},
	{"an array that grows", "c.x = []\n    for i in range(1000000):\n        c.x.append(i)", "run has used up"},
	{"keys listed again and again", "x = {str(i): i for i in range(5000)}\n    c.x = x\n    for i in range(1000000):\n        for k in c.x:\n            break", "run has used up"},
	{"a timer that is very late", "set_timer('x', 's', after = '99999d')", ""},
	{"documents by the thousand", "for i in range(100000):\n        doc('d' + str(i)).set(i)", ""},
}

// TestHostile_IsStoppedInBoundedMemoryAndTheLaneMovesOn.
func TestHostile_IsStoppedInBoundedMemoryAndTheLaneMovesOn(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			text := "c = cell('c', {})\ndef h(e):\n    " + h.body + "\nhandle('h', h)\ndef ok(e):\n    return 1\nhandle('ok', ok)\n"
			s := newStage(t, compiled(t, text).Space())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			rc := s.send("h", nil)
			runtime.ReadMemStats(&after)
			// All allocations, including garbage and those of the test itself: the run may allocate 64
			// MiB.
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 400 {
				t.Errorf("it has allocated %d MiB", used)
			} else {
				t.Logf("%d MiB, %s: %.150s", used, rc.Outcome, rc.Error)
			}
			if h.want != "" && (rc.Outcome != model.Failed || !strings.Contains(rc.Error, h.want)) {
				t.Errorf("%s: %.300s; want a failure that says %q", rc.Outcome, rc.Error, h.want)
			}
			if len(rc.Error) > 6000 {
				t.Errorf("the error has %d bytes", len(rc.Error))
			}
			if got := s.must("ok", nil).String(); got != "1" {
				t.Errorf("the next event came to %s", got)
			}
		})
	}
}

// hostileSources are texts that must be refused before, or while, they are loaded.
var hostileSources = []struct{ name, text, want string }{
	{"a loop at the top", "for i in range(1000000000):\n    pass\n", "steps"},
	{"a bomb at the top", "x = 'a' * 1000000000\n", "run has used up"},
	{"parentheses", "x = " + strings.Repeat("(", 100000) + strings.Repeat(")", 100000) + "\n", "nest"},
	{"lists", "x = " + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "\n", "nest"},
	{"minuses", "x = " + strings.Repeat("-", 100000) + "1\n", "nest"},
	{"nots", "x = " + strings.Repeat("not ", 50000) + "1\n", "nest"},
	{"sums", "x = 1" + strings.Repeat("+1", 100000) + "\n", "nest"},
	{"fields", "x = a" + strings.Repeat(".b", 100000) + "\n", "nest"},
	{"calls", "x = a" + strings.Repeat("()", 100000) + "\n", "nest"},
	{"indexes", "x = a" + strings.Repeat("[0]", 80000) + "\n", "nest"},
	{"lambdas", "x = " + strings.Repeat("lambda: ", 30000) + "1\n", "nest"},
	{"conditions", "x = " + strings.Repeat("1 if 1 else ", 20000) + "1\n", "nest"},
	{"comprehensions", "x = " + strings.Repeat("[1 for i in ", 20000) + "\n", "nest"},
	{"elifs", "def f():\n    if 1:\n        pass\n" + strings.Repeat("    elif 1:\n        pass\n", 10000), "nest"},
	{"blocks", nestedBlocks(2000), "nest"},
	{"a large text", "x = 1\n" + strings.Repeat("#\n", 200000), "bytes; the limit is 262144"},
	{"a large integer", "x = " + strings.Repeat("9", 200000) + "\n", "64 bits"},
	{"unknown names", manyNames(9000), "undefined"},
	{"a nest of tuples", "def f():\n    x = (1,)\n    for i in range(50):\n        x = (x, x)\n    return x\ny = f()\n", "holds more than"},
	{"a deep list", "def f():\n    x = []\n    for i in range(100000):\n        x = [x]\n    return x\ny = f()\n", "nested more than"},
	{"a deep default", "def f():\n    x = []\n    for i in range(100000):\n        x = [x]\n    return x\ndef g(y = f()):\n    pass\n", "nested more than"},
	{"a deep closure", "def f():\n    x = []\n    for i in range(100000):\n        x = [x]\n    return lambda: x\ny = f()\n", "nested more than"},
	{"a deep closure of a node", "def f():\n    x = []\n    for i in range(100000):\n        x = [x]\n    compute('a', lambda: x)\nf()\n", "nested more than"},
	{"a deep default of a cell", "def f():\n    x = []\n    for i in range(100000):\n        x = [x]\n    return cell('c', x)\nf()\n", "nested more than"},
	{"a deep schema", "def f():\n    x = str\n    for i in range(100000):\n        x = [x]\n    return x\nhandle('h', lambda e: e, payload = f())\n", "nested more than"},
	{"a wide schema", "def f():\n    x = {'a': str}\n    for i in range(100):\n        x = {'a': x, 'b': x}\n    return x\nhandle('h', lambda e: e, payload = f())\n", "nested more than"},
	{"a cycle at the top", "x = []\nx.append(x)\n", ""},
	{"many nodes", "def f():\n    return 1\nfor i in range(100000):\n    compute('n' + str(i), f)\n", "at most"},
	{"a file that loads itself", "load('test.star', 'x')\n", "load each other"},
	{"a file that is elsewhere", "load('/etc/passwd', 'x')\n", "only finds files of the same program"},
	{"a file of the net", "load('https://example.org/x.star', 'x')\n", "only finds files of the same program"},
	{"a while", "def f():\n    while True:\n        pass\n", "while"},
	{"bytes", "x = b'abc'\n", "bytes"},
	{"a syntax error", "def f(:\n", "got ':'"},
	{"an import", "import os\n", "got import"},
	{"a nul", "x = 1\x00\n", ""},
	{"no text", string([]byte{0xff, 0xfe, 0x00}), ""},
	{"reserved names", "x = %add(1, 2)\n", "got '%'"},
}

func nestedBlocks(n int) string {
	var b strings.Builder
	b.WriteString("def f():\n")
	for i := range min(n, 600) {
		b.WriteString(strings.Repeat(" ", i+1) + "if 1:\n")
	}
	b.WriteString(strings.Repeat(" ", 700) + "pass\n")
	return b.String()
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("g")
		b.WriteString(strings.Repeat("y", i%5))
		b.WriteString(itoa(i))
		b.WriteString(" = u")
		b.WriteString(itoa(i))
		b.WriteString("\n")
	}
	return b.String()
}

func itoa(i int) string {
	var digits []byte
	for ; i > 0 || digits == nil; i /= 10 {
		digits = append(digits, byte('0'+i%10))
	}
	return string(digits)
}

// TestHostileSource_IsRefusedInBoundedMemory.
func TestHostileSource_IsRefusedInBoundedMemory(t *testing.T) {
	for _, h := range hostileSources {
		t.Run(h.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Compile(source(h.text), Options{})
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 400 {
				t.Errorf("it has allocated %d MiB", used)
			} else {
				t.Logf("%d MiB, %.150v", used, err)
			}
			if h.want == "" {
				return
			}
			if err == nil || !strings.Contains(err.Error(), h.want) {
				t.Errorf("%.300v; want an error that says %q", err, h.want)
			}
		})
	}
}

// TestMethods_AreAllKnown: the cost of each method of the library has been examined. A new method must
// be examined, too, before it is added here.
func TestMethods_AreAllKnown(t *testing.T) {
	looked := "append add capitalize clear codepoint_ords codepoints count difference discard elem_ords elems endswith " +
		"extend find format get index insert intersection isalnum isalpha isdigit islower isspace issubset issuperset " +
		"istitle isupper items join keys lower lstrip partition pop popitem remove removeprefix removesuffix replace " +
		"rfind rindex rpartition rsplit rstrip setdefault split splitlines startswith strip symmetric_difference title " +
		"union update upper values"
	for _, x := range []starlark.HasAttrs{starlark.String(""), starlark.NewList(nil), starlark.NewDict(0), starlark.NewSet(0)} {
		for _, name := range x.AttrNames() {
			if !slices.Contains(strings.Fields(looked), name) {
				t.Errorf("%s has a method %s; look at what it costs", x.Type(), name)
			}
		}
	}
	for name := range starlark.Universe {
		if !slices.Contains([]string{"None", "True", "False"}, name) && !interp.IsBuiltin(name) && !spaceBuiltins.has(name) {
			t.Errorf("there is a builtin %s; look at what it costs", name)
		}
	}
}

// A hosted handler needs no limit in time: it is stopped when its steps are used up, at the same place on
// every worker, at the first attempt, and the error names the limit.
func TestHostile_AHandlerThatReachesItsStepLimitFailsAtOnceAndSaysSo(t *testing.T) {
	s := newStage(t, compiled(t, "def h(e):\n    for i in range(100000000):\n        pass\nhandle('h', h)\ndef ok(e):\n    return 1\nhandle('ok', ok)\n").Space())
	rc := s.send("h", nil)
	if rc.Outcome != model.Failed || rc.Attempts > 1 || !strings.Contains(rc.Error, "run has used up its 1000000 steps") {
		t.Errorf("%s after %d attempts: %s", rc.Outcome, rc.Attempts, rc.Error)
	}
	if got := s.must("ok", nil).String(); got != "1" {
		t.Errorf("the next event came to %s", got)
	}
}
