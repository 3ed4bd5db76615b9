package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// wholeFamily has a child in its own space, one in another, several at a time, one that is attempted, and grandchildren.
var wholeFamily = map[string]string{
	"w": `
def both(n):
    return parallel([child("leaf", {"n": n + i}) for i in range(3)])

def run(n, away = "other"):
    a = child("leaf", {"n": n})
    b = child("middle", {"n": a}, space = away)
    c = attempt(child("failing", {"n": b}))
    sleep("1h")
    x, y = parallel(child("leaf", {"n": 100}, space = away), inc(200))
    d = both(x)
    e = child("leaf", args = {"n": 7}, id = "named")
    return [a, b, c.error.type, c.error.message, c.error.detail, x, y, d, e]
`,
	"middle": `
def run(n):
    total = 0
    for i in range(2):
        total += child("leaf", {"n": n + i})
    return total
`,
	"leaf": `
def run(n):
    return inc(n)
`,
	"failing": `
def run(n):
    inc(n)
    return bad(n)
`,
}

// A restart of every process before each end of an action makes no difference, in one space or two.
func TestChild_IsCalledLikeAnAction(t *testing.T) {
	t.Parallel()
	for _, away := range []string{"s", "other"} {
		var logs [2][]string
		for i, restart := range []bool{false, true} {
			f := newFamily(t, simkit.Options{}, wholeFamily)
			f.restart = restart
			f.begin("s", "r", fmt.Sprintf(`{"n":1,"away":%q}`, away))
			f.performAll()
			f.restartNow()
			f.pass(time.Hour)
			if got, want := f.of("s", "r"), `[2,7,"BadError","no 7",{"x":7},101,201,[102,103,104],8]`; got != want {
				t.Errorf("away in %s, restart %v: %s, want %s", away, restart, got, want)
			}
			if got := f.of("s", "named"); got != "8" {
				t.Errorf("the child with an ID: %s", got)
			}
			logs[i] = f.log
			f.tidied()
		}
		if !slices.Equal(logs[0], logs[1]) {
			t.Errorf("with restarts %v, without %v", logs[1], logs[0])
		}
	}
}

// The ID of a child follows from its call: it is the same however often the space is loaded, and whenever, and another for each attempt,
// each activation, each parent and each space of a parent.
func TestChild_IDFollowsFromTheCall(t *testing.T) {
	t.Parallel()
	var seen [2][]string
	for i, restart := range []bool{false, true} {
		f := newFamily(t, simkit.Options{Start: simkit.Start.Add(time.Duration(i) * time.Hour)}, map[string]string{
			"w": `
def run():
    for i in range(3):
        child("leaf", {}, space = "shared")
    attempt(retry(child("none", {}), attempts = 2))
    a = attempt(retry(child("failing", {}, space = "shared"), attempts = 2))
    return a.error.type
`,
			"leaf": "def run(): return 1",
			"none": "def run(): fail('never')", "failing": "def run(): return bad(1)",
		})
		f.restart = restart
		long := strings.Repeat("x", maxRunID)
		for _, in := range []string{"a", "b"} {
			f.begin(in, "r", "{}")
			f.begin(in, long, "{}")
		}
		f.performAll()
		for _, in := range []string{"a", "b"} {
			if f.of(in, "r") != `"BadError"` || f.of(in, long) != `"BadError"` {
				t.Error(f.of(in, "r"), f.of(in, long))
			}
		}
		seen[i] = f.in("shared").Value(Index).Keys()
		if len(seen[i]) != 4*5 {
			t.Errorf("%d children: %v", len(seen[i]), seen[i])
		}
		for _, id := range seen[i] {
			if err := CheckID(id); err != nil {
				t.Error(err)
			}
		}
		f.tidied()
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("with restarts %v, without %v", seen[1], seen[0])
	}
}

// A run whose ID was used before has children of its own.
func TestChild_OfARunThatIsStartedAnewIsAnotherOne(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{"w": "def run(): return child(\"leaf\", {}, space = \"other\")", "leaf": "def run(): return inc(1)"})
	for _, event := range []string{"first", "second"} {
		if rc := f.sentTo("s", StreamStart, event, `{"workflow":"w","run":"r"}`); rc.Outcome != model.Handled {
			t.Fatal(rc.Error)
		}
		f.performAll()
		if got := f.of("s", "r"); got != "2" {
			t.Error(got)
		}
		if err := f.in("s").Write(func(tx *space.Tx) error { // as if it had been removed with time
			tx.Delete(Index, "r")
			tx.Delete(Doc("r"))
			tx.Delete(childrenDoc("r"))
			tx.Delete(pageDoc("r", 0))
			tx.Delete(load, "kept")
			return tx.Err()
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.runsOf("other"); len(got) != 2 || len(f.log) != 2 {
		t.Errorf("%v, %v", got, f.log)
	}
	f.tidied()
}

// The type of an error, its ancestors, its message and its detail arrive unchanged, over two generations.
func TestChild_ErrorIsThatOfTheRun(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":      "def run():\n    a = attempt(child(\"middle\", {}, space = \"other\"))\n    return [a.failed(\"Base\"), a.failed(\"Mine\"), a.failed(\"X\"), a.error.message, a.error.detail]\n",
		"middle": "def run(): return child(\"leaf\", {})",
		"leaf":   "def run(): return inc(1)",
	})
	f.begin("s", "r", "{}")
	f.s = f.in("other")
	action, task, _ := f.task()
	e := ActionError{Type: "Mine", Ancestors: []string{"Middle", "Base"}, Message: "why", Detail: []byte(`{"a":[1]}`)}
	c := space.Completion{Key: task.Key, N: task.N, Err: e.Text()}
	if rc, _, err := f.s.Send(action, "", c.Value(), time.Time{}); err != nil || rc.Outcome != model.Handled {
		t.Fatal(rc, err)
	}
	if got := f.of("s", "r"); got != `[true,true,false,"why",{"a":[1]}]` {
		t.Error(got)
	}
	f.tidied()
}

// What cancels a call of a child cancels the run, its children and its actions, in whatever spaces they are.
func TestChild_IsCancelledWithItsCall(t *testing.T) {
	t.Parallel()
	family := map[string]string{
		"w": `
def run(how):
    if how == "parallel":
        parallel(child("middle", {"in_space": "third"}, space = "other"), child("leaf", {}), bad(1))
    elif how == "timeout":
        timeout(child("middle", {"in_space": "third"}, space = "other"), "10s")
    else:
        parallel(child("middle", {"in_space": "third"}, space = "other"), child("leaf", {}))
`,
		"middle": `def run(in_space): return parallel(child("leaf", {}, space = in_space), slow(1))`,
		"leaf":   `def run(): return slow(2)`,
	}
	for how, want := range map[string]string{
		"parallel": "error BadError: no 1", "timeout": "error TimeoutError: child middle has not ended in time", "cancel": "error CancelledError: enough",
	} {
		f := newFamily(t, simkit.Options{}, family)
		f.begin("s", "r", fmt.Sprintf(`{"how":%q}`, how))
		if n := f.pendingTasks(); n < 2 {
			t.Fatalf("%s: %d actions are pending", how, n)
		}
		switch how {
		case "parallel":
			f.performAll("slow")
		case "timeout":
			f.pass(9*time.Second, "slow")
			if got := f.of("s", "r"); got != "running" {
				t.Error(got)
			}
			f.pass(time.Second, "slow")
		case "cancel":
			if rc := f.sentTo("s", StreamCancel, "c", `{"run":"r","why":"enough"}`); rc.Outcome != model.Handled {
				t.Fatal(rc.Error)
			}
		}
		if got := f.of("s", "r"); got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
		if n := f.pendingTasks(); n != 0 {
			t.Errorf("%s: %d actions are pending", how, n)
		}
		for in, want := range map[string]string{"other": "r-* cancelled", "third": "cancelled"} {
			if got := f.runsOf(in); len(got) != 1 || !strings.HasSuffix(got[0], want) {
				t.Errorf("%s: runs of %s: %v", how, in, got)
			}
		}
		if c := childrenOf(f.in("s").Value(childrenDoc("r"))); c[0].State != Cancelled {
			t.Errorf("%s: %v", how, c)
		}
		f.tidied()
	}
}

// A child that is cancelled by itself fails the call, and the parent with it, which is not cancelled by that.
func TestChild_ThatIsCancelledFailsItsCall(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run(try_it):\n    if try_it:\n        a = attempt(child(\"leaf\", {}, id = \"c\"))\n        return a.error.type\n    return child(\"leaf\", {}, id = \"d\")",
		"leaf": "def run(): return slow(1)",
	})
	f.begin("s", "r", `{"try_it":true}`)
	f.begin("s", "q", `{"try_it":false}`)
	for _, id := range []string{"c", "d"} {
		if rc := f.sentTo("s", StreamCancel, "cancel-"+id, fmt.Sprintf(`{"run":%q,"why":"too late"}`, id)); rc.Outcome != model.Handled {
			t.Fatal(rc.Error)
		}
	}
	if got := f.of("s", "r"); got != `"CancelledError"` {
		t.Error(got)
	}
	if got := f.of("s", "q"); got != "error CancelledError: too late" {
		t.Error(got)
	}
	if got, want := f.runsOf("s"), []string{"c cancelled", "d cancelled", "q failed", "r done"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	f.tidied()
}

// Calls that name a run which exists with the same workflow and arguments wait for it. It is not theirs: their end leaves
// it alone.
func TestChild_JoinsARunThatExists(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run(n): return child(\"leaf\", {\"n\": 1}, id = \"one\", space = \"other\")",
		"leaf": "def run(n): return slow(n)",
	})
	if rc := f.sentTo("other", StreamStart, "e", `{"workflow":"leaf","run":"one","args":{"n":1}}`); rc.Outcome != model.Handled {
		t.Fatal(rc.Error)
	}
	for _, id := range []string{"a", "b", "c"} {
		f.begin("s", id, `{"n":1}`)
	}
	if rc := f.sentTo("s", StreamCancel, "c", `{"run":"b"}`); rc.Outcome != model.Handled {
		t.Fatal(rc.Error)
	}
	if got := f.of("other", "one"); got != "running" {
		t.Errorf("the run that calls have joined: %s", got)
	}
	if n := f.in("other").Value(Doc("one")).Get("joined").Len(); n != 2 {
		t.Errorf("%d calls wait for it", n)
	}
	f.restart = true
	f.performAll()
	f.begin("s", "late", `{"n":1}`)
	for id, want := range map[string]string{"a": "1", "b": "error CancelledError: cancelled", "c": "1", "late": "1"} {
		if got := f.of("s", id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if len(f.log) != 1 || f.in("other").Value(Doc("one")).Get("joined").Len() != 0 {
		t.Errorf("%v, %s", f.log, f.in("other").Value(Doc("one")))
	}
	f.tidied()
}

// The end of a run reaches all calls that have joined it, however many and however large the result.
func TestChild_EndReachesAllThatHaveJoined(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{Lenient: true}, map[string]string{
		"w":    "def run(n): \n    text = child(\"leaf\", {}, id = \"one\", space = \"other\")\n    return len(text)",
		"leaf": "def run():\n    sleep(\"1m\")\n    return \"x\" * 60000",
	})
	const calls = 300
	for i := range calls {
		f.begin("s", fmt.Sprintf("r%d", i), fmt.Sprintf(`{"n":%d}`, i))
	}
	f.pass(time.Minute)
	for i := range calls {
		if got := f.of("s", fmt.Sprintf("r%d", i)); got != "60000" {
			t.Fatalf("run %d: %s", i, got)
		}
	}
	f.tidied()
}

func TestChild_CallsThatJoinAreBounded(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{Lenient: true}, map[string]string{
		"w":    "def run(n):\n    a = attempt(child(\"leaf\", {}, id = \"one\"))\n    return a.error.message",
		"leaf": "def run(): return wait(\"end\")",
	})
	for i := range maxJoined + 2 { // and one that starts it
		f.begin("s", fmt.Sprintf("r%d", i), fmt.Sprintf(`{"n":%d}`, i))
	}
	if got, want := f.of("s", fmt.Sprintf("r%d", maxJoined+1)), `"1000 calls have joined run one; more are not possible"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := f.of("s", fmt.Sprintf("r%d", maxJoined)); got != "running" {
		t.Error(got)
	}
}

// A start that is refused fails its call, with a type and words; the space that refuses it has no dead letter, and nothing
// waits.
func TestChild_ARefusedStartFailsTheCall(t *testing.T) {
	t.Parallel()
	family := map[string]string{
		"w":    "def run(in_space, run_id):\n    a = attempt(child(\"leaf\", {\"n\": 1}, space = in_space, id = run_id))\n    return [a.failed(\"StartError\"), a.error.type, a.error.message]",
		"leaf": "def run(n): return slow(n)",
	}
	for _, c := range []struct{ in, id, want string }{
		{"narrow", "", `[true,"UnknownWorkflowError","the program of space narrow has no workflow \"leaf\"; it has other"]`},
		{"s", "taken", `[true,"RunExistsError","run taken exists, with workflow leaf and arguments {\"n\":2}; choose another ID"]`},
		{"s", "r", `[true,"RunExistsError","run r exists, with workflow w`},
		{"again", "", `[true,"RunExistsError","run r-`},
		{"s", "a b", `[true,"StartError","child leaf: run \"a b\":`},
		{"a b", "", `[true,"StartError","child leaf: space \"a b\":`},
		{"s", strings.Repeat("x", 41), `[true,"StartError","child leaf: run`},
		{"full", "", `[true,"LimitError","space full has 2000 runs; more are not possible`},
	} {
		f := newFamily(t, simkit.Options{Lenient: true}, family)
		f.except["narrow"], _ = programOf(t, "def run(): return 1\nworkflow('other', run)\n")
		f.except["full"], _ = programOf(t, "def run(n): wait('x')\nworkflow('leaf', run)\n")
		if c.in == "again" { // something else has started the run whose ID the call will have
			ev := model.Event{Space: "s", Stream: StreamStart, ID: "start-r"}
			cause, _ := causeOf(&ev).AsString()
			id := childID("r", callName("s", "r", cause, "0/0", 1))
			f.sentTo(c.in, StreamStart, "e", fmt.Sprintf(`{"workflow":"leaf","run":%q,"args":{"n":1}}`, id))
		}
		if c.in == "full" {
			for i := range maxRuns {
				f.sentTo("full", StreamStart, fmt.Sprintf("e%d", i), `{"workflow":"leaf","args":{"n":0}}`)
			}
		}
		if rc := f.sentTo("s", StreamStart, "taken", `{"workflow":"leaf","args":{"n":2}}`); rc.Outcome != model.Handled {
			t.Fatal(rc.Error)
		}
		f.begin("s", "r", fmt.Sprintf(`{"in_space":%q,"run_id":%q}`, c.in, c.id))
		if got := f.of("s", "r"); !strings.HasPrefix(got, c.want) {
			t.Errorf("space %s, run %s: %s, want %s", c.in, c.id, got, c.want)
		}
		for _, p := range f.TakeProblems() {
			t.Errorf("space %s, run %s: %s", c.in, c.id, p)
		}
	}
}

// A program without workflows refuses the start before any handler of ours: the notice about it fails the call that it is
// about, and no other.
func TestChild_ASpaceWithoutWorkflowsFailsTheCall(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w": `
def run():
    a, b, c = parallel(child("leaf", {"n": 1}, space = "other"), child("leaf", {"n": 1}, space = "plain"), child("leaf", {"n": 2}, space = "other"), on_error = "collect")
    return [a, b.type, b.message, c]
`,
		"leaf": "def run(n): return slow(n)",
	})
	f.except["plain"] = space.NewProgram("plain")
	f.restart = true
	f.begin("s", "r", "{}")
	f.performAll()
	got := f.of("s", "r")
	if !strings.HasPrefix(got, `[1,"StartError","space plain has not taken the start: program plain has no handler for stream workflow-child`) || !strings.HasSuffix(got, ",2]") {
		t.Error(got)
	}
	problems := f.TakeProblems()
	if len(problems) != 1 || problems[0].Kind != simkit.DeadLetter || problems[0].Space != "plain" {
		t.Errorf("problems: %v", problems)
	}
}

// Runs that start each other without end fail with words, and so does a run that waits for itself.
func TestChild_ChainsHaveAnEnd(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run(n):\n    return child(\"back\", {\"n\": n + 1}, space = \"other\")",
		"back": "def run(n):\n    return child(\"w\", {\"n\": n + 1}, space = \"s\")",
		"self": "def run():\n    return child(\"self\", {}, id = \"me\")",
	})
	f.begin("s", "r", `{"n":0}`)
	if got, want := f.of("s", "r"), fmt.Sprintf("error LimitError: child w: %d runs wait for each other, the first of them s/r; more are not possible: does a workflow start itself without end?", maxDepth); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := len(f.runsOf("s")) + len(f.runsOf("other")); n != maxDepth {
		t.Errorf("%d runs", n)
	}
	if rc := f.sentTo("s", StreamStart, "me", `{"workflow":"self"}`); rc.Outcome != model.Handled {
		t.Fatal(rc.Error)
	}
	if got := f.of("s", "me"); got != "error StartError: run me waits for this call, so the call cannot wait for it; give the child another ID" {
		t.Error(got)
	}
	f.tidied()
}

// Of many children, 256 are pending at a time, and the status of the parent has a bounded number of them.
func TestChild_OfThousandsFewArePending(t *testing.T) {
	t.Parallel()
	workflows := map[string]string{
		"w":    "def run(n):\n    rs = parallel([child(\"leaf\", {\"n\": i}, space = \"other\") for i in range(n)])\n    return sum(rs)",
		"leaf": "def run(n): return slow(n)",
	}
	f := newFamily(t, simkit.Options{Lenient: true}, workflows)
	f.begin("s", "r", `{"n":1100}`)
	if got := len(f.runsOf("other")); got != maxChildren {
		t.Errorf("%d children", got)
	}
	f.performAll()
	if got := f.of("s", "r"); got != fmt.Sprint(1100*1099/2) {
		t.Error(got)
	}
	if n := len(f.runsOf("other")); n > maxEnded+maxChildren {
		t.Errorf("%d runs are kept", n)
	}
	if n := f.in("s").Value(childrenDoc("r")).Len(); n > maxChildren+keptChildren+maxChildren {
		t.Errorf("the status has %d children", n)
	}
	f.tidied()

	f = newFamily(t, simkit.Options{Lenient: true}, workflows)
	f.restart = true
	f.begin("s", "r", `{"n":260}`)
	f.performAll()
	if got := f.of("s", "r"); got != fmt.Sprint(260*259/2) {
		t.Errorf("with restarts: %s", got)
	}
	f.tidied()
}

// A loop of many children that do nothing is no runaway chain of events, which would end in a dead letter.
func TestChild_LoopIsNoChainWithoutEnd(t *testing.T) {
	t.Parallel()
	o := simkit.Options{Lenient: true}
	o.Space.MaxChain = 600 // in place of 10,000
	f := newFamily(t, o, map[string]string{
		"w":    "def run(n):\n    x = 0\n    while x < n:\n        x = child(\"leaf\", {\"n\": x}, space = \"other\")\n    return x",
		"leaf": "def run(n): return n + 1",
	})
	f.begin("s", "r", `{"n":700}`)
	f.pass(time.Minute)
	if got := f.of("s", "r"); got != "700" {
		t.Error(got)
	}
	f.tidied()
}

// Only the space of a child can report its end. A client cannot, nor can another space, nor can either cancel one.
func TestChild_EndIsNotForged(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run(): return child(\"leaf\", {}, space = \"other\")",
		"leaf": "def run(): return slow(1)",
	})
	evil := space.NewProgram("evil")
	if err := evil.Handle("go", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		to, _ := ev.Payload.Get("to").AsString()
		stream, _ := ev.Payload.Get("stream").AsString()
		for range 2 {
			tx.Send(to, stream, ev.Payload.Get("payload"))
		}
		return model.Value{}, tx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	f.except["evil"] = evil
	f.begin("s", "r", "{}")
	c := f.childOnly("s", "r")
	for _, forged := range []struct{ to, stream, payload string }{
		{"s", StreamChildEnd, fmt.Sprintf(`{"run":"r","call":%q,"state":"done","result":666}`, c.call)},
		{"other", StreamChildCancel, fmt.Sprintf(`{"run":%q,"call":%q}`, c.Run, c.call)},
		{"other", StreamChild, fmt.Sprintf(`{"workflow":"leaf","run":"new","args":{},"parent":"r","call":%q,"chain":[]}`, c.call)},
		{"s", StreamChildSent, fmt.Sprintf(`{"run":"r","calls":[%q]}`, c.call)},
	} {
		rc := f.sentTo(forged.to, forged.stream, "", forged.payload)
		if rc.Outcome != model.Rejected || rc.Code != model.InternalStream {
			t.Errorf("a client: %s %s", rc.Outcome, rc.Error)
		}
		f.sentTo("evil", "go", "", fmt.Sprintf(`{"to":%q,"stream":%q,"payload":%s}`, forged.to, forged.stream, forged.payload))
	}
	if got := f.of("s", "r") + " " + f.of("other", c.Run); got != "running running" {
		t.Error(got)
	}
	if sent, _ := f.in("s").Value(childrenDoc("r")).Get(c.call).Get("sent").AsString(); !strings.HasPrefix(sent, "s:") {
		t.Errorf("the start was sent as %q", sent)
	}
	f.performAll()
	if got := f.of("s", "r"); got != "1" {
		t.Error(got)
	}
}

// The end of a child that its parent does not wait for any more has no effect, and an end that arrives twice has one.
func TestChild_ALateEndHasNoEffect(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run():\n    a = attempt(timeout(child(\"leaf\", {}, id = \"c\"), \"1m\"))\n    b = slow(5)\n    return [a.error.type, b]",
		"leaf": "def run(): return slow(1)",
	})
	if rc := f.sentTo("s", StreamStart, "c", `{"workflow":"leaf"}`); rc.Outcome != model.Handled { // it is joined, and so goes on
		t.Fatal(rc.Error)
	}
	f.begin("s", "r", "{}")
	c := f.childOnly("s", "r")
	f.pass(time.Minute, "slow")
	late := model.Event{Stream: StreamChildEnd, ID: "s:1:1:0:r1", Payload: model.Object(model.F("run", "r"), model.F("call", c.call), model.F("state", "done"), model.F("result", 9))}
	for range 2 {
		if err := f.in("s").Deliver(late); err != nil {
			t.Fatal(err)
		}
		rc, is := f.in("s").Receipt(late.Stream, late.ID)
		if !is || rc.Result.String() != `{"ignored":"the run does not wait for it any more"}` {
			t.Errorf("%v %v", is, rc)
		}
		late.ID = "s:1:1:0:r2"
	}
	f.performAll()
	if got := f.of("s", "r") + f.of("s", "c"); got != `["TimeoutError",5]1` {
		t.Error(got)
	}
	f.tidied()
}

// A program that lacks a workflow which its own runs start is refused.
func TestRegister_RefusesChildrenOfUnknownWorkflows(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`child("none", {})`:                                          `workflow w starts runs of workflow "none", and this program has w`,
		`child("none", {}, space = "x")`:                             "",
		`parallel([child("none", {}, id = str(i)) for i in [1, 2]])`: `workflow w starts runs of workflow "none"`,
	} {
		set := New()
		p, err := compileSet(set, "def run():\n    "+body+"\nworkflow(\"w\", run)\n")
		if err == nil {
			err = set.Register(p)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// A run with pending children can be stored as a snapshot and loaded, with the time limits of the children.
func TestChild_SurvivesASnapshotOfItsParent(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		f := newFamily(t, simkit.Options{Lenient: true}, map[string]string{
			"w": `
def work(text):
    n = 0
    for i in range(8):
        x = inc(i)
        y = child("big", {"text": text}, space = "other")
        n += x
    return n

def run():
    r = parallel(timeout(child("leaf", {}, space = "other", id = "c"), "1h"), work("y" * 20000), on_error = "collect")
    return [r[0], r[1]]
`,
			"leaf": "def run(): return slow(3)",
			"big":  "def run(text): return text",
		})
		f.begin("s", "r", "{}")
		f.restart = true
		f.performAll("slow")
		if f.in("s").Value(snapshotDoc("r")).IsAbsent() {
			t.Fatal("there is no snapshot")
		}
		if got := f.of("other", "c"); got != "running" {
			t.Error(got)
		}
		want := "[3,36]"
		if late {
			f.pass(time.Hour, "slow")
			want = `[{"message":"child leaf has not ended in time","type":"TimeoutError"},36]`
		}
		f.performAll()
		if got := f.of("s", "r"); got != want {
			t.Errorf("late %v: %s, want %s", late, got, want)
		}
		if state := f.childState("s", "r", "c"); late != (state == Cancelled) {
			t.Errorf("late %v: the child is %s", late, state)
		}
		f.tidied()
	}
}

// The time limit of a child ends with it, and leaves nothing in its parent.
func TestChild_TimeLimitEndsWithTheChild(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run():\n    for i in range(5):\n        timeout(child(\"leaf\", {}), \"1h\")\n        attempt(timeout(retry(child(\"fails\", {}), attempts = 2, backoff = \"1h\"), \"1m\"))\n    timeout(child(\"long\", {}), \"1h\")\n    return 1",
		"leaf": "def run(): return 1", "fails": "def run(): fail('no')", "long": "def run(): return slow(1)",
	})
	f.begin("s", "r", "{}")
	f.pass(5*time.Hour, "slow")
	s, err := Inspect("r", func(doc string) (model.Value, error) { return f.in("s").Value(doc), nil })
	if err != nil || len(s.Timers) != 1 || len(s.Waiting) != 1 || s.Waiting[0].Child != "long" || len(s.Children) != 16 {
		t.Errorf("%+v %v", s, err)
	}
	f.pass(59*time.Minute, "slow")
	f.performAll()
	if got := f.of("s", "r"); got != "1" {
		t.Error(got)
	}
	f.tidied()
}

// A step that starts and cancels as much as it may fits into a commit, also far down in a chain of runs with long names.
func TestChild_StartsOfAStepFitIntoACommit(t *testing.T) {
	t.Parallel()
	far := strings.Repeat("x", model.MaxNameLen-2)
	f := newFamily(t, simkit.Options{Lenient: true}, map[string]string{
		"w": `
def run(n, away):
    if n > 0:
        return child("w", {"n": n - 1, "away": away}, space = away + "-" + str(n % 2), id = "run-with-a-long-name-of-40-characters-" + str(n + 9))
    a = attempt(parallel(child("fails", {}), parallel_leaves(away)))
    b = parallel([child("leaf", {"text": "x" * 400}, space = away + "-0") for i in range(300)])
    return [a.error.type, a.error.message == "e" * 100000, len(b)]

def parallel_leaves(away):
    return parallel([child("leaf", {"text": "x" * 400}, space = away + "-1") for i in range(300)])
`,
		"fails": "def run():\n    inc(1)\n    fail(\"e\" * 100000)",
		"leaf":  "def run(text):\n    return slow(1)",
	})
	f.begin(far+"-0", "r", fmt.Sprintf(`{"n":30,"away":%q}`, far))
	f.performAll("slow")
	f.performAll()
	if got := f.of(far+"-0", "r"); got != `["Error",true,300]` {
		t.Error(got)
	}
	f.tidied()
}

// A child may take a year; what its parent calls beside it is made as soon as there is room.
func TestChild_ItsParentIsGivenRoomWhileItWaits(t *testing.T) {
	f := newFamily(t, simkit.Options{}, map[string]string{
		"patient": "def run():\n    return wait(\"go\")",
		"w":       "def run(n, alone):\n    text = \"x\" * n\n    if alone:\n        return watched(text)\n    return parallel(child(\"patient\", {}), watched(text))",
	})
	f.begin("s", "a", `{"n":100000,"alone":true}`)
	f.begin("s", "b", `{"n":100000,"alone":true}`)
	f.begin("s", "c", `{"n":100000,"alone":false}`)
	if n := f.s.Value("watched").Get("tasks").Len(); n != 2 {
		t.Fatalf("%d tasks are pending", n)
	}
	f.perform()
	if len(f.log) != 3 || f.outcome("c") != "running" {
		t.Errorf("%d actions were performed, and c is %s; %s", len(f.log), f.outcome("c"), f.s.Value(load))
	}
}
