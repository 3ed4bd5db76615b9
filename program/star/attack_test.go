package star

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// patience is a generous time limit for one attack: the budget of a run allows some tens of
// milliseconds, while a successful attack took minutes or never ended.
const patience = time.Minute

// withinReason fails the test if f runs for much longer than its budget allows, or allocates much more.
func withinReason(t *testing.T, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	alarm := time.NewTimer(patience)
	defer alarm.Stop()
	select {
	case <-done:
	case <-alarm.C:
		panic("an attack has succeeded: " + t.Name() + " does not come to an end")
	}
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 500 {
		t.Errorf("it has allocated %d MiB", used)
	}
}

// attacks are handlers, as in hostile. Each of them once evaded the metering.
var attacks = []struct{ name, body, want string }{
	{"a document's text repeated", "w = doc('w')\n    w.set('a' * 200000)\n    x = [w * 5000 for i in range(4)]", "run has used up"},
	{"a list repeated as often as a document says", "w = doc('w')\n    w.set(100000000)\n    x = [0] * w", "run has used up"},
	{"a document as a format", "w = doc('w')\n    w.set('%s' * 50000)\n    x = [1]\n    for i in range(50):\n        x = [x, x]\n    y = w % tuple([x] * 50000)", "run has used up"},
	{"a document's text doubled in place", "w = doc('w')\n    w.set('a' * 200000)\n    x = w.get()\n    for i in range(1000):\n        x += w", "run has used up"},
	{"a long integer by name", "x = int(x = '9' * 10000000)", "64 bits"},
	{"long keys hashed again by sets", "x = set(['a' * 30000000])\n    for i in range(200000):\n        y = x | x", "run has used up"},
	{"long keys hashed again by dicts", "x = {'a' * 30000000: 1}\n    for i in range(200000):\n        y = dict(x)", "run has used up"},
	{"long keys hashed again by methods", "x = set(['a' * 30000000])\n    for i in range(200000):\n        y = x.union([])", "run has used up"},
	{"long keys hashed again in place", "x = {'a' * 30000000: 1}\n    y = {}\n    for i in range(200000):\n        y |= x", "run has used up"},
	{"long keys hashed again by update", "x = {'a' * 30000000: 1}\n    y = {}\n    for i in range(200000):\n        y.update(x)", "run has used up"},
	{"stripping of many letters", "x = ('ä' * 1000000).strip('b' * 10000000 + 'ä')", "run has used up"},
	{"many beginnings", "x = 'a' * 1000000\n    y = ('a' * 999999 + 'b',) * 400000\n    for i in range(20):\n        x.startswith(y)", "run has used up"},
	{"removing in front", "x = [0] * 2000000\n    for i in range(100000):\n        x.remove(0)", "run has used up"},
	{"long names of what is logged", "for i in range(90):\n        log(**{'a' * 100000: 1})", "256 KiB"},
	{"a link with a long path", "c.x = link('d', 'a' * 10000000)", "path of a link"},
	{"a link with a long path, sent", "send('B', 's', link('d', 'a' * 10000000))", "path of a link"},
}

func TestAttack_NothingGoesAroundTheAccount(t *testing.T) {
	for _, h := range attacks {
		t.Run(h.name, func(t *testing.T) {
			text := "c = cell('c', {})\ndef h(e):\n    " + h.body + "\nhandle('h', h)\ndef ok(e):\n    return 1\nhandle('ok', ok)\n"
			s := newStage(t, compiled(t, text).Space())
			withinReason(t, func() {
				rc := s.send("h", nil)
				if rc.Outcome != model.Failed || !strings.Contains(rc.Error, h.want) {
					t.Errorf("%s: %.300s; want a failure that says %q", rc.Outcome, rc.Error, h.want)
				}
			})
			s.must("ok", nil)
		})
	}
}

// TestAttack_DefaultsAreChargedFor: every read of a document adds the fields of the default that it
// lacks.
func TestAttack_DefaultsAreChargedFor(t *testing.T) {
	s := newStage(t, compiled(t, `
big = cell("big", {"f%d" % i: i for i in range(8000)})
inside = cell("inside", {"a": {"f%d" % i: i for i in range(8000)}})

def h(e):
    big.set({})
    for i in range(100000):
        len(big)

def g(e):
    inside.set({"a": {}})
    for i in range(100000):
        len(inside)

handle("h", h)
handle("g", g)
`).Space())
	for _, stream := range []string{"h", "g"} {
		withinReason(t, func() {
			if rc := s.send(stream, nil); !strings.Contains(rc.Error, "run has used up") {
				t.Errorf("%s: %s %s", stream, rc.Outcome, rc.Error)
			}
		})
	}
}

// TestAttack_LongNamesDoNotMakeLongReceipts: an error contains the names of its call stack.
func TestAttack_LongNamesDoNotMakeLongReceipts(t *testing.T) {
	var b strings.Builder
	long := strings.Repeat("a", 8000)
	b.WriteString("def f0():\n    fail('x')\n")
	for i := 1; i < 15; i++ {
		fmt.Fprintf(&b, "def %s%d():\n    f%d()\nf%d = %s%d\n", long, i, i-1, i, long, i)
	}
	b.WriteString("handle('h', lambda e: f14())\n")
	s := newStage(t, compiled(t, b.String()).Space())
	if rc := s.send("h", nil); rc.Outcome != model.Failed || len(rc.Error) > 6000 {
		t.Errorf("the error has %d bytes", len(rc.Error))
	}
}

// attackSources are programs whose loading once never ended.
var attackSources = []struct{ name, text, want string }{
	{"functions that hold functions twice", "def mk(g):\n    return lambda a = g, b = g: 0\ndef build():\n    f = mk(None)\n    for i in range(60):\n        f = mk(f)\n    return f\ny = build()\n", "holds more than"},
	{"a function that holds itself", "def f():\n    def g():\n        return g\n    return g\ny = f()\n", "holds"},
	{"functions that hold each other", "def f():\n    x = []\n    def g():\n        return x\n    x.append(g)\n    return g\ny = f()\n", ""},
	{"a wide schema that is not deep", "def f():\n    x = {'a': str}\n    for i in range(18):\n        x = {k: x for k in 'abcdefghij'.elems()}\n    return x\nhandle('h', lambda e: e, payload = f())\n", "the schema"},
	{"functions in each other, with a long one in the middle", "f = " + strings.Repeat("lambda:", 250) + "[" + strings.Repeat("1,", 120000) + "]\n", ""},
	{"very many functions in each other", "f = " + strings.Repeat("lambda:", 30000) + "1\n", "nest"},
	{"many nodes of a large constant", "t = list(range(150000))\ndef f():\n    return t\nfor i in range(5000):\n    compute('n%d' % i, f)\n", ""},
	{"a cycle that a node names", "x = []\nx.append(x)\ncompute('n', lambda: len(x))\n", ""},
	{"a wide nest that a node names", "def f():\n    x = [1]\n    for i in range(50):\n        x = [x, x]\n    return x\nx = f()\ncompute('n', lambda: len(x))\n", ""},
	{"many closures of a long function", "def f(i):\n    return lambda: [i" + strings.Repeat(",i", 60000) + "]\nt = [f(i) for i in range(20000)]\ncompute('n', lambda: t[0]())\n", ""},
}

func TestAttack_LoadingComesToAnEnd(t *testing.T) {
	for _, h := range attackSources {
		t.Run(h.name, func(t *testing.T) {
			withinReason(t, func() {
				_, err := Compile(source(h.text), Options{})
				if h.want == "" && err != nil || h.want != "" && (err == nil || !strings.Contains(err.Error(), h.want)) {
					t.Errorf("%.300v; want %q", err, h.want)
				}
			})
		})
	}
}

// TestAttack_MethodsThatAreKeptRememberNothing: a bound method of an otherwise unreachable list would
// carry data from one run to the next, and from one space to another.
func TestAttack_MethodsThatAreKeptRememberNothing(t *testing.T) {
	s := newStage(t, compiled(t, `
def hidden():
    x = []
    d = {}
    return [x.append, x.pop, d.setdefault]

push, pull, keep = hidden()

def put(e):
    push(e)

def keep_it(e):
    return keep("x", e)

handle("put", put)
handle("keep", keep_it)
handle("direct", lambda e: pull())
`).Space())
	for _, stream := range []string{"put", "keep"} {
		if rc := s.send(stream, 7); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "frozen") {
			t.Errorf("%s: %s %s %s", stream, rc.Outcome, rc.Result, rc.Error)
		}
	}
}

// TestAttack_PlacesAreNotRememberedWithoutEnd: naming places must not fill the memory of a worker over
// many runs.
func TestAttack_PlacesAreNotRememberedWithoutEnd(t *testing.T) {
	p := compiled(t, `
c = cell("c")

def fill(e):
    c.set({str(i): {str(j): {str(k): {} for k in range(20)} for j in range(20)} for i in range(20)})

def look(e):
    for a in c.keys():
        for b in c[a].keys():
            for d in c[a][b].keys():
                x = c[a][b][d]

handle("fill", fill)
handle("look", look)
`)
	s := newStage(t, p.Space())
	s.must("fill", nil)
	s.must("look", nil)
	var count func(x *value.Place) int
	count = func(x *value.Place) (n int) {
		for _, k := range x.Children {
			n += 1 + count(k)
		}
		return n
	}
	for _, inst := range p.idle {
		if n := count(inst.decls[0].fn.(*starlark.Function).Module().Globals()["c"].(*value.Place)); n > value.MaxRemembered {
			t.Errorf("%d places are remembered", n)
		}
	}
}

// TestAttack_TimesThatNoCalendarHas: a time that cannot be written must not reach the log.
func TestAttack_TimesThatNoCalendarHas(t *testing.T) {
	s := newStage(t, compiled(t, `
handle("late", lambda e: send("B", "s", at = e))
handle("timer", lambda e: set_timer("t", "s", at = e))
handle("text", lambda e: rfc3339(e))
handle("key", lambda e: cell("d").update({"ä".elems().type if False else e: 1}))
`).Space())
	for _, at := range []int64{1 << 62, -1 << 62, 9223372036854775807, -9223372036854775808, 253402300800000, -62135596800001, 0} {
		for _, stream := range []string{"late", "timer", "text"} {
			rc := s.send(stream, at)
			t.Logf("%s %d: %s %s %s", stream, at, rc.Outcome, rc.Result, rc.Error)
		}
	}
}

// TestAttack_FramesAreChargedFor: a function with many variables, or with a long literal list, takes
// memory when it is called, whether it uses them or not.
func TestAttack_FramesAreChargedFor(t *testing.T) {
	var locals strings.Builder
	for i := range 14000 {
		fmt.Fprintf(&locals, "    v%d = 1\n", i)
	}
	for name, body := range map[string]string{
		"a long list":    "    return\n    x = [" + strings.Repeat("1,", 60000) + "]\n",
		"many variables": "    return\n" + locals.String(),
	} {
		s := newStage(t, compiled(t, "def f():\n"+body+"def h(e):\n    for i in range(300000):\n        f()\nhandle('h', h)\n").Space())
		withinReason(t, func() {
			if rc := s.send("h", nil); !strings.Contains(rc.Error, "run has used up") {
				t.Errorf("%s: %s %s", name, rc.Outcome, rc.Error)
			}
		})
	}
	s := newStage(t, compiled(t, "f = lambda x: [x"+strings.Repeat(",x", 60000)+"] if x else 0\ndef h(e):\n    for i in range(300000):\n        f(0)\nhandle('h', h)\n").Space())
	withinReason(t, func() {
		if rc := s.send("h", nil); !strings.Contains(rc.Error, "run has used up") {
			t.Errorf("a lambda: %s %s", rc.Outcome, rc.Error)
		}
	})
}

// TestAttack_ChainsOfComputationsDoNotEndTheProcess: reads pull computations, nested in each other.
func TestAttack_ChainsOfComputationsDoNotEndTheProcess(t *testing.T) {
	s := newStage(t, compiled(t, `
start = cell("start", 1)
docs = [start]

def link_to(i):
    before = docs[i]
    return lambda: before + 1

for i in range(2000):
    docs.append(compute("n%d" % i, link_to(i)))

handle("set", lambda e: start.set(e))
`).Space())
	withinReason(t, func() { s.observe("n1999") })
	if got := s.doc("n1999"); got != "2001" {
		t.Logf("it came to %s: %.300v", got, s.errs)
	}
	s.must("set", 5)
}

// TestAttack_LinksThatLeadToThemselves.
func TestAttack_LinksThatLeadToThemselves(t *testing.T) {
	s := newStage(t, compiled(t, `
c = cell("c")

def tie(e):
    c["a"] = link("c", "b")
    c["b"] = link("c", "a")
    c["d"] = link("c")

def look(e):
    return str(c["a"])

def deep(e):
    x = c
    for i in range(200):
        x = x["d"]
    return str(x)

def whole(e):
    return c

handle("tie", tie)
handle("look", look)
handle("deep", deep)
handle("whole", whole)
`).Space())
	s.must("tie", nil)
	for _, stream := range []string{"look", "deep", "whole"} {
		withinReason(t, func() {
			rc := s.send(stream, nil)
			t.Logf("%s: %s %.100s %.200s", stream, rc.Outcome, rc.Result, rc.Error)
		})
	}
}

// TestAttack_SpacesAtTheSameTimeSeeNothingOfEachOther is also meant for the race detector.
func TestAttack_SpacesAtTheSameTimeSeeNothingOfEachOther(t *testing.T) {
	p := compiled(t, `
c = cell("c", {"n": 0, "seen": {}})
held = [c, c.seen]

def add(e):
    own = []
    keep = lambda: own
    own.append(e)
    c.n += e
    held[1][str(e)] = {"by": space()}
    return [c.n, keep(), held[0].n, len(c.seen)]

handle("add", add, payload = int)
compute("double", lambda: c.n * 2)
`)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			name := fmt.Sprintf("S%d", i)
			s := newStage(t, p.Space(), func(c *space.Config) { c.Space = name })
			s.observe("double")
			for n := 1; n <= 40; n++ {
				s.lane++
				id := fmt.Sprintf("e%d", n)
				s.core.Offer(model.Event{Space: name, Stream: "add", ID: id, Payload: model.Int(int64(i + 1)), Lane: s.lane})
				s.settle()
				want := fmt.Sprintf("[%d,[%d],%d,1]", n*(i+1), i+1, n*(i+1))
				if rc := s.receipts[id]; rc == nil || rc.Result.String() != want {
					t.Errorf("space %d: %+v, want %s", i, rc, want)
					return
				}
			}
			if got := s.doc("double"); got != fmt.Sprint(80*(i+1)) {
				t.Errorf("space %d: double is %s", i, got)
			}
		})
	}
	all.Wait()
}

// TestAttack_StopEndsWhatLoops: a worker that stops does not wait for a program.
func TestAttack_StopEndsWhatLoops(t *testing.T) {
	p, err := Compile(source("def h(e):\n    for i in range(2000000000):\n        pass\nhandle('h', h)\n"), Options{Limits: Limits{Steps: 1 << 60, Memory: 1 << 60}})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, p.Space())
	stopped := time.AfterFunc(50*time.Millisecond, func() { p.Stop("the worker ends") })
	defer stopped.Stop()
	withinReason(t, func() {
		if rc := s.send("h", nil); !strings.Contains(rc.Error, "the worker ends") {
			t.Errorf("%s %s", rc.Outcome, rc.Error)
		}
	})
}

// TestAttack_Fingerprints: different code has different fingerprints.
func TestAttack_Fingerprints(t *testing.T) {
	for _, pair := range [][2]string{
		{"x = doc('x')\ny = doc('y')\ncompute('n', lambda: 1, reads = [x['a y']['b']])", "x = doc('x')\ny = doc('y')\ncompute('n', lambda: 1, reads = [x['a'], y['b']])"},
		{"def f(x = 1):\n    return x\ncompute('n', lambda: f())", "def f(x = 2):\n    return x\ncompute('n', lambda: f())"},
		{"def f():\n    def g():\n        return 1\n    return g()\ncompute('n', f)", "def f():\n    def g():\n        return 2\n    return g()\ncompute('n', f)"},
		{"k = {'a': [1, 2]}\ncompute('n', lambda: k['a'][0])", "k = {'a': [1, 3]}\ncompute('n', lambda: k['a'][0])"},
		{"k = {'a': 'x' + 300 * 'y'}\ncompute('n', lambda: k['a'])", "k = {'a': 'z' + 300 * 'y'}\ncompute('n', lambda: k['a'])"},
		{"compute('n', lambda: len([1]))", "def len(x):\n    return 7\ncompute('n', lambda: len([1]))"},
		{"k = [1]\npush = [k.index]\ncompute('n', lambda: push[0](1))", "k = [2, 1]\npush = [k.index]\ncompute('n', lambda: push[0](1))"},
		{"compute('n', lambda: [f(1) for f in [lambda x: x + 1]])", "compute('n', lambda: [f(1) for f in [lambda x: x + 2]])"},
		{"a = lambda: 1\nb = lambda: 2\nt = [a, b]\ncompute('n', lambda: t[0]())", "a = lambda: 1\nb = lambda: 2\nt = [b, a]\ncompute('n', lambda: t[0]())"},
		{"a = lambda: 1\nb = lambda: 2\nt = [a, b, a]\ncompute('n', lambda: t[2]())", "a = lambda: 1\nb = lambda: 2\nt = [a, b, b]\ncompute('n', lambda: t[2]())"},
		{"c = cell('c', {'a': 1})\ncompute('n', lambda: c.a)", "c = cell('c', {'a': 1.5})\ncompute('n', lambda: c.a)"},
		{"compute('n', lambda: 1)", "compute('n', lambda: 1.0)"},
		{"compute('n', lambda: '1')", "compute('n', lambda: 1)"},
	} {
		if changed := changedBy(t, compiled(t, pair[0]+"\n"), compiled(t, pair[1]+"\n")); changed != "n" {
			t.Errorf("%s\nand\n%s\nhave the same fingerprint", pair[0], pair[1])
		}
	}
}

// TestAttack_ManyFilesAreRefused: files that load each other are executed recursively.
func TestAttack_ManyFilesAreRefused(t *testing.T) {
	src := source("load('f0.star', 'x')\n")
	for i := range 9000 {
		src.Files[fmt.Sprintf("f%d.star", i)] = fmt.Sprintf("load('f%d.star','x')\n", i+1)
	}
	withinReason(t, func() {
		if _, err := Compile(src, Options{}); err == nil || !strings.Contains(err.Error(), "files") {
			t.Errorf("%.200v", err)
		}
	})
	src = source("x = 1\n")
	src.Files[strings.Repeat("a", 1<<20)+".star"] = ""
	if _, err := Compile(src, Options{}); err == nil || len(err.Error()) > 500 {
		t.Errorf("a long name: %.200v", err)
	}
}

// TestAttack_KeysThatHashAlike: a lookup in a dict of such keys compares all of them.
func TestAttack_KeysThatHashAlike(t *testing.T) {
	for name, body := range map[string]string{
		"integers": "x = {}\n    for i in range(100000):\n        x[i * 4294967296] = 1",
		"floats":   "x = {}\n    for i in range(100000):\n        x[i / 1000000] = 1",
		"tuples":   "x = {}\n    for i in range(100000):\n        x[(i * 4294967296,)] = 1",
		"sets":     "x = set([i * 4294967296 for i in range(60000)])",
		"a dict":   "x = {i * 4294967296: 1 for i in range(60000)}",
		"pairs":    "x = dict([(i * 4294967296, 1) for i in range(30000)])",
	} {
		s := newStage(t, compiled(t, "def h(e):\n    "+body+"\nhandle('h', h)\n").Space())
		withinReason(t, func() {
			if rc := s.send("h", nil); !strings.Contains(rc.Error, "run has used up") {
				t.Errorf("%s: %s %.200s", name, rc.Outcome, rc.Error)
			}
		})
	}
}
