package star

import (
	"context"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// evaluations are bodies of a handler with an event e, and the results.
var evaluations = []struct{ body, want string }{
	{"return [1 + 2, 7 // 2, 7 / 2, -7 // 2, 7 % 3, 2 * 3.5, 1 << 4, 6 & 3, 6 | 1, 6 ^ 2]", "[3,3,3.5,-4,1,7,16,2,7,4]"},
	{"return ['a' + 'b', 'a' * 3, 'ab'[1], 'abc'[::-1], 'abc'[1:], 'x' in 'xyz', 'q' not in 'xyz']", `["ab","aaa","b","cba","bc",true,true]`},
	{"return [[1, 2] + [3], [1] * 2, [1, 2, 3][-1], [1, 2, 3, 4][1:3], 2 in [1, 2], [1, 2] == [1, 2], [1] < [2]]", "[[1,2,3],[1,1],3,[2,3],true,true,true]"},
	{"x = {'a': 1}\n    x['b'] = 2\n    x['a'] += 5\n    x |= {'c': 3}\n    return x", `{"a":6,"b":2,"c":3}`},
	{"x = [1]\n    y = x\n    y += [2]\n    y.append(3)\n    y.extend([4])\n    return x", "[1,2,3,4]"},
	{"return [sorted([3, 1, 2]), sorted(['b', 'a'], reverse = True), sorted([[2, 1], [1, 9]]), sorted([1, 2, 3], key = lambda x: -x)]", `[[1,2,3],["b","a"],[[1,9],[2,1]],[3,2,1]]`},
	{"return [min(3, 1), max([1, 5]), sum([1, 2.5]), abs(-3), len('abc'), round(2.5), round(2.345, 2), int('7'), float(1), str(1), int(2.9)]", `[1,5,3.5,3,3,3,2.35,7,1,"1",2]`},
	{"return [list(range(3)), list(enumerate(['a'])), zip([1, 2], [3, 4]), list(reversed([1, 2])), any([0, 1]), all([0, 1])]", `[[0,1,2],[[0,"a"]],[[1,3],[2,4]],[2,1],true,false]`},
	{"return ['%s is %d' % ('x', 3), '{} {b}'.format(1, b = [2]), ', '.join(['a', 'b']), 'a,b'.split(','), ' x '.strip(), 'ab'.upper(), 'a-b'.replace('-', '+')]", `["x is 3","1 [2]","a, b",["a","b"],"x","AB","a+b"]`},
	{"return ['0' * (3 - len(s)) + s for s in ['7', '1234']]", `["007","1234"]`},
	{"return [str([1, 'a', None, True, {'x': 2.5}]), repr('a'), str((1,)), type(1), type(e), type([]), type(c)]", `["[1, \"a\", None, True, {\"x\": 2.5}]","\"a\"","(1,)","int","object","list","object"]`},
	{"return [e.n, e['n'], e.missing, e.get('missing', 7), e.list[1], e.list[-1], len(e.list), 2 in e.list, 'n' in e, [x for x in e.list]]", "[5,5,null,7,2,3,3,true,true,[1,2,3]]"},
	{"return [e.list == [1, 2, 3], e.list + [4], e.nested == {'a': {'b': 1}}, e.nested.a.b, dict(e.nested.a), e.list[1:], sorted(e.list, reverse = True)]", `[true,[1,2,3,4],true,1,{"b":1},[2,3],[3,2,1]]`},
	{"return [e.keys(), [k for k in e.nested], e.nested.a.items(), e.nested.a.values(), str(e.nested)]", `[["items","list","n","nested"],["a"],[["b",1]],[1],"{\"a\": {\"b\": 1}}"]`},
	{"return [e.items, e.items == 'field', [k for k, v in e.items()][0]]", `["field",true,"items"]`},
	{"c.x = 1\n    c.x += 2\n    c['y'] = {'a': [1]}\n    c.y.a.append(2)\n    c.y.b = c.y.a\n    return c", `{"x":3,"y":{"a":[1,2],"b":[1,2]},"z":[]}`},
	{"c.y = {'a': 1, 'b': 2}\n    c.y.delete('a')\n    c.y.update({'d': 4}, f = 5)\n    v = c.y.pop('b')\n    return [v, c.y, c.y.pop('b', 9), 'd' in c.y, len(c.y), c.y.keys(), c.y.setdefault('g', 7)]", `[2,{"d":4,"f":5,"g":7},9,true,2,["d","f"],7]`},
	{"c.z.append(1)\n    c.z.append({'q': 1})\n    c.z[1].q = 2\n    c.z[0] = 5\n    return [c.z[0], c.z[-1].q, len(c.z), [x for x in c.z], c.z[0:1], 5 in c.z]", "[5,2,2,[5,{\"q\":2}],[5],true]"},
	{"c.set({'x': 9})\n    return [c.x, c.z, c.exists(), c.exists('z'), bool(c.z), n.get(), n + 1]", "[9,[],true,false,false,4,5]"},
	{"return [n == 4, n != 4, n > 3, n >= 5, n == None, n in [4], 'n is %d %s' % (n, n), '{}'.format(n), str(n)]", `[true,false,true,false,false,true,"n is 4 4","4","4"]`},
	{"n.set(n + 1)\n    n.set(n.get() * 2)\n    return n", "10"},
	{"a, b = 1, 2\n    a, b = b, a\n    (x, [y, z]) = (1, [2, 3])\n    return [a, b, x, y, z]", "[2,1,1,2,3]"},
	{"f = lambda *a, **k: [a, k]\n    return f(*[1, 2], **{'x': 3})", `[[1,2],{"x":3}]`},
	{"return [event().stream, event().id, event().origin, event().timer, space()]", `["h","e1",null,null,"ATL"]`},
	{"return [rfc3339(now()), duration('90s'), time_of('2026-11-22T09:00:00Z') == now()]", `["2026-11-22T09:00:00Z",90000,true]`},
	{"set_timer('t', 's', after = '1h')\n    x = timer('t') - now()\n    cancel_timer('t')\n    return [x, timer('t')]", "[3600000,null]"},
	{"c.x = {'gate': 'A1'}\n    c.y = link('c', 'x')\n    return [c.y.gate, link_at(c, 'y').doc, link_at(c, 'x'), follow(link(c.x)).gate, link('c', 'x') == link_at(c, 'y')]", `["A1","c",null,"A1",true]`},
	{"return [doc('other').x, doc('other').exists(), not doc('other'), doc('other') == None]", "[null,false,true,true]"},
	{"return [name_of('order-7'), name_of('two words') == name_of('two' + ' words'), name_of('') != name_of('-key-')]", `["order-7",true,true]`},
	{"return {k: v for k, v in {'b': 1, 'a': 2}.items() if v > 0}", `{"a":2,"b":1}`},
	{"s = set([1, 2, 2])\n    s.add(3)\n    return [sorted(s), 2 in s, len(s | set([9])), sorted(s - set([1]))]", "[[1,2,3],true,4,[2,3]]"},
	{"return getattr(e, 'n') + getattr(e, 'nope', 0) + (1 if hasattr(e, 'n') else 0)", "6"},
	{"x = []\n    for i in range(10):\n        if i == 2:\n            continue\n        if i == 5:\n            break\n        x.append(i)\n    return x", "[0,1,3,4]"},
	{"return 9223372036854775807", "9223372036854775807"},
	{"return None", "absent"},
}

const evaluator = "c = cell('c', {'x': 0, 'y': {}, 'z': []})\nn = cell('n', 4)\ndef h(e):\n    "

var evaluated = map[string]any{"n": 5, "list": []any{1, 2, 3}, "nested": map[string]any{"a": map[string]any{"b": 1}}, "items": "field"}

func TestLanguage_ComesToTheSameTwice(t *testing.T) {
	for _, ev := range evaluations {
		text := evaluator + ev.body + "\nhandle('h', h)\n"
		for range 2 {
			rc := newStage(t, compiled(t, text).Space()).send("h", evaluated)
			if rc.Outcome != model.Handled || rc.Result.String() != ev.want {
				t.Errorf("%s\ncame to %s %s %s\nwant    %s", ev.body, rc.Outcome, rc.Error, rc.Result, ev.want)
			}
		}
	}
}

// refusals are bodies of a handler and words of the error.
var refusals = []struct{ body, want string }{
	{"c.nope = 1", "c has no field nope: its default does not declare one"},
	{"return c.nope", "c has no field nope"},
	{"return e.list[7]", "index 7 is out of range: the array has 3 elements"},
	{"return e.list['x']", "an array has no key"},
	{"return e[1]", "a key of an object is a string"},
	{"e.n = 2", "can't assign to .n field of object"},
	{"c.x = lambda: 1", "a function cannot be stored in a document"},
	{"c.x = set([1])", "use sorted(s)"},
	{"c.x = {1: 2}", "the key of an object in a document must be a string, not an int"},
	{"return {'a': [h]}", "a function cannot be stored in a document"},
	{"fail('no', 'seats', 3)", "no seats 3"},
	{"return 1 + 'a'", "unknown binary op: int + string"},
	{"return {}['x']", `key "x" not in dict`},
	{"print('x')", "use log(...)"},
	{"name_of(7)", "name_of: for parameter key: got int, want string"},
	{"return bytes('x')", "there are no bytes"},
	{"return hash('x')", "there is no hash"},
	{"cell('d', 1)\n    handle('x', h)", "while it is loaded, not while it runs"},
	{"doc('x', space = 'RIX').y = 1", "a program can only write documents of its own space"},
	{"send('RIX', 'bad stream', 1)", "bad stream"},
	{"send('', 'ghost', 1)", `the space is ""; this one is space()`},
	{"return '%03d' % 7", `unknown conversion %0; there are no widths: "0" * (3 - len(s)) + s`},
	{"send('RIX', 's', 1, after = 'tomorrow')", `"tomorrow" is not a duration`},
	{"send('RIX', 's', 1, after = '1h', at = 7)", "use one"},
	{"set_timer('t', 's')", "it needs a time"},
	{"LIST.append(1)", "frozen"},
	{"TABLE['a'] = 1", "frozen"},
	{"return sorted([1, 'a'])", "not implemented"},
	{"return max([])", "the sequence is empty"},
	{"return [1 for x in 5]", "not iterable"},
	{"return link('a b')", "a b"},
	{"return follow(3)", "an int is not a link"},
	{"c.z.remove('x')", "c/z is an array, which has no method remove; replace the whole value: x.set([v for v in x if ...])"},
	{"c.z.sort()", "replace the whole value: x.set(sorted(x))"},
	{"c.z.clear()", "replace the whole value: x.set([])"},
	{"c.y.clear()", "c/y is an object, which has no method clear; replace the whole value: x.set({})"},
	{"c.y.insert(1, 2)", "c/y is an object, which has no method insert; its methods are append, delete, exists"},
	{"c.y.frobnicate()", "c/y has no method frobnicate"},
	{"c['q'].sort()", "c/q is not there"},
	{"e.list.append(4)", "a value that was read cannot be changed; copy it with list(x) or dict(x)"},
	{"e.list.sort()", "an array has no method sort"},
	{"return [2, 1].sort()", "a list has no method sort; use sorted(x)"},
	{"c.y['x'].tries += 1", "c/y/x is not there (None), so it has no .tries"},
	{"c.y['x'].tries *= 2", "c/y/x is not there (None), so it has no .tries"},
	{"return doc('u', space = 'RIX').a.b", "RIX/u/a is not there"},
	{"c.y['x'] += 1", "c/y/x is not there"},
	{"c.y.x += e.n", "c/y/x is not there"},
	{"return c.y.x + 1", "c/y/x is not there"},
	{"d.set(1)", "output of computation d"},
}

func TestLanguage_RefusesWithWords(t *testing.T) {
	for _, r := range refusals {
		text := "LIST = [1]\nTABLE = {}\nd = compute('d', lambda: 1)\n" + evaluator + r.body + "\nhandle('h', h)\n"
		rc := newStage(t, compiled(t, text).Space()).send("h", evaluated)
		if rc.Outcome != model.Failed || !strings.Contains(rc.Error, r.want) {
			t.Errorf("%s\n%s %s %s\nwant an error with %q", r.body, rc.Outcome, rc.Error, rc.Result, r.want)
		}
	}
}

// inNodes are bodies of a computation, and words of its error.
var inNodes = []struct{ body, want string }{
	{"return now()", "a node does not run again when time passes"},
	{"send('RIX', 's')", "only handlers send events"},
	{"set_timer('t', 's', after = '1h')", "only handlers use timers"},
	{"return event().id", "only a handler has an event"},
	{"c.x = 1", "computation d may only read"},
	{"c.z.append(1)", "computation d may only read"},
	{"group('x')", "the group of a node is set"},
}

func TestComputation_MayOnlyRead(t *testing.T) {
	for _, n := range inNodes {
		text := "c = cell('c', {'x': 0, 'z': []})\ndef d():\n    " + n.body + "\ncompute('d', d)\n"
		s := newStage(t, compiled(t, text).Space())
		s.observe("d")
		if len(s.errs) != 1 || !strings.Contains(s.errs[0].Error(), n.want) {
			t.Errorf("%s: %v; want %q", n.body, s.errs, n.want)
		}
	}
}

// atLoad are texts that do not compile, and words of the error.
var atLoad = []struct{ text, want string }{
	{"x = random.random()", "there is no randomness"},
	{"x = time.now()", "there is no clock but now()"},
	{"x = now()", "while a program is loaded there is no space"},
	{"x = open('f')", "no files"},
	{"c = cell('c', {'x': 1})\nif c.x == 2:\n    pass\nx = c.x + 1", "read while the program is loaded"},
	{"handle('h', 7)", "for parameter fn: got int, want callable"},
	{"handle('h', lambda a, b: 1)", "a handler takes one parameter"},
	{"handle('h', lambda e: 1)\nhandle('h', lambda e: 1)", "stream h has a handler already"},
	{"compute('d', lambda x: 1)", "a computation takes none"},
	{"compute('d', lambda: 1, debounce = 'soon')", `debounce: "soon" is not a duration`},
	{"compute('d', lambda: 1, debounce = '1s', max_wait = 'long')", `max_wait: "long" is not a duration`},
	{"compute('d', lambda: 1, max_wait = '1s')", "no debounce that it bounds"},
	{"compute('d', lambda: 1, debounce = '2s', max_wait = '1s')", "shorter than the debounce"},
	{"compute('d', lambda: 1)\ncompute('d', lambda: 2)", "this id is taken"},
	{"compute('a b', lambda: 1)", "a b"},
	{"each('d', doc('x'), lambda k: 1)", "the function takes two parameters"},
	{"each('d', doc('x', space = 'RIX'), lambda k, v: 1)", "the rows must be in a document of this space"},
	{"cron('c', 'every day')", "cron expression"},
	{"cron('c', '0 9 * * *', catch_up = 'never')", `use "once", "skip" or "all"`},
	{"handle('h', lambda e: 1, payload = {'a': 7})", "field a: int is not a schema"},
	{"handle('h', lambda e: 1, payload = [str, int])", "a list with one element"},
	{"load('nope.star', 'x')", "only finds files of the same program"},
	{"cell('a b')", "a b"},
	{"cron('c', '0 9 * * *', stream = 'x')\nhandle('c', lambda e: 1)", "cron c: there is no handler for stream x; handle(\"x\", ...)"},
	{"cron('c', '0 9 * * *')", "there is no handler for stream c"},
	{"x = cell('x')\ncompute('a', lambda: x.set(1), writes = [x], output = None)\ncompute('b', lambda: x.k.set(2), writes = [x.k], output = None)", `3:8: computation "a" writes x, and computation "b" writes x/k: the value there would depend on which`},
	{"each('d', {'a': 1}, lambda k, v: 1)", "each d: the rows must be a cell, a doc or a place in one, not a dict"},
	{"def f(e):\n    return f'{e}'", "there are no f-strings: use % or .format"},
	{"x = 1\nx = 2", "cannot reassign global x"},
	{"def f():\n    a[0], b = 1, 2", "only names can be assigned to here"},
	{"def f():\n    return undefined_thing", "undefined: undefined_thing"},
}

func TestCompile_RefusesWithPlaceAndWords(t *testing.T) {
	for _, l := range atLoad {
		_, err := Compile(source(l.text), Options{})
		if err == nil || !strings.Contains(err.Error(), l.want) || !strings.HasPrefix(err.Error(), "test.star:") {
			t.Errorf("%s\n%v\nwant test.star:...%q", l.text, err, l.want)
		}
	}
}

func TestReads_AreTheFinestPlaces(t *testing.T) {
	s := newStage(t, compiled(t, `
c = cell("c", {"a": 1, "m": {}, "l": []})
def field(): return c.a
def keys(): return len(c.m)
def member(): return c.m.x
def within(): return "x" in c.m
def deep(): return str(c.m)
def truth(): return bool(c.l)
compute("field", field)
compute("keys", keys)
compute("member", member)
compute("within", within)
compute("deep", deep)
compute("truth", truth)
def w(e):
    if e.what == "a": c.a += 1
    if e.what == "new": c.m.x = {"p": 1}
    if e.what == "inner": c.m.x.p += 1
    if e.what == "other": c.m.y = 1
    if e.what == "list": c.l.append(1)
handle("w", w)
`).Space())
	names := []string{"deep", "field", "keys", "member", "truth", "within"}
	s.observe(names...)
	s.must("w", map[string]any{"what": "a"}) // all fields are there from here on
	for _, step := range []struct{ what, want string }{
		{"a", "field"}, {"new", "deep keys member within"}, {"inner", "deep member"}, {"other", "deep keys within"}, {"list", "truth"}, {"list", "truth"},
	} {
		clear(s.runs)
		s.must("w", map[string]any{"what": step.what})
		var ran []string
		for _, n := range names {
			if s.runs[n] > 0 {
				ran = append(ran, n)
			}
		}
		if got := strings.Join(ran, " "); got != step.want {
			t.Errorf("%s: %q ran, want %q", step.what, got, step.want)
		}
	}
	if len(s.errs) > 0 {
		t.Error(s.errs)
	}
}

func TestForeign_DocumentsAreReadAndFollowed(t *testing.T) {
	p := compiled(t, `
rix = doc("punctuality", space = "RIX")
def worst(): return {"delay": rix.mean_delay, "there": rix.exists(), "n": len(rix)}
compute("worst", worst)
`)
	s := newStage(t, p.Space())
	ref := space.Ref{Space: "RIX", Doc: "punctuality"}
	s.mirrors[ref] = model.MustOf(map[string]any{"mean_delay": 4})
	s.observe("worst")
	s.expect("worst", `{"delay":4,"n":1,"there":true}`)
	s.core.Mirror("RIX", "punctuality", model.MustOf(map[string]any{"mean_delay": 5}))
	s.settle()
	s.expect("worst", `{"delay":5,"n":1,"there":true}`)
}

func TestNodes_WriteWhereTheyDeclare(t *testing.T) {
	s := newStage(t, compiled(t, `
c = cell("c", {"n": 0})
alarms = cell("alarms", {})
def watchman():
    if c.n > 2:
        alarms["high"] = c.n
        log("too high", n = c.n)
effect("watchman", watchman, writes = [alarms["high"]])
def h(e): c.n += 1
handle("h", h)
`).Space())
	for range 4 {
		s.must("h", nil)
	}
	s.expect("alarms", `{"high":4}`)
	if got := strings.Join(s.logged, ","); got != "too high n3,too high n4" {
		t.Errorf("logged %s", got)
	}
}

func TestReject_TheReceiptHasCodeMessageAndData(t *testing.T) {
	s := newStage(t, compiled(t, "c = cell('c', 0)\ndef h(e):\n    c.set(1)\n    reject('full', 'no place', {'free': 0})\nhandle('h', h)\n").Space())
	s.lane++
	s.core.Offer(model.Event{Space: s.name, Stream: "h", ID: "x", Lane: s.lane})
	s.advance(1e9)
	if rc := s.receipts["x"]; rc == nil || rc.Outcome != model.Rejected || receipts.Reason(rc) != "full: no place" || rc.Result.String() != `{"free":0}` {
		t.Errorf("%+v", rc)
	}
	s.expect("c", "absent")
}

func TestTransient_ErrorsAreTriedAgain(t *testing.T) {
	tries := 0
	s := newStage(t, compiled(t, "def h(e):\n    fail('busy', transient = True)\nhandle('h', h)\n").Space(), func(c *space.Config) {
		c.Trace.HandleEnd = func(space.HandleInfo) { tries++ }
	})
	s.lane++
	s.core.Offer(model.Event{Space: s.name, Stream: "h", ID: "x", Lane: s.lane})
	for range 10 {
		s.advance(1e9)
	}
	if rc := s.receipts["x"]; rc == nil || rc.Outcome != model.Failed || tries != 5 {
		t.Errorf("after %d tries: %+v", tries, rc)
	}
}

// TestStop_EndsWhatRuns: a worker that stops does not wait for a program.
func TestStop_EndsWhatRuns(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	text := "def h(e):\n    log('in')\n    for i in range(1000000000):\n        for j in range(1000000000):\n            pass\nhandle('h', h)\n"
	p, err := Compile(source(text), Options{Context: ctx, Limits: Limits{Steps: 1 << 50, Memory: 1 << 60}})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, p.Space())
	s.core.OnConsole(func(space.ConsoleInfo) { go cancel(context.Canceled) })
	rc := s.send("h", nil)
	if rc.Outcome != model.Failed || !strings.Contains(rc.Error, "the run was stopped: context canceled") {
		t.Errorf("%s %s", rc.Outcome, rc.Error)
	}
	if rc := s.send("h", nil); !strings.Contains(rc.Error, "stopped") {
		t.Errorf("after the stop: %s %s", rc.Outcome, rc.Error)
	}
}

// TestDeep_ChainsArePulledOnOneInstance: a run that pulls others does not instantiate the program for
// each of them.
func TestDeep_ChainsArePulledOnOneInstance(t *testing.T) {
	p := compiled(t, `
c = cell("c", {"n": 1})
def make(i):
    def f():
        return (doc("n%d" % (i - 1)).get() if i else c.n) + 1
    return f
for i in range(300):
    compute("n%d" % i, make(i))
def h(e): c.n += 1
handle("h", h)
`)
	s := newStage(t, p.Space())
	s.observe("n299")
	s.expect("n299", "301")
	s.must("h", nil)
	s.expect("n299", "302")
	if len(p.idle) != 1 {
		t.Errorf("there are %d instances", len(p.idle))
	}
}

// TestClosures_RememberNothing: the captured variables of a function are frozen, whether or not a global
// refers to them.
func TestClosures_RememberNothing(t *testing.T) {
	s := newStage(t, compiled(t, `
def make():
    seen = []
    def run(e):
        seen.append(e)
        return len(seen)
    handle("h", run)
    handle("l", lambda e, seen = seen: seen.append(1))
make()
`).Space())
	for _, stream := range []string{"h", "l"} {
		if rc := s.send(stream, 1); !strings.Contains(rc.Error, "frozen list") {
			t.Errorf("%s: %s %s %s", stream, rc.Outcome, rc.Error, rc.Result)
		}
	}
}

// name_of returns the same name for a key as settle.NameOf, so that programs in both languages use the
// same timer.
func TestLanguage_NameOfIsThatOfGo(t *testing.T) {
	s := newStage(t, compiled(t, "handle('h', lambda e: name_of(e))\n").Space())
	for _, key := range []string{"order-7", "10.0.0.7", "", "-key-x", "two words", "é", strings.Repeat("a", 100)} {
		if rc := s.send("h", key); rc.Result.String() != model.String(model.NameOf(key)).String() || model.CheckName("timer", model.NameOf(key)) != nil {
			t.Errorf("name_of(%q) is %s %s, want %s", key, rc.Result, rc.Error, model.NameOf(key))
		}
	}
}

// A handler knows the principal in whose name a client has sent the event.
func TestEvent_ByIsThePrincipal(t *testing.T) {
	s := newStage(t, compiled(t, "handle('h', lambda e: [event().by, event().origin])\n").Space())
	for principal, want := range map[string]string{"": "[null,null]", "alice": `["alice",null]`} {
		if got := s.sendAs(principal, "h", nil).Result.String(); got != want {
			t.Errorf("of an event of %q: %s, want %s", principal, got, want)
		}
	}
}
