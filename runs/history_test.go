package runs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
)

// history returns the steps of a run as text.
func (w *world) history(id string) string {
	w.Helper()
	h, err := ReadHistory(id, func(doc string) (model.Value, error) { return w.s.Value(doc), nil })
	if err != nil {
		w.Fatal(err)
	}
	lines := []string{fmt.Sprintf("gone %d", h.Gone())}
	for _, e := range h.Events {
		text := fmt.Sprintf("%d %s", e.Step, e.Kind)
		if e.Work != "" {
			text += fmt.Sprintf(" %s#%d at %s, line %d", e.Action, e.Attempt, e.Work, e.Line)
		}
		if e.Signal != "" {
			text += " " + e.Signal
		}
		if e.Value != nil {
			text += " " + string(e.Value)
		}
		if e.Error != nil {
			text += " " + e.Error.Error()
		}
		text += e.Why
		if e.Steps > 0 {
			text += fmt.Sprintf(" from %d", e.Steps)
		}
		if e.Started > 0 {
			text += fmt.Sprintf(" starts %d", e.Started)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// What a run has done is known after its end, and after a restart: each step, with what it starts.
func TestHistory_HasEveryStep(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    for i in range(2):\n        xs = parallel(inc(i), helper(i))\n    b = retry(shaky(n), attempts = 2, backoff = \"1m\")\n    c = wait(\"go\")\n    ys = parallel([inc(x) for x in [c, c]])\n    sleep(\"1h\")\n    return ys\ndef helper(n):\n    x = inc(10 * n)\n    return x")
		s.failures = 1
		w.start("r", "{}")
		w.perform()
		w.advance(time.Minute)
		w.operate(StreamSignal, `{"run":"r","signal":"go","value":7}`)
		w.operate(StreamCancel, `{"run":"r","why":"enough"}`)
		w.begin()
		want := `gone 0
1 start starts 2
2 done inc#1 at 2[0]/0, line 4 1
3 done inc#1 at 2[0]/1.0/0, line 11 1 starts 2
4 done inc#1 at 2[1]/0, line 4 2
5 done inc#1 at 2[1]/1.0/0, line 11 11 starts 1
6 failed shaky#1 at 3/0, line 5 Offline: no route
7 timer starts 1
8 done shaky#2 at 3/0, line 5 1
9 signal go 7 starts 2
10 done inc#1 at 6/0, line 7 8
11 done inc#1 at 6/1, line 7 8
`
		if got := w.history("r"); got != want+"12 cancelenough" {
			t.Error(got)
		}
		w.operate(StreamRetry, `{"run":"r"}`)
		w.advance(time.Hour)
		want += "12 retry from 12\n13 timer"
		if got := w.history("r"); got != want || w.outcome("r") != "[8,8]" {
			t.Error(got, w.outcome("r"))
		}
		w.operate(StreamReset, `{"run":"r","step":12}`)
		if got := w.history("r"); got != want[:len(want)-len("13 timer")]+"13 reset from 13\n14 timer" {
			t.Error(got)
		}
		w.clean()
	})
}

func TestHistory_IsBounded(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    for i in range(200):\n        t = shaky(\"x\" * 5000)\n    return 1")
	w.start("r", "{}")
	w.perform()
	h, err := ReadHistory("r", func(doc string) (model.Value, error) { return w.s.Value(doc), nil })
	if err != nil || h.Gone() == 0 || h.Gone() > 170 || len(h.Events) != 201-h.Gone() || h.Events[len(h.Events)-1].Step != 201 {
		t.Errorf("%v: %d steps are gone, %d are there", err, h.Gone(), len(h.Events))
	}
	if _, bytes := w.kept(); bytes > MaxSteps {
		t.Errorf("%d bytes", bytes)
	}
	w.clean()
	if _, err := ReadHistory("x", func(doc string) (model.Value, error) { return w.s.Value(doc), nil }); !errors.Is(err, ErrNoRun) {
		t.Error(err)
	}
}

// A run whose state is too large for a snapshot has all its steps while it goes on, and the last ones after its end.
func TestHistory_OfARunWithoutSnapshotsIsBounded(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    for i in range(12):\n        t = shaky(\"x\" * 100000)\n    fail(\"enough\")")
	w.start("r", "{}")
	w.perform()
	if _, bytes := w.kept(); bytes > MaxSteps || bytes < MaxSteps-150_000 {
		t.Errorf("%d bytes", bytes)
	}
	if h := w.history("r"); !strings.HasPrefix(h, "gone 8\n9 done") {
		t.Errorf("%.100s", h)
	}
	w.refused(NotKept, "record 0 is not kept", StreamRetry, `{"run":"r"}`)
	w.clean()
}

// A step whose record and snapshot do not fit into one transaction is not kept in the history, and the run goes on.
func TestHistory_OfALargeRecordBeforeASnapshot(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		// Each quotation mark has two bytes in a value, and four in a record.
		src := "load(\"actions\", \"text\")\ndef run():\n    a = text(48500)\n    b = text(65000)\n    b = len(b)\n    c = text(1)\n    d = text(1)\n    return [len(a), b, c + d]\nworkflow(\"w\", run)\n"
		w := newWorld(t, src, inStarlark(t, "def text(n): return '\"' * n"), simkit.Options{})
		w.restart = restart
		w.start("r", "{}")
		w.perform()
		if got := w.outcome("r"); got != `[48500,65000,"\"\""]` {
			t.Error(got)
		}
		if h := w.history("r"); !strings.HasPrefix(h, "gone 3\n4 done") {
			t.Errorf("%.100s", h)
		}
		w.log = nil
		w.refused(NotKept, "record 0 is not kept", StreamReset, `{"run":"r","step":2}`)
		w.operate(StreamReset, `{"run":"r","step":3}`)
		if got := w.outcome("r"); got != `[48500,65000,"\"\""]` || len(w.log) != 2 {
			t.Error(got, w.log)
		}
		w.clean()
	})
}

// The steps of many ended runs are bounded: those of the ones that ended first go, and their outcomes stay.
func TestHistory_OfManyRunsIsBounded(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    for i in range(2):\n        t = shaky(\"x\" * 60000)\n    return n")
	const runs = 36
	for i := range runs {
		w.start(fmt.Sprintf("r%02d", i), "{}")
		w.perform()
		w.advance(time.Second)
	}
	if _, bytes := w.kept(); bytes > maxSpaceSteps || bytes < maxSpaceSteps/2 {
		t.Errorf("%d bytes", bytes)
	}
	if first, last := w.history("r00"), w.history(fmt.Sprintf("r%02d", runs-1)); first != "gone 3" || !strings.HasPrefix(last, "gone 0\n1 start") {
		t.Errorf("%.200s\n%.200s", first, last)
	}
	if w.outcome("r00") != "1" {
		t.Error(w.outcome("r00"))
	}
	w.refused(NotKept, "the steps of run r00 are not kept any more", StreamReset, `{"run":"r00","step":1}`)
	w.clean()
}

// timeline returns the attempts of a run as text.
func (w *world) timeline(id string) string {
	w.Helper()
	t, err := ReadTimeline(id, func(doc string) (model.Value, error) { return w.s.Value(doc), nil })
	if err != nil {
		w.Fatal(err)
	}
	lines := []string{fmt.Sprintf("from %d", t.From)}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		text := fmt.Sprintf("%s%s%s#%d line %d: steps %d to %d, %s", a.Action, a.Child, a.Args, a.Number, a.Line, a.Step, a.EndedStep, a.State)
		if a.Result != nil {
			text += " " + string(a.Result)
		}
		if a.Error != nil {
			text += " " + a.Error.Error()
		}
		if took := a.Ended - a.Started; took > 0 && a.Ended > 0 {
			text += fmt.Sprintf(" after %d ms", took)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// The timeline has each attempt with its arguments, its result or error, and the steps that have started and ended it.
func TestTimeline_HasEveryAttempt(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    xs = parallel(inc(n), inc(2))\n    b = retry(shaky(n), attempts = 2, backoff = \"1m\")\n    c = wait(\"go\")\n    ys = parallel([inc(x) for x in [c, c]])\n    return ys")
		s.failures = 1
		w.start("r", `{"n": 1}`)
		w.perform()
		w.advance(time.Minute)
		w.operate(StreamSignal, `{"run":"r","signal":"go","value":7}`)
		want := `from 0
inc[1]#1 line 3: steps 1 to 2, done 2
inc[2]#1 line 3: steps 1 to 3, done 3
shaky[1]#1 line 4: steps 3 to 4, failed Offline: no route
shaky[1]#2 line 4: steps 5 to 6, done 1
`
		if got := w.timeline("r"); got != want+"inc[7]#1 line 6: steps 7 to 8, done 8\ninc[7]#1 line 6: steps 7 to 9, done 8" {
			t.Error(got)
		}
		w.start("s", `{"n": 5}`)
		if got := w.timeline("s"); got != "from 0\ninc[5]#1 line 3: steps 1 to 0, running\ninc[2]#1 line 3: steps 1 to 0, running" {
			t.Error(got)
		}
		w.operate(StreamCancel, `{"run":"s","why":"enough"}`)
		if got := w.timeline("s"); got != "from 0\ninc[5]#1 line 3: steps 1 to 2, cancelled\ninc[2]#1 line 3: steps 1 to 2, cancelled" {
			t.Error(got)
		}
		w.operate(StreamRetry, `{"run":"s"}`)
		w.perform()
		if got := w.timeline("s"); strings.Count(got, "done") < 2 {
			t.Error(got)
		}
	})
}

// Of steps that are not kept, no attempts are known, and that is reported.
func TestTimeline_BeginsWhereStepsAreKept(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    return inc(n)")
	w.start("r", `{"n": 1}`)
	w.perform()
	if got := w.timeline("r"); got != "from 0\ninc[1]#1 line 3: steps 1 to 2, done 2" {
		t.Error(got)
	}
	doc := w.s.Value(Doc("r"))
	read := func(name string) (model.Value, error) {
		if name == Doc("r") {
			return model.Object(model.F("workflow", doc.Get("workflow")), model.F("version", doc.Get("version")), model.F("state", doc.Get("state")), model.F("head", doc.Get("head"))), nil
		}
		return w.s.Value(name), nil
	}
	tl, err := ReadTimeline("r", read)
	if err != nil || len(tl.Attempts) != 0 {
		t.Error(tl, err)
	}
}
