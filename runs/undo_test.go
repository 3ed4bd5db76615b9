package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
)

const trip = `
load("actions", "book", "free", "pay")

def run(stops, cents):
    for stop in stops:
        compensate(free(stop))
        book(stop)
    r = attempt(extras(stops))
    pay(cents, r.ok)
    return "paid"

def extras(stops):
    return parallel([extra(stop) for stop in stops])

def extra(stop):
    compensate(retry(free("extra " + stop), attempts = 2))
    return book("extra " + stop)

workflow("w", run, deadline = "30d")
`

const tripActions = `
def book(what): return fail(error("Full", what)) if what == "extra Rome" else what
def free(what): return fail(error("Offline", what)) if what == "Oslo" else None
def pay(cents, extras): return fail(error("Declined", "no money")) if cents > 100 else cents
`

// A failed run undoes its steps, in a space, with and without a restart before each end of an action.
func TestUndo_IsTheSameAfterARestartBeforeEachStep(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
		w.restart = restart
		w.start("r", `{"stops":["Riga","Oslo","Rome"],"cents":200}`)
		w.perform()
		var undo []string
		for _, line := range w.log {
			if strings.HasPrefix(line, "free") {
				undo = append(undo, line)
			}
		}
		want := []string{`free("extra Rome")`, `free("extra Oslo")`, `free("extra Riga")`, `free("Rome")`, `free("Oslo")`, `free("Riga")`}
		if !slices.Equal(undo, want) {
			t.Errorf("restart %v: %v", restart, undo)
		}
		doc := w.s.Value(Doc("r"))
		if got, want := doc.Get("error").String(), `{"message":"no money","type":"Declined","undone":{"errors":[{"line":6,"message":"Oslo","step":"free","type":"Offline"}],"failed":1,"steps":2}}`; got != want {
			t.Errorf("restart %v: %s\nwant %s", restart, got, want)
		}
		if !doc.Get("undoing").IsAbsent() || doc.Get("state").String() != `"failed"` {
			t.Errorf("restart %v: %s", restart, doc)
		}
		w.start("ok", `{"stops":["Riga"],"cents":1}`)
		if w.perform(); w.outcome("ok") != `"paid"` {
			t.Error(w.outcome("ok"))
		}
		w.clean()
	}
}

func TestUndo_TheRunIsRunningAndSaysWhyUntilItHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
	w.start("r", `{"stops":["Riga","Bonn"],"cents":1}`)
	action, task, _ := w.task()
	w.end(action, task)
	w.send(StreamCancel, "", `{"run":"r","why":"not needed"}`)
	s, err := Inspect("r", func(doc string) (model.Value, error) { return w.s.Value(doc), nil })
	if err != nil {
		t.Fatal(err)
	}
	if s.State != Running || s.Undoing == nil || s.Undoing.Error() != "CancelledError: not needed" || len(s.Waiting) != 1 || s.Waiting[0].Action != "free" {
		t.Errorf("%+v", s)
	}
	w.send(StreamCancel, "", `{"run":"r","why":"once more"}`) // has no effect
	if _, task, _ = w.task(); task.In.Get("args").String() != `["Bonn"]` || task.Key != "s/r/undo2.1[1]/0" && task.Key != "s/r/undo2.1/0" {
		t.Errorf("%s %s", task.Key, task.In)
	}
	w.perform()
	if h := w.history("r"); !strings.Contains(h, "free") {
		t.Errorf("the history does not name the undo steps: %s", h)
	}
	if got := w.outcome("r"); got != "error CancelledError: not needed" {
		t.Error(got)
	}
	if got := w.s.Value(Doc("r")); got.Get("state").String() != `"cancelled"` || got.Get("error").Get("undone").String() != `{"steps":2}` {
		t.Error(got)
	}
	w.clean()
}

func TestCancel_AtOnceLeavesOutTheUndoSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
	for _, id := range []string{"r", "q"} {
		w.start(id, `{"stops":["Riga","Bonn"],"cents":1}`)
	}
	w.send(StreamCancel, "", `{"run":"r","why":"x","at_once":true}`)
	w.send(StreamCancel, "", `{"run":"q","why":"x"}`)
	w.send(StreamCancel, "", `{"run":"q","why":"y","at_once":true}`)
	for _, id := range []string{"r", "q"} {
		if got := w.s.Value(Doc(id)).Get("error").Get("undone").Get("skipped").String(); got != "1" {
			t.Error(id, w.s.Value(Doc(id)))
		}
	}
	if _, task, is := w.task(); is {
		t.Errorf("%s is pending", task.Key)
	}
	if rc := w.sent(StreamCancel, "", `{"run":"z","at_once":1}`); rc.Outcome != model.Failed {
		t.Error(rc)
	}
	w.start("p", `{"stops":["Riga"],"cents":1}`)
	if rc := w.sent(StreamCancel, "", `{"run":"p","at_once":1}`); !strings.Contains(rc.Error, "at_once has the type int; it must be true or false") {
		t.Error(rc)
	}
	w.perform()
	w.clean()
}

// A run that was ended at once during its undo steps cannot go on, since the step that was under way may have had an
// effect; one whose undo steps had not begun can.
func TestRetry_OfARunThatWasEndedDuringItsUndoSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
	for _, id := range []string{"begun", "not-begun"} {
		w.start(id, `{"stops":["Riga","Bonn"],"cents":1}`)
	}
	w.send(StreamCancel, "", `{"run":"begun","why":"x"}`)
	for _, id := range []string{"begun", "not-begun"} {
		w.send(StreamCancel, "", `{"run":"`+id+`","at_once":true}`)
	}
	w.refused(Undone, "undo steps of run begun have been executed, or are being executed", StreamRetry, `{"run":"begun"}`)
	w.refused(Undone, "undo steps of run begun have been executed, or are being executed", StreamReset, `{"run":"begun","step":1}`)
	w.operate(StreamRetry, `{"run":"not-begun"}`)
	w.perform()
	if got := w.s.Value(Doc("not-begun")).Get("state").String(); got != `"done"` {
		t.Error(w.s.Value(Doc("not-begun")))
	}
	w.clean()
}

func TestDeadline_OfTheWorkflowAndOfTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "load(\"actions\", \"inc\")\ndef run(n = 3):\n    wait(\"go\")\n    return n\nworkflow(\"w\", run, deadline = \"2d\")\n", inStarlark(t, fewActions), simkit.Options{})
	w.start("long", "{}")
	w.send(StreamStart, "", `{"workflow":"w","run":"short","deadline":"90m"}`)
	w.send(StreamStart, "", `{"workflow":"w","run":"seconds","deadline":3600.5}`)
	w.send(StreamStart, "", `{"workflow":"w","run":"longer","deadline":"9d"}`)
	w.send(StreamStart, "", `{"workflow":"w","run":"in-time","deadline":"1h"}`)
	w.advance(time.Hour - time.Second)
	w.send(StreamSignal, "", `{"run":"in-time","signal":"go"}`)
	for _, c := range []struct {
		after             time.Duration
		long, short, secs string
	}{
		{0, "running", "running", "running"},
		{2 * time.Second, "running", "running", "error DeadlineError: the run has not ended within 1h0m0.5s"},
		{30 * time.Minute, "running", "error DeadlineError: the run has not ended within 1h30m0s", ""},
		{47 * time.Hour, "error DeadlineError: the run has not ended within 48h0m0s", "", ""},
	} {
		w.advance(c.after)
		if err := w.Restart(); err != nil {
			t.Fatal(err)
		}
		w.s, _ = w.Space("s")
		for id, want := range map[string]string{"long": c.long, "longer": c.long, "short": c.short, "seconds": c.secs, "in-time": "3"} {
			if got := w.outcome(id); want != "" && got != want {
				t.Errorf("after %v: run %s: %s, want %s", c.after, id, got, want)
			}
		}
	}
	if got := w.send(StreamStart, "", `{"workflow":"w","run":"short","deadline":"1h"}`); got.String() != `{"run":"short","started":false,"state":"failed"}` {
		t.Error(got)
	}
	for deadline, want := range map[string]string{`"soon"`: `the deadline: "soon" is not a duration`, `0`: "the deadline: 0 is not longer than nothing", `"-1h"`: "not longer than nothing", `[]`: "a duration is a number of seconds or a text", `1e300`: "a duration must be a number of at most"} {
		if rc := w.sent(StreamStart, "", `{"workflow":"w","run":"bad","deadline":`+deadline+`}`); rc.Outcome != model.Failed || !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s", deadline, rc.Error)
		}
	}
	w.clean()
}

// A result, a message or a detail that is too large for the document of the run is bounded, and the run ends.
func TestOutcome_IsBounded(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"    return \"x\" * 200000":                                      "error LimitError: the result of the run has 200002 bytes; at most 131072 are possible: return a reference to what is large",
		"    fail(\"x\" * 10000000)":                                     "error Error: " + strings.Repeat("x", maxMessage) + "...",
		"    fail(error(\"E\", \"m\", detail = \"x\" * 10000000))":       "error E: m",
		"    compensate(inc(\"x\" * 131000))\n    return \"x\" * 200000": "error LimitError: the result of the run has 200002 bytes; at most 131072 are possible: return a reference to what is large",
	} {
		w := small(t, body)
		w.start("r", "{}")
		w.perform()
		if got := w.outcome("r"); got != want {
			t.Errorf("%s: %.200s", body, got)
		}
		w.clean()
	}
}

// Undo steps survive a snapshot of the run: there are more records than one has.
func TestUndo_AfterASnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "load(\"actions\", \"inc\")\ndef run(n):\n    x = 0\n    for i in range(n):\n        x = inc(x)\n        if i % 40 == 0: compensate(inc(-i))\n    fail(\"no\")\nworkflow(\"w\", run)\n", inStarlark(t, fewActions), simkit.Options{Lenient: true})
	w.start("r", `{"n":1200}`)
	for n := 0; w.outcome("r") == "running"; n++ {
		action, task, _ := w.task()
		if w.end(action, task); n%300 == 0 || n == 1205 {
			if err := w.Restart(); err != nil {
				t.Fatal(err)
			}
			w.s, _ = w.Space("s")
		}
	}
	if got := fmt.Sprint(w.log[1200], " ", w.log[1229], " ", len(w.log)); got != "inc(-1160) inc(0) 1230" {
		t.Error(got)
	}
	w.clean()
}

// A reset that would keep what an undo step of an inner call has undone is refused; a later one is not.
func TestUndo_AResetBehindUndoStepsOfAnInnerCallIsRefused(t *testing.T) {
	t.Parallel()
	const src = `
load("actions", "book", "free", "pay")

def run():
    pay(1, True)
    r = attempt(extra("Rome"))
    pay(2, r.ok)
    return pay(3, True)

def extra(stop):
    compensate(free(stop))
    return book("extra " + stop)

workflow("w", run)
`
	w := newWorld(t, src, inStarlark(t, tripActions), simkit.Options{})
	w.start("r", `{}`)
	for range 4 { // pay 1, book, free, pay 2
		action, task, _ := w.task()
		w.end(action, task)
		if action == "book" { // its undo step is pending
			for step, refused := range map[int]bool{1: true, 2: true, 3: true} {
				w.reset(step, refused)
			}
		}
	}
	for step := 1; step <= 3; step++ {
		w.reset(step, true)
	}
	w.reset(4, false)
	w.perform()
	if got := w.outcome("r"); got != "3" {
		t.Error(got)
	}
	w.clean()
}

// reset resets the run r, and wants that to be refused because of undo steps, or not.
func (w *world) reset(step int, refused bool) {
	w.Helper()
	rc := w.sent(StreamReset, "", fmt.Sprintf(`{"run":"r","step":%d,"answer":true}`, step))
	if got, _ := rc.Result.Get("refused").AsString(); (got == string(Undone)) != refused || rc.Outcome != model.Handled {
		w.Errorf("reset to step %d: %s %s %s", step, rc.Outcome, rc.Error, rc.Result)
	}
}
