package star_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
)

const orderProgram = `
orders = cell("orders", {})
reserve = action("reserve")
charge = action("charge-card")
mail = action("mail")
LIMIT = 3

def slug(text): return text.replace(" ", "-")

def lines(order):
    done = parallel([reserve(sku = line["sku"], n = line["n"]) for line in order["lines"]])
    return len(done)

def run(order, patience = "24h"):
    n = lines(order)
    paid = attempt(retry(charge(cents = order["cents"]), attempts = LIMIT_TRIES, backoff = "1m", on = ["NetworkError"]))
    if paid.failed("CardDeclined"):
        mail(slug("card declined"))
        return {"state": "declined"}
    elif paid.failed():
        fail(paid.error)
    tries = 0
    while tries < LIMIT:
        ok = attempt(wait("approve", timeout = patience))
        if ok.ok:
            return {"state": "done", "lines": n, "by": ok.value}
        mail("please")
        tries += 1
    return {"state": "forgotten"}

workflow("order", run)

def buy(e):
    orders[e.id] = {"cents": e.cents}
    start_workflow("order", e.id, {"order": {"cents": e.cents, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]}})

handle("buy", buy)
`

func runTests(t *testing.T, program, tests string) {
	t.Helper()
	src := star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": program, "p_test.star": tests}}
	results, err := startest.Run(t.Context(), src, "p_test.star", star.TestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

func TestWorkflow_InAProgramAndItsTests(t *testing.T) {
	runTests(t, strings.Replace(orderProgram, "LIMIT_TRIES", "3", 1), `
def nothing(*args, **kwargs): return None
def declined(cents): return failure("CardDeclined", "no money")
def offline(cents): return failure("NetworkError", "no route")

def test_paid():
    mock("reserve", lambda sku, n: sku * n)
    mock("charge-card", lambda cents: {"id": "ch_1"})
    mock("mail", nothing)
    send("buy", {"id": "o1", "cents": 100})
    equal(doc("run_o1").state, "running")
    equal(calls("reserve"), [{"args": [], "kwargs": {"sku": "a", "n": 1}}, {"args": [], "kwargs": {"sku": "b", "n": 2}}])
    advance("25h")
    equal(calls("mail"), [{"args": ["please"], "kwargs": {}}])
    restart()
    send("workflow-signal", {"run": "o1", "signal": "approve", "value": "ann"})
    equal(doc("run_o1").state, "done")
    expect(doc("run_o1").result, {"state": "done", "lines": 2, "by": "ann"})

def test_declined():
    mock("reserve", nothing)
    mock("charge-card", declined)
    mock("mail", nothing)
    send("buy", {"id": "o1", "cents": 100})
    expect(doc("run_o1").result, {"state": "declined"})
    equal(calls("mail")[0].args, ["card-declined"])

def test_offline():
    mock("reserve", nothing)
    mock("charge-card", offline)
    start_workflow("order", "o2", {"order": {"cents": 1, "lines": []}})
    equal(len(calls("charge-card")), 1)
    advance("1m")
    equal(len(calls("charge-card")), 2)
    advance("1m")
    equal(doc("run_o2").state, "failed")
    expect(doc("run_o2").error, {"type": "NetworkError", "message": "no route"})

def test_cancel():
    mock("reserve", nothing)
    start_workflow("order", "o3", {"order": {"cents": 1, "lines": []}})
    send("workflow-cancel", {"run": "o3", "why": "changed her mind"})
    equal(doc("run_o3").state, "cancelled")
    send("workflow-cancel", {"run": "o3"}, fails = "run o3 has ended")
    expect(doc("charge-card").tasks, None)
`)
}

// A program says how many ended runs of a workflow stay, and a start what finds the run.
func TestWorkflow_KeepsRunsAndHasAttributes(t *testing.T) {
	runTests(t, `
def run(n):
    sleep("1m")
    return n

workflow("wait", run, keep = 2, keep_for = "7d")

def begin(e):
    start_workflow("wait", e.id, {"n": 1}, attributes = {"customer": e.customer})

handle("begin", begin)
`, `
def test_the_last_two_stay():
    for id in ["a", "b", "c"]:
        send("begin", {"id": id, "customer": "c7"})
        advance("1m")
    equal(doc("runs").keys(), ["b", "c"])
    equal(doc("run_c").attributes, {"customer": "c7"})
    start_workflow("wait", "d", {"n": 1}, attributes = {"customer": 5})
    equal(doc("run_d").attributes.customer, 5)
    send("workflow-start", {"workflow": "wait", "run": "e", "attributes": {"a": []}}, fails = "attribute a must be a text")
    equal(send("workflow-reset", {"run": "d", "step": 1}), {"run": "d", "steps": 1})
    equal(send("workflow-retry", {"run": "d", "answer": True}).refused, "not-ended")

def test_the_last_week_stays():
    send("begin", {"id": "a", "customer": "c7"})
    advance("8d")
    send("begin", {"id": "b", "customer": "c7"})
    equal(doc("runs").keys(), ["b"])
`)
}

// What a workflow cannot do is refused when the program is compiled, with the place and what to write.
func TestWorkflow_IsRefusedWithItsPlace(t *testing.T) {
	for _, c := range [][2]string{
		{"c = cell('doc', 0)\ndef run():\n    return c.x\nworkflow('w', run)\n", `p.star:3:12: c is a document, which a workflow reads in the condition of a wait: wait(lambda: get("doc"))`},
		{"def run():\n    return charge(1)\nworkflow('w', run)\n", `p.star:2:12: charge is not available in a workflow`},
		{"def run():\n    return charge(1)\nworkflow('w', run)\n", `; an action is declared at the top of the file: charge = action("charge")`},
		{"def run():\n    return now()\nworkflow('w', run)\n", "p.star:2:12: now is not available in a workflow"},
		{"load('q.star', 'f')\ndef run():\n    return f()\nworkflow('w', run)\n", "p.star:3:12: f is of file \"q.star\""},
		{"a = action('a', done = lambda t: None)\ndef run():\n    a()\nworkflow('w', run)\n", "p.star:1:11: action a is called by a workflow"},
		{"a = action('a')\ndef run():\n    a()\nworkflow('w', run)\ndef h(e):\n    return run()\nhandle('h', h)\n", ""},
		{"def run():\n    return 1\nfor i in [1]:\n    workflow('w', run)\n", "p.star:4:13: write workflow(\"w\", run) at the top of the file"},
		{"def run():\n    return 1\nworkflow('w', run)\nworkflow('w', run)\n", "p.star:4:1: there are two workflows \"w\""},
		{"def run():\n    return 1\nhandle('workflow-start', lambda e: None)\nworkflow('w', run)\n", "workflow-start"},
		{"def run():\n    return 1\nworkflow('w', run, keep = 2000)\n", "workflow w: 2000 runs cannot be kept; at most 1000 are"},
		{"def run():\n    return 1\nworkflow('w', run, keep_for = 'long')\n", "keep_for"},
		{"def h():\n    while True: pass\n", "p.star:2:5: there is no while outside of workflows"},
		{"a = action('a')\ndef run():\n    try:\n        a()\n    except E: pass\nworkflow('w', run)\n", "p.star:3:5: got try, want primary expression; handle an error with r = attempt("},
		{"a = action('a')\ndef run():\n    a = 1\n    return a\nworkflow('w', run)\n", "p.star:3:5: a is the name of an action"},
	} {
		src := star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": c[0], "q.star": "def f(): return 1\n"}}
		_, err := star.Compile(src, star.Options{})
		if (err == nil) != (c[1] == "") || err != nil && !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
		}
	}
}

// A handler can shorten the deadline of a run that it starts.
func TestWorkflows_AHandlerStartsARunWithADeadline(t *testing.T) {
	runTests(t, `
def run():
    return wait("go")

workflow("waits", run, deadline = "3d")

def begin(e):
    start_workflow("waits", e.id, deadline = e.within)

handle("begin", begin)
`, `
def test_the_shorter_deadline_counts():
    send("begin", {"id": "short", "within": "1h"})
    send("begin", {"id": "long", "within": 864000})
    send("begin", {"id": "none", "within": None})
    start_workflow("waits", "test", deadline = 60)
    advance("61m")
    equal([doc("run_" + id).state for id in ["short", "long", "none", "test"]], ["failed", "running", "running", "failed"])
    equal(doc("run_short").error.type, "DeadlineError")
    advance("3d")
    equal([doc("run_" + id).error.type for id in ["long", "none"]], ["DeadlineError", "DeadlineError"])

def test_a_deadline_is_a_duration():
    send("begin", {"id": "x", "within": "soon"}, fails = "is not a duration")
    send("begin", {"id": "x", "within": 0}, fails = "deadline: 0 is not longer than nothing")
`)
}
