package star

import (
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// ten are ten computations: a and b use a helper, c a constant, d a loaded function, e a cell's default,
// and f another function by name only.
const ten = `# ten
load("lib.star", "twice")
stats = cell("stats", {"x": 1, "y": 2})
LIMIT = 10
TABLE = {"a": [1, 2]}

def helper(x):
    """Adds one."""
    return x + 1

def a():
    return helper(stats.x)
def b():
    return helper(stats.y)
def c():
    return LIMIT
def d():
    return twice(2)
def e():
    return stats.x
def f():
    # a comment
    g = sorted([3, 1], key = lambda x: -x)
    return g
def g():
    return TABLE["a"][0]
def make(n):
    def run():
        return n * 2
    return run
for name, fn in [("a", a), ("b", b), ("c", c), ("d", d), ("f", f), ("g", g)]:
    compute(name, fn)
compute("e", e, debounce = "100ms")
compute("h", make(1))
compute("i", make(2))
compute("j", lambda: 7)

def add(ev):
    stats.x += 1
handle("add", add)
`

const lib = "def twice(x):\n    return 2 * x\n"

// changedBy returns the nodes whose fingerprints differ between two texts.
func changedBy(t *testing.T, before, after *Program) string {
	t.Helper()
	old := map[string]string{}
	for _, n := range before.Nodes() {
		old[n.ID] = n.Fingerprint
	}
	var changed []string
	for _, n := range after.Nodes() {
		if old[n.ID] != n.Fingerprint {
			changed = append(changed, n.ID)
		}
	}
	slices.Sort(changed)
	return strings.Join(changed, " ")
}

var changes = []struct{ what, old, new, want string }{
	{"nothing", "# ten", "# ten", ""},
	{"a comment", "# ten", "# eleven\n\n\n", ""},
	{"a comment in a function", "# a comment", "# another\n", ""},
	{"a docstring", "Adds one.", "Adds 1.", ""},
	{"layout", "return helper(stats.x)", "return  helper( stats.x )  ;", ""},
	{"a helper of two", "return x + 1", "return x + 2", "a b"},
	{"a constant", "LIMIT = 10", "LIMIT = 11", "c"},
	{"a constant that comes to the same", "LIMIT = 10", "LIMIT = 5 + 5", ""},
	{"inside of a table", "[1, 2]", "[1, 3]", "g"},
	{"a default", `"y": 2`, `"y": 3`, "a b e"},
	{"a lambda in a function", "-x)", "x)", "f"},
	{"a lambda", "lambda: 7", "lambda: 8", "j"},
	{"an option", `"100ms"`, `"200ms"`, "e"},
	{"what a closure has captured", "make(2)", "make(3)", "i"},
	{"the code of a closure", "n * 2", "n * 3", "h i"},
	{"a handler", "stats.x += 1", "stats.x += 2", ""},
	{"the name of a handler", `def add(ev):
    stats.x += 1
handle("add", add)`, `def plus(ev):
    stats.x += 1
handle("plus", plus)`, ""},
	{"one more function", "def a():", "def unused():\n    return 3\n\ndef a():", ""},
	{"the order of functions", "def c():\n    return LIMIT\n", "", "!"},
}

func TestFingerprint_ChangesWithTheCodeOfTheNode(t *testing.T) {
	before := compiled(t, ten, "lib.star", lib)
	for _, c := range changes {
		if c.want == "!" {
			continue
		}
		after := compiled(t, strings.Replace(ten, c.old, c.new, 1), "lib.star", lib)
		if got := changedBy(t, before, after); got != c.want {
			t.Errorf("%s: %q have changed, want %q", c.what, got, c.want)
		}
	}
	if got := changedBy(t, before, compiled(t, ten, "lib.star", "# doubles\n"+lib)); got != "" {
		t.Errorf("a comment in a loaded file: %q have changed", got)
	}
	if got := changedBy(t, before, compiled(t, ten, "lib.star", strings.Replace(lib, "2 * x", "x + x", 1))); got != "d" {
		t.Errorf("a loaded function: %q have changed, want d", got)
	}
}

// TestUpgrade_OnlyNodesWhoseCodeChangedRunAgain resumes a space under another version of its program,
// from the observations of the first one.
func TestUpgrade_OnlyNodesWhoseCodeChangedRunAgain(t *testing.T) {
	for _, c := range changes[:13] {
		before := compiled(t, ten, "lib.star", lib)
		s := newStage(t, before.Space())
		var docs []string
		for _, n := range before.Nodes() {
			docs = append(docs, n.Output)
		}
		s.observe(docs...)
		s.must("add", nil)
		s.advance(1e9)
		after := s.resume(compiled(t, strings.Replace(ten, c.old, c.new, 1), "lib.star", lib).Space())
		after.observe(docs...)
		after.advance(1e9)
		var ran []string
		for _, d := range docs {
			if after.runs[d] > 0 {
				ran = append(ran, d)
			}
		}
		slices.Sort(ran)
		if got := strings.Join(ran, " "); got != c.want {
			t.Errorf("%s: %q ran again, want %q", c.what, got, c.want)
		}
	}
}

// resume loads the space again with another program, from its log and the observations of its nodes.
func (s *stage) resume(p *space.Program) *stage {
	s.t.Helper()
	saved, _ := s.core.Observations()
	n := &stage{t: s.t, name: s.name, now: s.now, wall: s.wall, seq: s.seq, lane: s.lane, runs: map[string]int{}, receipts: map[string]*model.Receipt{}, mirrors: s.mirrors}
	cfg := space.Config{Space: s.name, Runtime: "r2"}
	cfg.Trace.RunStart = func(i space.RunInfo) { n.runs[i.Node]++ }
	r, err := replica.Load(s.name, model.SpaceState{})
	for i := 0; i < len(s.log) && err == nil; i++ {
		_, err = r.Apply(uint64(i+1), s.log[i])
	}
	if err == nil {
		n.core, err = space.New(cfg, p, r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	n.core.Rehydrate(saved)
	n.core.TakeOver()
	n.settle()
	return n
}

func TestRows_OfAThousandOneThatChangesRunsOnce(t *testing.T) {
	s := newStage(t, compiled(t, `
cards = cell("cards", {})
def total(key, card):
    return {"key": key, "sum": card.a + card.b}
totals = each("totals", cards, total)
def grand():
    return sum([t.sum for t in totals.values()])
compute("grand", grand)
def fill(e):
    for i in range(e.n):
        cards["c%d" % i] = {"a": i, "b": 1}
handle("fill", fill)
def put(e):
    cards[e.key] = e.card
handle("put", put)
def drop(e):
    cards.delete(e.key)
handle("drop", drop)
`).Space())
	s.observe("totals")
	s.must("fill", map[string]any{"n": 1000})
	if got := s.value("totals").Len(); got != 1000 {
		t.Fatalf("there are %d totals", got)
	}
	children := func() (n int) {
		for node, runs := range s.runs {
			if strings.HasPrefix(node, "totals--") {
				n += runs
			}
		}
		return n
	}
	parents, kids := s.runs["totals"], children()
	s.must("put", map[string]any{"key": "c7", "card": map[string]any{"a": 100, "b": 1}})
	if got := s.value("totals").Get("c7").String(); got != `{"key":"c7","sum":101}` {
		t.Errorf("c7 is %s", got)
	}
	if p, k := s.runs["totals"]-parents, children()-kids; p != 0 || k != 1 {
		t.Errorf("one row changed: the parent ran %d times, rows %d times; want 0 and 1", p, k)
	}
	kids = children()
	s.must("drop", map[string]any{"key": "c8"})
	if got := s.value("totals").Get("c8"); !got.IsAbsent() || children() != kids {
		t.Errorf("a row that went is still there: %s; %d rows ran", got, children()-kids)
	}
	if len(s.errs)+len(s.notes) > 0 {
		t.Errorf("errors: %v, violations: %v", s.errs, s.notes)
	}
}

// TestUpgrade_RowsRunAgainIfTheirCodeChanged: children have the fingerprint of the function
// that makes their rows.
func TestUpgrade_RowsRunAgainIfTheirCodeChanged(t *testing.T) {
	const rows = `cards = cell("cards", {})
def total(key, card):
    return card + 1 # adds
each("totals", cards, total)
def fill(e):
    for i in range(5):
        cards["c%d" % i] = i
handle("fill", fill)
`
	for _, c := range []struct {
		old, new string
		want     int
	}{{"# adds", "# plus", 0}, {"card + 1", "card + 2", 5}, {"cards[", "cards   [", 0}} {
		s := newStage(t, compiled(t, rows).Space())
		s.observe("totals")
		s.must("fill", nil)
		s.expect("totals", `{"c0":1,"c1":2,"c2":3,"c3":4,"c4":5}`)
		after := s.resume(compiled(t, strings.Replace(rows, c.old, c.new, 1)).Space())
		after.observe("totals")
		ran := 0
		for node, n := range after.runs {
			if strings.HasPrefix(node, "totals--") {
				ran += n
			}
		}
		if ran != c.want {
			t.Errorf("%s -> %s: %d rows ran, want %d", c.old, c.new, ran, c.want)
		}
	}
}

// TestUpgrade_WhileAwake: the same when a loaded space changes its program.
func TestUpgrade_WhileAwake(t *testing.T) {
	for _, c := range changes[:13] {
		before := compiled(t, ten, "lib.star", lib)
		s := newStage(t, before.Space())
		var docs []string
		for _, n := range before.Nodes() {
			docs = append(docs, n.Output)
		}
		s.observe(docs...)
		s.must("add", nil)
		s.advance(1e9)
		clear(s.runs)
		if err := s.core.Change(compiled(t, strings.Replace(ten, c.old, c.new, 1), "lib.star", lib).Space()); err != nil {
			t.Fatal(err)
		}
		s.settle()
		s.advance(1e9)
		var ran []string
		for _, d := range docs {
			if s.runs[d] > 0 {
				ran = append(ran, d)
			}
		}
		slices.Sort(ran)
		if got := strings.Join(ran, " "); got != c.want {
			t.Errorf("%s: %q ran again, want %q", c.what, got, c.want)
		}
	}
}
