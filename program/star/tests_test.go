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
	results, err := RunTests(context.Background(), src, "test_test.star", TestOptions{})
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
`)
	results, err := RunTests(context.Background(), src, "x_test.star", TestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "it is bad", "", "nothing_there"} {
		r := results[i]
		if want == "" && r.Err != nil || want != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), want)) {
			t.Errorf("%s: %v; want %q", r.Name, r.Err, want)
		}
	}
}
