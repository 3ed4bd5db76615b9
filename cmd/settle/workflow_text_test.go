package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
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

func (x *touring) want(name, want string) {
	x.t.Helper()
	if got := x.frame(false, 60); got != strings.TrimPrefix(want, "\n") {
		x.t.Errorf("%s: it draws\n%s\nwant\n%s", name, got, want)
	}
}

func (x *touring) line() string {
	d := runText{now: time.UnixMilli(x.now)}
	return d.summary(&x.status)
}

func TestRunText_Probe(t *testing.T) {
	x := newTour(t, `{"n":3}`)
	show := func() {
		for _, w := range x.status.Waiting { t.Log(w.ID, w.Attempt) }
		t.Log("\n"+x.frame(false, 60)+"\n"+x.line())
	}
	show()
	x.done(x.status.Waiting[0].ID, 1, "[10,20,30]")
	x.status.Queued[x.status.Waiting[2].ID] = true
	x.done(x.status.Waiting[0].ID, 1, "1")
	x.step(workflow.Input{Failed: &workflow.Failed{Work: x.status.Waiting[0].ID, Attempt: 1, Type: "Offline", Message: "no route"}})
	show()
	x.done(x.status.Waiting[1].ID, 1, "2")
	x.step(workflow.Input{Timer: "retry "+x.status.Waiting[0].ID})
	x.done(x.status.Waiting[0].ID, 2, "99")
	x.done(x.status.Waiting[0].ID, 1, "99")
	show()
	x.done(x.status.Waiting[0].ID, 1, "99")
	x.done(x.status.Waiting[0].ID, 1, "99")
	x.done(x.status.Waiting[0].ID, 1, "false")
	x.step(workflow.Input{Failed: &workflow.Failed{Work: x.status.Waiting[0].ID, Attempt: 1, Type: "Offline", Message: "no route"}})
	show()
	x.step(workflow.Input{Timer: "retry "+x.status.Waiting[0].ID})
	show()
	x.done(x.status.Waiting[0].ID, 2, "true")
	show()
	x.step(workflow.Input{Timer: x.status.Waiting[0].ID})
	show()
	x.done(x.status.Waiting[0].ID, 1, "1")
	x.done(x.status.Waiting[0].ID, 1, "1")
	show()
}

var _ = bytes.MinRead
var _ = model.Value{}
var _ = runs.Index
