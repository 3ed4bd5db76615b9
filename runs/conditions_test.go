package runs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// withDocuments adds to a program: a handler that sets documents to the members of its payload, and a computation of the
// document twice.
func withDocuments(t *testing.T, p *space.Program) {
	t.Helper()
	err := p.Handle("set", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		for doc, v := range ev.Payload.All() {
			tx.Set(doc, v)
		}
		return model.Value{}, nil
	})
	if err == nil {
		err = p.Add(space.NodeSpec{ID: "twice", Kind: space.Computation, Output: "twice", Version: "1", Run: func(tx *space.Tx) (model.Value, error) {
			n, _ := tx.Get("n").AsInt()
			return model.Int(2 * n), nil
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// waiting is a world of a workflow with a body, and documents.
func waiting(t *testing.T, body string) *world {
	t.Helper()
	w := &world{T: t, deeds: inStarlark(t, fewActions)}
	w.use(body)
	w.World = simkit.New(func(string) (*space.Program, error) { return w.program, nil }, simkit.Options{Blocking: true})
	var err error
	if w.s, err = w.Space("s"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) use(body string, options ...func(*Set) error) {
	w.Helper()
	w.program, w.actions = program(w.T, fmt.Sprintf(few, body), options...)
	withDocuments(w.T, w.program)
}

func (w *world) set(docs string) { w.send("set", "", docs) }

// conditions returns the nodes of conditions that the space has, with those of their groups.
func (w *world) conditions() (names []string) {
	for _, n := range w.s.Inspect().Nodes() {
		if strings.HasPrefix(n.ID, "wait_") || strings.HasPrefix(n.ID, conditionsNode+"-") {
			names = append(names, n.ID)
		}
	}
	return names
}

// noConditions fails the test if a condition is left.
func (w *world) noConditions(id string) {
	w.Helper()
	for _, doc := range []string{conditionsIndex, conditionsDoc(id)} {
		if v := w.s.Value(doc); !v.IsAbsent() {
			w.Errorf("%s is left: %s", doc, v)
		}
	}
	if left := w.conditions(); len(left) > 0 {
		w.Errorf("%v are left", left)
	}
	w.clean()
}

// A run continues in the commit after which its condition holds, with the value that it has, and leaves nothing.
func TestCondition_TheRunContinuesInTheCommitAfterWhichItHolds(t *testing.T) {
	w := waiting(t, `
    by = wait(lambda: get("order", "approved"))
    return [by, n]`)
	w.start("r", "{}")
	w.set(`{"order":{"approved":false}}`)
	if got := w.outcome("r"); got != "running" {
		t.Fatal(got)
	}
	before := len(w.s.Log())
	w.set(`{"order":{"approved":"ann"}}`)
	if got := w.outcome("r"); got != `["ann",3]` {
		t.Fatal(got)
	}
	if n := len(w.s.Log()) - before; n != 1 {
		t.Errorf("%d commits, want the one that has changed the document", n)
	}
	w.noConditions("r")
}

func TestCondition_ThatHoldsAlreadyContinuesInTheCommitOfTheStart(t *testing.T) {
	w := waiting(t, `
    return wait(lambda: get("n"))`)
	w.set(`{"n":7}`)
	before := len(w.s.Log())
	w.start("r", "{}")
	if got := w.outcome("r"); got != "7" || len(w.s.Log())-before != 1 {
		t.Errorf("%s after %d commits", got, len(w.s.Log())-before)
	}
	w.noConditions("r")
}

// A change that a condition does not read runs nothing, and the wait reads nothing by itself.
func TestCondition_AChangeThatItDoesNotReadCostsNothing(t *testing.T) {
	w := waiting(t, `
    return wait(lambda: get("orders", "o1", "state") == "open")`)
	w.start("r", "{}")
	w.set(`{"orders":{"o1":{"state":"new","n":0},"o2":{"state":"open"}}}`)
	w.s.Mark()
	for i := range 20 {
		w.set(fmt.Sprintf(`{"orders":{"o1":{"state":"new","n":%d},"o2":{"state":"x%d"}},"other":%d}`, i, i, i))
	}
	if err := w.Advance(48 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if ran := w.s.Ran(); len(ran) > 0 {
		t.Errorf("%v have run, and nothing that the condition reads has changed", ran)
	}
	w.set(`{"orders":{"o1":{"state":"open"}}}`)
	if got := w.outcome("r"); got != "true" {
		t.Error(got)
	}
	w.noConditions("r")
}

// A derived document is computed while a condition reads it, and dormant before and after.
func TestCondition_OfADerivedDocumentMakesItRun(t *testing.T) {
	w := waiting(t, `
    return wait(lambda: get("twice") > n and get("twice"))`)
	w.set(`{"n":1}`)
	if n := w.s.Runs("twice"); n != 0 {
		t.Fatalf("it was computed %d times, and is not needed", n)
	}
	w.start("r", `{"n":5}`)
	w.set(`{"n":2}`)
	if n := w.s.Runs("twice"); n != 2 {
		t.Errorf("it was computed %d times, want once for the wait and once for the change", n)
	}
	w.set(`{"n":3}`)
	if got := w.outcome("r"); got != "6" {
		t.Error(got)
	}
	w.s.Mark()
	w.set(`{"n":4}`)
	if n := w.s.Runs("twice"); n != 0 {
		t.Errorf("it was computed %d times after the wait", n)
	}
	w.noConditions("r")
}

// A wait goes on over restarts, with the variables of its beginning, and its condition does not run again because of one.
func TestCondition_SurvivesRestartsAndVersions(t *testing.T) {
	body := `
    wanted = {"state": ["open", n]}
    seen = wait(lambda: get("order") == wanted and get("order"))
    x = inc(n)
    return [seen, wanted, x]`
	w := waiting(t, body)
	w.start("r", "{}")
	w.set(`{"order":{"state":["new"]}}`)
	if err := w.s.Save(); err != nil {
		t.Fatal(err)
	}
	w.s.Mark()
	w.begin()
	for _, node := range w.conditions() {
		if strings.HasPrefix(node, "wait_") && w.s.Runs(node) > 0 {
			t.Errorf("%s has run after a restart, and nothing has changed", node)
		}
	}
	w.use(strings.Replace(body, "inc(n)", "inc(100)", 1)) // another version: the run goes on in its own
	w.begin()
	w.set(`{"order":{"state":["open",3]}}`)
	w.perform()
	if got := w.outcome("r"); got != `[{"state":["open",3]},{"state":["open",3]},4]` {
		t.Error(got)
	}
	w.noConditions("r")
	// A program that lacks the workflow has the conditions of its runs, too.
	w.use(body)
	w.begin()
	w.start("r2", `{"n":4}`)
	w.use("\n    return inc(n)")
	w.begin()
	w.set(`{"order":{"state":["open",4]}}`)
	w.perform()
	if got := w.outcome("r2"); got != `[{"state":["open",4]},{"state":["open",4]},5]` {
		t.Error(got)
	}
	w.noConditions("r2")
}

// A condition reads the default of a document in the program that is deployed: a run that waits sees another one.
func TestCondition_SeesAnotherDefaultOfADeployment(t *testing.T) {
	gate := func(closed bool) func(*Set) error {
		return func(s *Set) error {
			s.Default("gate", model.Object(model.F("closed", closed)))
			return nil
		}
	}
	const body = `
    return wait(lambda: not get("gate", "closed") and "open")`
	w := waiting(t, body)
	w.use(body, gate(true))
	w.begin()
	w.start("r", "{}")
	if got := w.outcome("r"); got != "running" {
		t.Fatal(got)
	}
	w.use(body, gate(false))
	w.begin()
	if got := w.outcome("r"); got != `"open"` {
		t.Error(got)
	}
	w.noConditions("r")
}

func TestCondition_Timeout(t *testing.T) {
	w := waiting(t, `
    first = attempt(wait(lambda: get("a"), timeout = "1h"))
    second = wait(lambda: get("b"), timeout = "1h")
    third = attempt(wait(lambda: get("b"), timeout = 0))
    fourth = attempt(wait(lambda: get("a"), timeout = -3))
    return [first.failed("TimeoutError"), first.error.message, second, third.value, fourth.ok]`)
	w.start("r", "{}")
	w.advance(59 * time.Minute)
	if got := w.outcome("r"); got != "running" {
		t.Fatal(got)
	}
	w.advance(2 * time.Minute)
	w.set(`{"b":"yes"}`)
	w.advance(time.Second)
	if got := w.outcome("r"); got != `[true,"the condition has not been met in time: get(\"a\")","yes","yes",false]` {
		t.Error(got)
	}
	w.noConditions("r")
}

// An error of the condition is that of the wait.
func TestCondition_ThatFails(t *testing.T) {
	w := waiting(t, `
    a = attempt(wait(lambda: get("list")[n]))
    b = attempt(wait(lambda: get("no name")))
    c = attempt(wait(lambda: fail(error("Sold", "out")) if get("n") else False))
    d = attempt(wait(lambda: [x for x in range(10000000)]))
    e = attempt(wait(lambda: get("list", 1)))
    f = attempt(wait(lambda: set([1])))
    return [[r.error.type, r.error.message] for r in [a, b, c, d, e, f]]`)
	w.set(`{"list":[1],"n":1}`)
	w.start("r", "{}")
	got := w.outcome("r")
	for _, want := range []string{
		`["CodeError","w:5:`, "index 3 out of range", "no name", `["Sold","out"]`, `["LimitError","line 8: the condition takes more than 1000000 operations`,
		"get takes texts, and not a int", "a set cannot be given away",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w.noConditions("r")
}

// Waits of concurrent calls, in loops and in undo steps, and together with signals and actions.
func TestCondition_InLoopsAndParallel(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := waiting(t, `
    compensate(undone())
    all = parallel([one(i) for i in range(3)])
    total = 0
    for i in range(4):
        total += wait(lambda: get("step") >= i and get("step"))
    fail(error("End", str([all, total])))
def one(i):
    x = inc(i)
    return [x, wait(lambda: (get("d%d" % i) or 0) > x and get("d%d" % i))]
def undone():
    wait(lambda: get("go"))
    return inc(7)`)
		w.restart = restart
		again := func() {
			w.perform()
			if restart {
				w.begin()
			}
		}
		w.set(`{"step":-1}`)
		w.start("r", "{}")
		again()
		for _, docs := range []string{`{"d2":9}`, `{"d0":1}`, `{"d0":2,"d1":3}`, `{"step":0}`, `{"step":1}`, `{"step":0}`, `{"step":5}`, `{"go":true}`} {
			w.set(docs)
			again()
		}
		if got := w.outcome("r"); got != `error End: [[[1, 2], [2, 3], [3, 9]], 12]` {
			t.Errorf("restart %v: %s", restart, got)
		}
		if got := strings.Join(w.log, " "); !strings.HasSuffix(got, "inc(7)") {
			t.Error(got)
		}
		w.noConditions("r")
	}
}

// A run that is cancelled, or whose calls are, does not wait any more.
func TestCondition_EndsWithItsRun(t *testing.T) {
	w := waiting(t, `
    a = attempt(parallel(one(), bad(1)))
    return wait(lambda: get("never"))
def one():
    return wait(lambda: get("never"))`)
	w.start("r", "{}")
	if n := len(w.s.Value(conditionsDoc("r")).Keys()); n != 1 {
		t.Errorf("it waits for %d conditions, want 1", n)
	}
	w.perform()
	if n := len(w.s.Value(conditionsDoc("r")).Keys()); n != 1 {
		t.Errorf("it waits for %d conditions, want 1", n)
	}
	w.send(StreamCancel, "", `{"run":"r"}`)
	if got := w.outcome("r"); got != "error CancelledError: cancelled" {
		t.Error(got)
	}
	w.noConditions("r")
}

// A run that is reset waits anew, and so does one that is tried again.
func TestCondition_AfterResetAndRetry(t *testing.T) {
	w := waiting(t, `
    x = inc(n)
    a = wait(lambda: get("a"))
    y = inc(a)
    b = wait(lambda: get("b", "c") if a != 2 else get("b")["c"])
    return [x, a, y, b]`)
	w.start("r", "{}")
	w.perform()
	w.set(`{"a":1}`)
	w.perform()
	w.send(StreamReset, "", `{"run":"r","step":2}`) // a is 1, and it sees that again
	w.perform()
	w.set(`{"a":2}`)
	w.send(StreamReset, "", `{"run":"r","step":1}`)
	w.perform()
	if got := w.outcome("r"); !strings.HasPrefix(got, "error CodeError") {
		t.Fatal(got)
	}
	w.set(`{"b":{"c":5}}`)
	w.send(StreamRetry, "", `{"run":"r"}`)
	if got := w.outcome("r"); got != "[4,2,3,5]" {
		t.Error(got)
	}
	w.noConditions("r")
}

// Beyond the bounds of a run and of a space, a wait fails, and the space goes on.
func TestCondition_Bounds(t *testing.T) {
	w := waiting(t, `
    many = attempt(parallel([one(i) for i in range(n)]))
    large = "x" * 70000
    big = attempt(wait(lambda: get(large)))
    return [many.error.message, big.error.message]
def one(i):
    return wait(lambda: get("never"))`)
	w.start("r", `{"n":300}`)
	if got := w.outcome("r"); !strings.Contains(got, "more than 256 conditions at a time") || !strings.Contains(got, "have more than 65536 bytes") {
		t.Error(got)
	}
	w.noConditions("r")
	for i := range maxSpaceConditions / 256 {
		w.start(fmt.Sprintf("m%d", i), `{"n":256}`)
	}
	w.start("full", fmt.Sprintf(`{"n":%d}`, maxSpaceConditions%256+1))
	if got := w.outcome("full"); !strings.Contains(got, "wait for 4000 conditions; more are not possible") {
		t.Error(got)
	}
}

// The event that a condition holds is of the space itself: no client can send it.
func TestCondition_NoClientReportsOne(t *testing.T) {
	w := waiting(t, `
    return wait(lambda: get("never"))`)
	w.start("r", "{}")
	if rc := w.sent(StreamMet, "", `{"run":"r","wait":"wait 0","value":1}`); rc.Outcome != model.Rejected || rc.Code != model.InternalStream {
		t.Error(rc)
	}
}
