package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

const tour = `
load("actions", "fetch", "check", "add", "ship")

def label(x):
    y = ship(x)
    return y

def run(n):
    items = fetch(n)
    checked = parallel([retry(check(i), attempts = 3, backoff = "2s") for i in items])
    for c in checked:
        add(c)
        if c > 90:
            break
    done = False
    while not done:
        done = retry(add(0), attempts = 2, backoff = "1s")
    sleep("90s")
    a, b = parallel(label(1), label(2))
    by = wait("approve", timeout = "1h")
    return [a, b, by]

workflow("tour", run)
`

// touring is a run in memory, and what a client would see of it.
type touring struct {
	t      *testing.T
	run    *workflow.Run
	status flow.Status
	now    int64
}

func newTour(t *testing.T, args string) *touring {
	t.Helper()
	g, err := compile.Compile("tour.star", []byte(tour))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 11, 27, 12, 0, 0, 0, time.Local).UnixMilli()
	x := &touring{t: t, run: workflow.New(p), now: begun}
	x.status = flow.Status{ID: "r1", Workflow: "tour", State: flow.Running, Started: begun, Graph: g, Passed: x.run.Passed, Timers: map[string]int64{}, Queued: map[string]bool{}}
	x.step(workflow.Input{Begin: jsontext.Value(args)})
	return x
}

// step makes a step a second after the last one.
func (x *touring) step(in workflow.Input) {
	x.t.Helper()
	x.now += 1000
	in.Now = x.now
	e, err := x.run.Step(in)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, at := range e.Timers {
		x.status.Timers[at.ID] = at.At
	}
	for _, id := range e.Drop {
		delete(x.status.Timers, id)
	}
	x.status.Steps++
	if e.Outcome != nil {
		x.t.Fatalf("it has ended: %s %v", e.Outcome.Result, e.Outcome.Error)
	}
	x.status.Waiting, x.status.Positions = x.run.Open(), x.run.Positions()
}

// done ends an action with a result.
func (x *touring) done(id string, attempt int, result string) {
	x.t.Helper()
	x.step(workflow.Input{Done: &workflow.Done{Work: id, Attempt: attempt, Result: jsontext.Value(result)}})
}

// frame returns what a terminal shows a second later.
func (x *touring) frame(color bool, rows int) string {
	d := runText{sheet: sheet{color: color}, now: time.UnixMilli(x.now + 1000)}
	return strings.Join(d.frame(&x.status, rows), "\n")
}

// first ends the first action that the run waits for.
func (x *touring) first(attempt int, result string) {
	x.t.Helper()
	x.done(x.status.Waiting[0].ID, attempt, result)
}

// fails makes an attempt of the first action fail.
func (x *touring) fails() {
	x.t.Helper()
	x.step(workflow.Input{Failed: &workflow.Failed{Work: x.status.Waiting[0].ID, Attempt: 1, Type: "Offline", Message: "no route"}})
}

// frames is a walk through a run, and what a terminal and a log show of it.
func frames(t *testing.T, color bool, rows int) string {
	x := newTour(t, `{"n":3}`)
	var b strings.Builder
	show := func(name string) {
		line := runText{now: time.UnixMilli(x.now)}.summary(&x.status)
		fmt.Fprintf(&b, "== %s\n%s\n-- %s\n\n", name, x.frame(color, rows), line)
	}
	show("an action")
	x.first(1, "[10,20,30]")
	x.status.Queued[x.status.Waiting[2].ID] = true
	x.first(1, "1")
	x.fails()
	show("a fan-out, of which one call waits for another attempt and one for its turn")
	x.step(workflow.Input{Timer: "retry " + x.status.Waiting[0].ID})
	x.first(2, "2")
	x.first(1, "99")
	x.first(1, "0")
	show("the second iteration of a loop")
	x.first(1, "0")
	x.first(1, "0") // the third, which leaves the loop
	x.fails()
	show("a pause before another attempt, in a while loop")
	x.step(workflow.Input{Timer: "retry " + x.status.Waiting[0].ID})
	show("another attempt")
	x.first(2, "true")
	show("a sleep")
	x.step(workflow.Input{Timer: x.status.Waiting[0].ID})
	x.first(1, "1")
	show("calls of a function at the same time")
	x.first(1, "1")
	show("a signal with a timeout")
	return b.String()
}

// A frame is drawn in full: what it shows is the text of testdata/workflow_frames.txt.
func TestRunText_EachThingThatARunWaitsFor(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/workflow_frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := frames(t, false, 60); got != string(want) {
		t.Errorf("it draws\n%s", got)
	}
}

func TestRunText_ColoursChangeNothingButColours(t *testing.T) {
	t.Parallel()
	colours := regexp.MustCompile("\x1b\\[[0-9]*m")
	painted := frames(t, true, 60)
	if got := colours.ReplaceAllString(painted, ""); got != frames(t, false, 60) {
		t.Errorf("without its colours it is\n%s", got)
	}
	for _, want := range []string{"\x1b[33mrunning\x1b[0m", "\x1b[32m✓\x1b[0m", "\x1b[33m●\x1b[0m", "\x1b[33m‖\x1b[0m", "\x1b[31m↻\x1b[0m", "\x1b[2m·\x1b[0m", "\x1b[32m██████▋\x1b[0m"} {
		if !strings.Contains(painted, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// On a small terminal the graph is cut around the node that the run waits at, and left out before anything else is.
func TestRunText_AFrameFitsIntoASmallTerminal(t *testing.T) {
	t.Parallel()
	x := newTour(t, `{"n":3}`)
	x.first(1, "[]")
	for rows := range 20 {
		lines := strings.Split(x.frame(false, rows), "\n")
		if len(lines) > max(rows, 3) {
			t.Errorf("%d lines for %d rows", len(lines), rows)
		}
		if graph := len(lines) > 4; graph && !strings.Contains(strings.Join(lines, "\n"), "● ") {
			t.Errorf("with %d rows, the node that it waits at is not there:\n%s", rows, x.frame(false, rows))
		}
	}
	const want = `r1: workflow tour, running for 3.0s, since 12:00:00, 2 steps

  ... 7 above
  ●   17   action add
  ... 5 below

  in while not done: iteration 1 (line 16)
  waits for action add for 1.0s, since 12:00:02 (line 17)`
	if got := x.frame(false, 8); got != want {
		t.Errorf("it draws\n%s", got)
	}
}

func TestRunText_HowARunHasEnded(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.Local)
	s := flow.Status{ID: "r1", Workflow: "tour", State: flow.Done, Started: began.UnixMilli(), Ended: began.Add(90 * time.Minute).UnixMilli(), Steps: 1, Result: model.Object(model.F("a", 1))}
	d := runText{now: began.Add(24 * time.Hour)}
	for want, change := range map[string]func(){
		"r1: workflow tour, done after 1h 30m, at 2026-11-26 13:30:00, 1 step\n  result {\"a\":1}":           func() {},
		"  result\n  {\n    \"a\": \"" + strings.Repeat("x", 100) + "\"\n  }":                                func() { s.Result = model.Object(model.F("a", strings.Repeat("x", 100))) },
		"r1: workflow tour, failed after 1h 30m, at 2026-11-26 13:30:00, 1 step\n  error Declined: no money": func() { s.State, s.Error = flow.Failed, &flow.Error{Type: "Declined", Message: "no money"} },
		"is not known here": func() { s.State, s.Error, s.Opaque = flow.Running, nil, true },
	} {
		was := s
		change()
		if got := strings.Join(d.lines(&s), "\n"); !strings.Contains(got, want) {
			t.Errorf("it draws\n%s\nwithout %q", got, want)
		}
		s = was
	}
}

// A log has a line per change of what a run does, and none for what does not change it.
func TestRunLines_ALinePerChange(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	x := newTour(t, `{"n":3}`)
	l := runLines{io: streams{out: &out, now: func() time.Time { return time.UnixMilli(x.now) }}}
	show := func() {
		if err := l.show(&x.status); err != nil {
			t.Fatal(err)
		}
	}
	show()
	x.now += 60_000
	show()
	x.first(1, "[1,2]")
	show()
	x.status.State, x.status.Error, x.status.Ended = flow.Failed, &flow.Error{Type: "Offline", Message: "no route"}, x.now
	x.status.Waiting, x.status.Positions = nil, nil
	show()
	const want = "12:00:01  r1: running, 1 step, waits for action fetch\n12:01:02  r1: running, 2 steps, check 0 of 2 done\n" +
		"r1: workflow tour, failed after 1m 2s, at 12:01:02, 2 steps\n  error Offline: no route\n"
	if out.String() != want {
		t.Errorf("it prints\n%s", &out)
	}
}
