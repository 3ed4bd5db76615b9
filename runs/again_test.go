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

// A child that has failed is started anew by a retry, under an ID of its own; so are those that its failure had cancelled.
func TestRetry_StartsFailedAndCancelledChildrenAnew(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		f := newFamily(t, simkit.Options{}, map[string]string{
			"w":      "def run(): return parallel(child(\"leaf\", {\"n\": 1}), child(\"frail\", {}), child(\"long\", {}, space = \"far\"))",
			"leaf":   "def run(n): return inc(n)",
			"frail":  "def run(): return bad(1)",
			"long":   "def run(): return slow(7)",
			"strong": "def run(): return 1",
		})
		f.restart = restart
		f.begin("s", "r", "{}")
		f.performAll("slow")
		if got := f.of("s", "r"); got != "error BadError: no 1" {
			t.Fatal(got)
		}
		before := len(f.runsOf("s"))
		f.deeds["bad"] = f.deeds["slow"] // it works now
		f.sentTo("s", StreamRetry, "", `{"run":"r"}`)
		if got := f.of("s", "r"); got != "running" {
			t.Fatal(got)
		}
		f.performAll()
		if got := f.of("s", "r"); got != "[2,1,7]" {
			t.Error(got)
		}
		if n := len(f.runsOf("s")); n != before+2 {
			t.Errorf("%d runs after %d; want that the failed child and the cancelled one are started anew: %v", n, before, f.runsOf("s"))
		}
		f.tidied()
	})
}

// A reset cancels the children that run, and starts others.
func TestReset_CancelsRunningChildrenAndStartsOthers(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		f := newFamily(t, simkit.Options{}, map[string]string{
			"w":    "def run():\n    a = inc(1)\n    b = child(\"long\", {\"n\": a}, space = \"far\")\n    return [a, b]",
			"long": "def run(n): return slow(n)",
		})
		f.restart = restart
		f.begin("s", "r", "{}")
		f.performAll("slow")
		first := f.childOnly("s", "r")
		f.sentTo("s", StreamReset, "", `{"run":"r","step":1}`)
		f.performAll("slow")
		if got := f.of("far", first.Run); !strings.HasPrefix(got, "error CancelledError") {
			t.Errorf("the first child: %s", got)
		}
		f.performAll()
		if got := f.of("s", "r"); got != "[2,2]" {
			t.Error(got)
		}
		if got := f.runsOf("far"); len(got) != 2 {
			t.Errorf("runs: %v", got)
		}
		f.tidied()
	})
}

// The same, by an event whose cause is not known, such as one that was redriven. Else the call would have the name of the one
// before, and get its end.
func TestReset_ByAnEventOfUnknownCauseStartsOtherChildren(t *testing.T) {
	t.Parallel()
	f := newFamily(t, simkit.Options{}, map[string]string{
		"w":    "def run():\n    a = inc(1)\n    b = child(\"long\", {\"n\": a}, space = \"far\")\n    return [a, b]",
		"long": "def run(n): return slow(n)",
	})
	f.begin("s", "r", "{}")
	f.performAll("slow")
	for range 2 {
		if err := f.in("s").Write(func(tx *space.Tx) error {
			tx.Send("s", StreamReset, model.Object(model.F("run", "r"), model.F("step", 1)))
			return tx.Err()
		}); err != nil {
			t.Fatal(err)
		}
		f.performAll("slow")
	}
	f.performAll()
	if got, list := f.of("s", "r"), f.runsOf("far"); got != "[2,2]" || len(list) != 3 {
		t.Errorf("%s, with the runs %v", got, list)
	}
	f.tidied()
}

// What a run has done does not hold any more once it is undone.
func TestRetry_OfARunWhoseStepsAreUndoneIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
	w.start("r", `{"stops":["Riga","Bonn"],"cents":1}`)
	action, task, _ := w.task()
	w.end(action, task)
	w.send(StreamCancel, "", `{"run":"r","why":"not needed"}`)
	w.refused(Undone, "undo steps of run r", StreamReset, `{"run":"r","step":1}`)
	w.perform()
	if got := w.outcome("r"); got != "error CancelledError: not needed" {
		t.Fatal(got)
	}
	w.refused(Undone, "undo steps of run r", StreamRetry, `{"run":"r"}`)
	w.refused(Undone, "undo steps of run r", StreamReset, `{"run":"r","step":1}`)
	w.clean()
}

// Undo steps that a cancellation has left out have undone nothing.
func TestRetry_AfterACancellationThatUndidNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
	w.start("r", `{"stops":["Riga","Bonn"],"cents":1}`)
	action, task, _ := w.task()
	w.end(action, task)
	w.send(StreamCancel, "", `{"run":"r","why":"not needed","at_once":true}`)
	if got := w.outcome("r"); got != "error CancelledError: not needed" {
		t.Fatal(got)
	}
	w.operate(StreamRetry, `{"run":"r"}`)
	if got := w.outcome("r"); got == "running" || strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	w.clean()
}

// A run that has failed before its first action keeps the deadline of its start.
func TestRetry_OfTheFirstStepKeepsTheDeadlineOfTheStart(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    fail('wrong')\n    return inc(n)")
	w.send(StreamStart, "", `{"workflow":"w","run":"r","deadline":"1h"}`)
	w.deploy("load(\"actions\", \"inc\", \"shaky\")\ndef run(n = 1):\n    return wait(\"go\")\nworkflow(\"w\", run)\n")
	w.operate(StreamRetry, `{"run":"r","latest":true}`)
	if got := w.outcome("r"); got != "running" {
		t.Fatal(got)
	}
	w.advance(time.Hour)
	if got := w.outcome("r"); !strings.HasPrefix(got, "error DeadlineError") {
		t.Error(got)
	}
	w.clean()
}

// What is kept of a long run suffices for a retry, also where its first steps are dropped.
func TestRetry_OfARunOfManyPages(t *testing.T) {
	t.Parallel()
	for n := 13; n <= 19; n++ {
		w, s := unstable(t, false, fmt.Sprintf("    x = \"\"\n    for i in range(%d):\n        x = shaky(str(i) + \"x\" * 40000)\n    inc(len(x))\n    return shaky(7)", n))
		w.start("r", "{}")
		for i := range n {
			w.end("shaky", w.taskOf("shaky"))
			if i == n-1 {
				s.failures = 1
			}
		}
		w.perform()
		if got := w.outcome("r"); got != "error Offline: no route" {
			t.Fatal(n, got)
		}
		w.operate(StreamRetry, `{"run":"r"}`)
		if got := w.outcome("r"); got != "7" {
			t.Error(n, got)
		}
		w.clean()
	}
}

// A deadline that has passed begins anew with a retry.
func TestRetry_AfterTheDeadlineHasItWhole(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, _ := unstable(t, restart, "    a = inc(n)\n    b = wait(\"go\")\n    return a + b")
		w.send(StreamStart, "", `{"workflow":"w","run":"r","deadline":"1h"}`)
		w.perform()
		w.advance(time.Hour)
		if got := w.outcome("r"); !strings.HasPrefix(got, "error DeadlineError") {
			t.Fatal(got)
		}
		w.advance(time.Hour)
		w.operate(StreamRetry, `{"run":"r"}`)
		w.advance(time.Hour - time.Second)
		if got := w.outcome("r"); got != "running" {
			t.Fatal(got)
		}
		w.advance(time.Second)
		if got := w.outcome("r"); !strings.HasPrefix(got, "error DeadlineError") {
			t.Fatal(got)
		}
		w.operate(StreamRetry, `{"run":"r"}`)
		w.operate(StreamSignal, `{"run":"r","signal":"go","value":3}`)
		if got := w.outcome("r"); got != "5" {
			t.Error(got)
		}
		w.clean()
	})
}
