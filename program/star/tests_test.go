package star

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRunTests_SeesTheWorldOfTheProgram(t *testing.T) {
	src := source(airport, "test_test.star", `
load("test.star", "stats")

def test_departure():
    r = send("departure", {"flight": "BT600", "delay": 12, "destination": "RIX"})
    equal(r.flight, "BT600")
    expect("punctuality", {"mean_delay": 12})
    expect(stats, {"departures": 1, "arrivals": 0, "delay_sum": 12})
    expect("stats", {"departures": 0, "arrivals": 1, "delay_sum": 0}, space = "RIX")
    check(stats.departures == 1)

def test_fails():
    send("departure", {"flight": "BT600"}, fails = "payload.delay is missing")

def test_runs():
    watch("punctuality")
    send("arrival", {"flight": "a", "origin": "b"}) # the first write gives all fields their defaults
    mark()
    send("arrival", {"flight": "a", "origin": "b"})
    equal(runs("punctuality"), 0)
    send("departure", {"flight": "BT600", "delay": 12, "destination": "RIX"})
    equal(runs("punctuality"), 1)
    check("punctuality" in why("punctuality"))

def test_writes():
    stats.departures = 4
    stats.delay_sum = 10
    expect("punctuality", {"mean_delay": 2.5})

def test_wrong():
    send("departure", {"flight": "BT600", "delay": 12, "destination": "RIX"})
    expect("stats", {"departures": 2, "arrivals": 0, "delay_sum": 12})
`)
	results, err := RunTests(context.Background(), src, "test_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
		switch {
		case r.Name != "test_wrong" && r.Err != nil:
			t.Errorf("%s: %v", r.Name, r.Err)
		case r.Name == "test_wrong":
			var e *Error
			if !errors.As(r.Err, &e) || e.File != "test_test.star" || e.Line != 32 || !strings.Contains(e.Message, "/departures: 1, not 2") {
				t.Errorf("test_wrong: %v", r.Err)
			}
		}
	}
	if got := strings.Join(names, " "); got != "test_departure test_fails test_runs test_writes test_wrong" {
		t.Errorf("ran %s", got)
	}
}

func TestRunTests_TimePassesAndProblemsFail(t *testing.T) {
	src := source(`
c = cell("c", {"n": 0, "bad": False})
def start(e):
    set_timer("t", "tick", after = "1h")
    send(space(), "tick", after = "24h")
handle("start", start)
def tick(e):
    c.n += 1
handle("tick", tick)
cron("daily", "0 9 * * *", stream = "tick")
def broken():
    if c.bad:
        fail("it is bad")
    return 1
compute("broken", broken)
def later(e):
    send(space(), "nothing_there")
handle("later", later)
`, "x_test.star", `
def test_time():
    send("start")
    expect("c", None)
    advance("2h")
    expect(doc("c").n, 1)
    advance("7d")
    expect(doc("c").n, 9)

def test_problem():
    watch("broken")
    doc("c").bad = True

def test_problem_that_is_known():
    watch("broken")
    doc("c").bad = True
    check("it is bad" in problems()[0])

def test_letter():
    send("later")

def test_id():
    send("start", {"n": 1}, id = "e1")
    send("start", {"n": 1}, id = "e1")
    send("start", {"n": 2}, id = "e1")
`)
	results, err := RunTests(context.Background(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "it is bad", "", "nothing_there", "x_test.star:25:9: event e1 to test/start: an event of this id was sent before, with another payload"} {
		r := results[i]
		if want == "" && r.Err != nil || want != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), want)) {
			t.Errorf("%s: %v; want %q", r.Name, r.Err, want)
		}
	}
}

// A failed expectation often has its cause in a failed event or computation: the message adds
// those, without the ones that the test has already checked.
func TestRunTests_AFailureTellsWhatWentWrongBefore(t *testing.T) {
	src := source(`
c = cell("c", {"n": 0, "bad": False})
def tick(e):
    c.n += 1
handle("tick", tick, payload = {"at": int})
cron("tick", "0 9 * * *")
def broken():
    if c.bad:
        fail("it is bad")
    return c.n
compute("broken", broken)
`, "x_test.star", `
def test_event():
    advance("1d")
    expect(doc("c").n, 1)

def test_computation():
    watch("broken")
    doc("c").bad = True
    check(doc("broken").get() == 7, "not seven")

def test_many():
    advance("9d")
    equal(1, 2)

def test_known():
    advance("1d")
    problems()
    equal(1, 2)
`)
	results, err := RunTests(t.Context(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	const behind = "\nbefore that:\n  space test: "
	for i, want := range [][]string{
		{"x_test.star:4:11: the value is None; 1 was expected", behind + "event test:1:1:0 on tick: failed: test.star:", "stream tick: payload.at must be an integer, not a string"},
		{"not seven", behind + "node broken: test.star:", "it is bad"},
		{"2 was expected", behind, "\n  and 4 more"},
	} {
		for _, part := range want {
			if r := results[i]; r.Err == nil || !strings.Contains(r.Err.Error(), part) {
				t.Errorf("%s: %v; want %q", r.Name, r.Err, part)
			}
		}
	}
	if known := results[3].Err.Error(); strings.Contains(known, "before") {
		t.Errorf("errors that the test has checked are reported: %s", known)
	}
}

// The error of a failed event has the position where its handler failed, not the beginning of the test.
func TestRunTests_AFailedEventIsPlacedInTheProgram(t *testing.T) {
	src := source("def tick(e):\n    fail('no')\nhandle('tick', tick)\ncron('tick', '0 9 * * *')\n", "x_test.star", "def test_a():\n    advance('1d')\n")
	results, err := RunTests(t.Context(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if !errors.As(results[0].Err, &e) || e.File != "test.star" || e.Line != 2 || !strings.Contains(e.Message, "on tick of space test failed: no") {
		t.Errorf("%v", results[0].Err)
	}
}

// A string in a document is a value, not a place: an expectation must not take it for the name of a document.
func TestRunTests_ATextThatWasReadIsNoPlace(t *testing.T) {
	src := source("status = cell('status', {})\n", "x_test.star", `
def test_read():
    doc("status")["desk-007"] = "booked"
    expect(doc("status")["desk-007"], "booked")
def test_nothing():
    doc("status").desk = "booked"
    expect(doc("status").desk, None)
def test_meant():
    doc("status").desk = "booked"
    equal(doc("status").desk, "booked")
    expect(doc("booked"), None)
    expect("other", None)
def test_told():
    doc("status").desk = "booked"
    for k, v in doc("status").items():
        expect(v, "booked")
`)
	results, err := RunTests(t.Context(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	const read = `expect: document booked is not there. If "booked" was read from a document just now: equal(...) compares what was read. If a document is meant: expect(doc("booked"), ...)`
	for i, want := range []string{read, read, "", "equal(...) compares"} {
		if got := results[i].Err; (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v; want %q", results[i].Name, got, want)
		}
	}
}

func TestRunTests_WhatDiffersIsToldWithItsPlace(t *testing.T) {
	src := source("c = cell('c', {})\n", "x_test.star", `
load("test.star", "c")
def test_lists():
    equal(["a", "b"], ["b"])
def test_inside():
    equal({"a": {"b": 1}, "c": 1}, {"a": {"b": 2}, "c": 1})
def test_name():
    expect(c, {})
    expect("c", {})
`)
	results, err := RunTests(t.Context(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`the value is ["a", "b"]; ["b"] was expected`,
		`the value is {"a": {"b": 1}, "c": 1}; {"a": {"b": 2}, "c": 1} was expected` + "\n  /a/b: 1, not 2",
		"document c is None; {} was expected. A name has no default. To compare with the default of a cell, load the cell from the program and give it to expect",
	} {
		var e *Error
		if !errors.As(results[i].Err, &e) || e.Message != want {
			t.Errorf("%s: %v; want %q", results[i].Name, results[i].Err, want)
		}
	}
}

// A test that fails names the runs that have failed: they may be why there is no result.
func TestTest_NamesTheRunsThatHaveFailed(t *testing.T) {
	t.Parallel()
	src := source(`
pay = action("pay", attempts = 1)
def order(id):
    return pay(id)
workflow("order", order)
`, "x_test.star", `
def declined(id):
    fail("card declined")

def test_it():
    mock("pay", declined)
    send("workflow-start", {"workflow": "order", "run": "o1", "args": {"id": 1}})
    expect(doc("run_o1").result, 3)

def test_that_passes():
    mock("pay", declined)
    send("workflow-start", {"workflow": "order", "run": "o1", "args": {"id": 1}})
    equal(doc("run_o1").state, "failed")
`)
	results, err := RunTests(t.Context(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil || len(results) != 2 {
		t.Fatalf("%d tests, %v", len(results), err)
	}
	if err := results[0].Err; err == nil || !strings.Contains(err.Error(), "3 was expected") || !strings.Contains(err.Error(), "space test: run o1 has failed: Error: card declined") {
		t.Errorf("it has failed with %v", err)
	}
	if err := results[1].Err; err != nil {
		t.Errorf("a test of a run that fails: %v", err)
	}
}

// A test sends in the name of a principal, which the handler sees.
func TestRunTests_SendInTheNameOfAPrincipal(t *testing.T) {
	src := source(`
def take(e):
    if event().by != "gateway-1":
        reject("not-yours", "only gateway-1 sends readings")
    return [event().by, event().id]

handle("reading", take)
nothing = cell("nothing")
`, "by_test.star", `
load("test.star", "nothing")

def test_by():
    send("reading", rejects = "not-yours")
    send("reading", by = "ann", rejects = "not-yours")
    equal(send("reading", id = "r1", by = "gateway-1"), ["gateway-1", "gateway-1=r1"])
    equal(send_to("truck-2", "reading", id = "r1", by = "gateway-1")[0], "gateway-1")
    equal(send("reading", id = "r1", rejects = "not-yours"), None)  # another principal, another event

def test_a_name():
    send("reading", by = "a b")
`)
	results, err := RunTests(context.Background(), src, "by_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		wrong := r.Name == "test_a_name"
		if (r.Err != nil) != wrong || wrong && !strings.Contains(r.Err.Error(), "principal") {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

// A mock fails attempts at a task: others follow after the action's pauses, as many as the action allows.
func TestRunTests_MocksFailAttempts(t *testing.T) {
	src := source(`
pay = action("pay", attempts = 3)

def order(e):
    start_task(pay, "k", e)

def anew(e):
    cancel_task(pay, "k")
    start_task(pay, "k", e)

handle("order", order)
handle("anew", anew)
`, "again_test.star", `
load("test.star", "pay")

def failing(times):
    def f(e):
        if len(calls(pay)) <= times:
            return failure("Busy", "try later", again = True)
        return "paid"
    return f

def test_third():
    mock(pay, failing(2))
    send("order", 5)
    equal(len(calls(pay)), 1)
    advance("999ms")
    equal(len(calls(pay)), 1)
    equal(doc("pay").tasks.k.state, "pending")
    equal(doc("pay").tasks.k.error, "Busy: try later")
    advance("1ms")
    equal(len(calls(pay)), 2)
    advance("1999ms")
    equal(len(calls(pay)), 2)
    advance("1ms")
    equal(doc("pay").tasks.k.state, "done")

def test_anew():
    mock(pay, failing(1))
    send("order", 5)
    send("anew", 6)  # another start does not wait for the pause of the one before
    equal(doc("pay").tasks.k.state, "done")

def test_never():
    mock(pay, failing(99))
    send("order", 5)
    advance("1h")
    equal(len(calls(pay)), 3)
    equal(doc("pay").tasks.k.state, "failed")
`)
	results, err := RunTests(context.Background(), src, "again_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

// An event that a test sends as a client on an internal stream is rejected; one that it sends as a space is handled, and so is one of a handler.
func TestInternal_OnlySpacesSend(t *testing.T) {
	src := source(`
balance = cell("balance", 0)

def pay(e):
    send("bob", "credit", e)

def credit(cents):
    balance.set(balance + cents)
    return event().origin

handle("pay", pay)
handle("credit", credit, payload = int, internal = True)
`, "test_test.star", `
def test_a_client():
    send("credit", 5, rejects = "internal-stream")
    send_to("bob", "credit", "no number", rejects = "internal-stream")
    expect("balance", None)

def test_spaces():
    send("pay", 3)
    expect("balance", 3, space = "bob")
    equal(send_to("bob", "credit", 5, origin = "ann"), "ann")
    expect("balance", 8, space = "bob")
    equal(send("credit", 2, origin = "ann"), "ann")
    send("credit", "x", origin = "ann", fails = "payload must be an integer, not a string")

def test_no_id():
    send("credit", 5, id = "e1", origin = "ann")
`)
	results, err := RunTests(context.Background(), src, "test_test.star", TestOptions{Engine: testEngine})
	if err != nil || len(results) != 3 {
		t.Fatal(results, err)
	}
	for _, r := range results[:2] {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
	if err := results[2].Err; err == nil || !strings.Contains(err.Error(), "leave out origin, or id and by") {
		t.Error(err)
	}
	p, err := Compile(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.ClientStreams(); len(got) != 1 || got[0] != "pay" || len(p.Samples()) != 1 {
		t.Errorf("clients may send on %v; samples %v", got, p.Samples())
	}
}

// An event that is sent without waiting is handled with what the test does next, in order, and at the latest when the test ends: its failure fails the
// test, unless the test waits for it.
func TestRunTests_EventsAtTheSameTime(t *testing.T) {
	src := source(`
seen = cell("seen", [])
def note(e):
    if e == "bad":
        fail("no such thing")
    seen.append(e)
handle("note", note)
handle("pass", lambda e: send(e, "note", "caused"))
`, "test_test.star", `
load("test.star", "seen")

def test_order():
    send("note", 1, wait = False)
    send("pass", "test", space = "other", wait = False)
    send("note", 2, wait = False)
    advance("0s")
    equal([x for x in seen.get() if x != "caused"], [1, 2])
    equal(len(seen), 3)

def test_nothing_runs_before():
    send("pass", "test", space = "other", wait = False)
    send("note", 1, wait = False)
    equal(list(seen.get()), [1, "caused"])

def test_awaited():
    send("note", "bad", id = "e", wait = False)
    send("note", "bad", id = "e", fails = "no such thing")

def test_fails():
    send("note", "bad", wait = False)

def test_fails_midway():
    send("note", "bad", id = "e", wait = False)
    expect(seen, [])

def test_misuse():
    send("note", "bad", fails = "x", wait = False)

def test_another_payload():
    send("note", 1, id = "e", wait = False)
    send("note", 2, id = "e", wait = False)
`)
	results, err := RunTests(context.Background(), src, "test_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"test_order": "", "test_nothing_runs_before": "", "test_awaited": "", "test_fails": "no such thing", "test_fails_midway": "no such thing",
		"test_misuse": "with wait = False there is no end of the event yet", "test_another_payload": "another payload",
	}
	for _, r := range results {
		if want[r.Name] == "" && r.Err != nil || want[r.Name] != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), want[r.Name])) {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
	if len(results) != len(want) {
		t.Errorf("%d tests", len(results))
	}
}
