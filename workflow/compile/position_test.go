package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/workflow"
)

// Before any wait, a run has no list of frames that wait.
func TestWait_ASignalThatCameBeforeTheFirstWaitIsFound(t *testing.T) {
	for _, body := range []string{
		"    a(1)\n    return wait('go')",
		"    a(1)\n    return wait('go', timeout = '1h')",
		"    a(1)\n    x = attempt(wait('go', timeout = '1h'))\n    return x.value",
	} {
		b, e := begin(t, body)
		b.step(workflow.Input{Signal: &workflow.Signal{Name: "go", Value: jsontext.Value("7")}})
		if e = b.done(e.Start[0], "null"); e.Outcome == nil || string(e.Outcome.Result) != "7" {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

// where describes where a run is.
func where(b *bench) string {
	var list []string
	for _, p := range b.run.Positions() {
		text := fmt.Sprintf("%s%d:%d %d/%d at %d", p.ID, p.Func, p.Node, p.Got, p.Need, p.Since)
		for _, r := range p.Rounds {
			text += fmt.Sprintf(" loop %d %d/%d", r.Node, r.Index, r.Of)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// open describes what it waits for.
func open(b *bench) string {
	var list []string
	for _, o := range b.run.Open() {
		list = append(list, fmt.Sprintf("%s %s%s#%d at %d %s", o.ID, o.Action, o.Signal, o.Attempt, o.Since, o.Failed))
	}
	return strings.Join(list, "; ")
}

func (b *bench) is(position, waiting string) {
	b.Helper()
	if got := where(b); got != position {
		b.Errorf("it is at %q, want %q", got, position)
	}
	if got := open(b); got != waiting {
		b.Errorf("it waits for %q, want %q", got, waiting)
	}
}

// All of it is part of a snapshot: a bench stores and loads the run after each step.
func TestPositions_WhereARunIsSinceWhenAndAfterWhatFailure(t *testing.T) {
	b, e := begin(t, "    parallel([retry(a(x), attempts = 3, backoff = '1s') for x in range(2)])\n    for x in range(n):\n        while b(x):\n            parallel(two(x))\n    sleep(5)\n    wait('go')")
	b.is("0:1 0/2 at 0", "1/0 a#1 at 0 ; 1/1 a#1 at 0 ")
	b.now = 10
	b.failed(e.Start[0], "Offline")
	b.is("0:1 0/2 at 0", "1/0 a#2 at 10 Offline: it is so; 1/1 a#1 at 0 ")
	b.now = 20
	b.done(e.Start[1], "1")
	b.is("0:1 1/2 at 0", "1/0 a#2 at 10 Offline: it is so")
	b.now = 1010
	e = b.step(workflow.Input{Timer: "retry 1/0"})
	b.is("0:1 1/2 at 0", "1/0 a#2 at 1010 Offline: it is so")
	b.now = 1020
	e = b.done(e.Start[0], "1")
	b.is("0:4 0/1 at 1020 loop 2 0/3 loop 3 0/-1", "4[0,0]/0 b#1 at 1020 ")
	b.now = 1030
	e = b.done(e.Start[0], "true")
	if got := where(b); !strings.HasPrefix(got, "0:7 0/1 at 1030 loop 2 0/3 loop 3 0/-1; ") || !strings.HasSuffix(got, " 0/1 at 1030") {
		t.Errorf("in a call of a function it is at %q", got)
	}
	e = b.done(e.Start[0], "1") // a of two
	e = b.done(e.Start[0], "1") // b of two
	if got := where(b); !strings.HasSuffix(got, "loop 2 0/3 loop 3 1/-1") {
		t.Errorf("in the second iteration of while it is at %q", got)
	}
	for range 3 {
		e = b.done(e.Start[0], "false")
	}
	b.now = 1030 + 5000
	if got := open(b); got != "sleep 9 #0 at 1030 " {
		t.Errorf("asleep, it waits for %q", got)
	}
	b.step(workflow.Input{Timer: "sleep 9"})
	b.is("0:10 0/0 at 6030", "wait 10 go#0 at 6030 ")
	var passed []int
	for node := range 11 {
		passed = append(passed, b.run.Passed(0, node))
	}
	// A join, such as 1 and 7, is no place that an edge is followed to. Of the loop at 2 there were three iterations, and one visit
	// that ended it; the loop at 3 went on once.
	if got := fmt.Sprint(passed); got != "[1 0 4 4 4 4 1 0 3 1 1]" {
		t.Error(got)
	}
	if got := fmt.Sprint(b.run.Passed(1, 0), b.run.Passed(2, 0), b.run.Passed(0, 999), b.run.Passed(-1, 0)); got != "1 0 0 0" {
		t.Error(got)
	}
}

// A run that was stored without them goes on, and its counts begin there.
func TestPositions_ASnapshotWithoutThemIsLoaded(t *testing.T) {
	b, e := begin(t, "    a(1)\n    b(2)")
	b.now = 50
	snap, err := b.run.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	old := strings.ReplaceAll(string(snap), `,"passed":[[1]]`, "")
	if old == string(snap) {
		t.Fatalf("%s has no counts", snap)
	}
	if b.run, err = workflow.Load(b.p, []byte(old)); err != nil {
		t.Fatal(err)
	}
	b.done(e.Start[0], "1")
	if b.run.Passed(0, 0) != 0 || b.run.Passed(0, 1) != 1 {
		t.Errorf("passed %d and %d", b.run.Passed(0, 0), b.run.Passed(0, 1))
	}
}

func TestPositions_TheErrorOfAnAttemptIsKeptInAFewWords(t *testing.T) {
	b, e := begin(t, "    retry(a(1), attempts = 2)")
	b.step(workflow.Input{Failed: &workflow.Failed{Work: e.Start[0].ID, Attempt: 1, Type: "Long", Message: strings.Repeat("é", 1000)}})
	if got := b.run.Open()[0].Failed; len([]rune(got)) != 100 || !strings.HasSuffix(got, "...") {
		t.Errorf("%q", got)
	}
}

func TestLabel_AWaitIsShownAsItIsWritten(t *testing.T) {
	for body, want := range map[string]string{
		"    wait('go')": "wait 'go'",
		"    wait('go' + str(n), timeout = '1h')":      "wait 'go' + str(n), timeout = 3600",
		"    wait('go', timeout = str(n) + 'h')":       "wait 'go', timeout = str(n) + 'h'",
		"    x = attempt(wait('a), (b', timeout = n))": "wait 'a), (b', timeout = n",
	} {
		g, err := Compile("w.star", []byte("load('actions', 'a')\ndef run(n = 3):\n"+body+"\n    a(1)\nworkflow('w', run)\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Funcs[0].Nodes[0].Label(80); got != want {
			t.Errorf("%s is shown as %q, want %q", body, got, want)
		}
	}
}
