package runs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// shaky is an action that fails as often as it is said, and else returns its argument.
type shaky struct{ failures int }

func (s *shaky) deed() starlark.Callable {
	return starlark.NewBuiltin("shaky", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if s.failures > 0 {
			s.failures--
			return nil, &workflow.Failure{Name: "Offline", Message: "no route"}
		}
		return args[0], nil
	})
}

// restarts runs a test without restarts, and with one before each end of an action and each operation.
func restarts(t *testing.T, test func(t *testing.T, restart bool)) {
	t.Helper()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			t.Parallel()
			test(t, restart)
		})
	}
}

func unstable(t *testing.T, restart bool, body string) (*world, *shaky) {
	t.Helper()
	d, s := inStarlark(t, fewActions), &shaky{}
	d["shaky"] = s.deed()
	w := newWorld(t, "load(\"actions\", \"inc\", \"shaky\")\ndef run(n = 1):\n"+body+"\nworkflow(\"w\", run)\n", d, simkit.Options{})
	w.restart = restart
	return w, s
}

// operate sends an operation on a run, after a restart if the world has them, and performs what follows.
func (w *world) operate(stream, payload string) model.Value {
	w.Helper()
	if w.restart {
		w.begin()
	}
	v := w.send(stream, "", payload)
	w.perform()
	return v
}

// refused checks that an operation is refused: as a result if that is requested, or else as a failed event.
func (w *world) refused(why Reason, words, stream, payload string) {
	w.Helper()
	if rc := w.sent(stream, "", payload); rc.Outcome != model.Failed || !strings.Contains(rc.Error, words) {
		w.Errorf("%s %s: %s %s; want it to fail: %s", stream, payload, rc.Outcome, rc.Error, words)
	}
	rc := w.sent(stream, "", strings.TrimSuffix(payload, "}")+`,"answer":true}`)
	got, _ := rc.Result.Get("refused").AsString()
	message, _ := rc.Result.Get("message").AsString()
	if rc.Outcome != model.Handled || got != string(why) || !strings.Contains(message, words) {
		w.Errorf("%s %s: %s %s; want %s: %s", stream, payload, rc.Outcome, rc.Result, why, words)
	}
}

func TestRetry_TriesTheFailedStepWithFreshAttemptsAndKeepsResults(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    a = inc(n)\n    b = retry(shaky(a), attempts = 2)\n    c = inc(b)\n    return [a, b, c]")
		s.failures = 4
		w.start("r", "{}")
		w.perform()
		if got := w.outcome("r"); got != "error Offline: no route" || len(w.log) != 3 {
			t.Fatal(got, w.log)
		}
		w.operate(StreamRetry, `{"run":"r"}`)
		if got := w.outcome("r"); got != "error Offline: no route" || len(w.log) != 5 {
			t.Fatalf("the second try has two attempts: %s after %v", got, w.log)
		}
		s.failures = 1
		w.send(StreamRetry, "", `{"run":"r"}`)
		_, task, _ := w.task()
		if attempt, _ := task.In.Get("attempt").AsInt(); task.Key != "s/r/1/0" || attempt != 5 {
			t.Errorf("the key is %s, the attempt %d", task.Key, attempt)
		}
		w.refused(NotEnded, "run r is running", StreamRetry, `{"run":"r"}`)
		w.perform()
		if got := w.outcome("r"); got != "[2,2,3]" || count(w.log, "inc(1)") != 1 {
			t.Error(got, w.log)
		}
		w.refused(NotEnded, "run r is done", StreamRetry, `{"run":"r"}`)
		w.refused(NoRun, `no run "x"`, StreamRetry, `{"run":"x"}`)
		w.clean()
	})
}

func count(log []string, line string) (n int) {
	for _, l := range log {
		if l == line {
			n++
		}
	}
	return n
}

// The calls that the failure of another one had cancelled are repeated, under the same keys; those that had
// ended are not.
func TestRetry_OfAFanOutMakesTheCancelledCallsAgain(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    return parallel(inc(1), shaky(7), inc(3), slow(5))\ndef slow(n):\n    wait(\"go\", timeout = \"1h\")\n    return n")
		s.failures = 1
		w.start("r", "{}")
		action, task, _ := w.task() // inc(1)
		w.end(action, task)
		w.end("shaky", w.taskOf("shaky"))
		if got := w.outcome("r"); got != "error Offline: no route" {
			t.Fatal(got)
		}
		if _, task, is := w.task(); is {
			t.Errorf("%s is pending", task.Key)
		}
		w.operate(StreamRetry, `{"run":"r"}`)
		w.operate(StreamSignal, `{"run":"r","signal":"go"}`)
		if got := w.outcome("r"); got != "[2,7,4,5]" || count(w.log, "inc(1)") != 1 || count(w.log, "inc(3)") != 1 {
			t.Error(got, w.log)
		}
		w.clean()
	})
}

func (w *world) taskOf(action string) space.Task {
	w.Helper()
	for _, t := range w.s.Tasks(action) {
		return t
	}
	w.Fatalf("no task of %s", action)
	return space.Task{}
}

func TestRetry_OfACancelledRunGoesOn(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, _ := unstable(t, restart, "    a = inc(n)\n    sleep(\"1h\")\n    b = shaky(a)\n    return [a, b]")
		w.start("r", "{}")
		w.perform()
		w.send(StreamCancel, "", `{"run":"r"}`)
		w.operate(StreamRetry, `{"run":"r"}`)
		if got := w.outcome("r"); got != "running" {
			t.Fatal(got)
		}
		w.advance(time.Hour)
		if got := w.outcome("r"); got != "[2,2]" || len(w.log) != 2 {
			t.Error(got, w.log)
		}
		w.clean()
	})
}

// A wait that has timed out begins anew, with its whole timeout.
func TestRetry_OfATimeoutWaitsAnew(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, _ := unstable(t, restart, "    a = wait(\"go\", timeout = \"1h\")\n    return inc(a)")
		w.start("r", "{}")
		w.advance(time.Hour)
		if got := w.outcome("r"); got != "error TimeoutError: signal go has not come in time" {
			t.Fatal(got)
		}
		w.advance(time.Hour)
		w.operate(StreamRetry, `{"run":"r"}`)
		w.advance(time.Hour - time.Second)
		if got := w.outcome("r"); got != "running" {
			t.Fatal(got)
		}
		w.operate(StreamSignal, `{"run":"r","signal":"go","value":4}`)
		if got := w.outcome("r"); got != "5" {
			t.Error(got)
		}
		if next, set := w.Next(); set {
			t.Errorf("a timer is set for %v", next)
		}
		w.clean()
	})
}

// A failure of the code of a workflow is tried again with the result before it.
func TestRetry_OfAFailureOfCodePerformsTheActionBeforeIt(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    a = inc(n)\n    if a < 10:\n        fail(error(\"Small\", \"too small\"))\n    return a")
	w.start("r", "{}")
	w.perform()
	w.operate(StreamRetry, `{"run":"r"}`)
	if got := w.outcome("r"); got != "error Small: too small" || count(w.log, "inc(1)") != 2 {
		t.Error(got, w.log)
	}
	w.clean()
}

// A signal with which the code has failed is waited for again.
func TestRetry_OfAFailureAfterASignalWaitsForItAgain(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, _ := unstable(t, restart, "    a = wait(\"go\")\n    return 10 // a")
		w.start("r", "{}")
		w.operate(StreamSignal, `{"run":"r","signal":"go","value":0}`)
		w.operate(StreamRetry, `{"run":"r"}`)
		if got := w.outcome("r"); got != "running" {
			t.Fatal(got)
		}
		w.operate(StreamSignal, `{"run":"r","signal":"go","value":5}`)
		if got := w.outcome("r"); got != "2" {
			t.Error(got)
		}
		w.clean()
	})
}

func TestReset_DropsTheStepsAfterIt(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    a = inc(n)\n    b = inc(a)\n    c = shaky(b)\n    d = inc(c)\n    return [a, b, c, d]")
		w.start("r", "{}")
		w.perform()
		if got := w.outcome("r"); got != "[2,3,3,4]" {
			t.Fatal(got)
		}
		for _, step := range []string{"0", "5", "-1", `"2"`, "null", "1.5"} {
			w.refused(Invalid, "run r has steps from 1 to 4", StreamReset, `{"run":"r","step":`+step+`}`)
		}
		s.failures = 1
		w.log = nil
		if got := w.send(StreamReset, "", `{"run":"r","step":2}`); got.String() != `{"run":"r","steps":2}` {
			t.Error(got)
		}
		if _, task, _ := w.task(); task.Key != "s/r/g1/1/0" {
			t.Errorf("what is performed after a reset has the key %s", task.Key)
		}
		w.perform()
		if got := w.outcome("r"); got != "error Offline: no route" || !slices.Equal(w.log, []string{"inc(2)", "shaky(3)"}) {
			t.Fatal(got, w.log)
		}
		w.operate(StreamRetry, `{"run":"r"}`)
		if got := w.outcome("r"); got != "[2,3,3,4]" {
			t.Fatal(got)
		}
		w.log = nil
		w.operate(StreamReset, `{"run":"r","step":1}`)
		if got := w.outcome("r"); got != "[2,3,3,4]" || len(w.log) != 4 {
			t.Error(got, w.log)
		}
		w.clean()
	})
}

// What a run in flight waits for is cancelled, and what its performer reports later does not count.
func TestReset_OfARunInFlight(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, _ := unstable(t, restart, "    a = inc(n)\n    b = parallel(shaky(a), inc(a), late(a))\n    return [a, b]\ndef late(n):\n    sleep(\"1h\")\n    return n")
		w.start("r", "{}")
		action, task, _ := w.task()
		w.end(action, task)
		_, stale, _ := w.task()
		w.send(StreamReset, "", `{"run":"r","step":2}`)
		if n := len(w.s.Tasks("inc")); n != 1 {
			t.Errorf("%d tasks of inc", n)
		}
		w.end("inc", stale)
		if w.send(StreamReset, "", `{"run":"r","step":1}`); len(w.log) != 2 {
			t.Error(w.log)
		}
		if _, task, _ := w.task(); task.Key != "s/r/g2/0/0" {
			t.Error(task.Key)
		}
		w.perform()
		w.advance(time.Hour)
		if got := w.outcome("r"); got != "[2,[2,3,2]]" {
			t.Error(got)
		}
		if next, set := w.Next(); set {
			t.Errorf("a timer is set for %v", next)
		}
		w.clean()
	})
}

// A reset before the last snapshot makes the run again from its first step, and after it from the snapshot.
func TestReset_BeforeAndAfterASnapshot(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    texts = []\n    for i in range(30):\n        t = shaky(\"x\" * 5000)\n        texts.append(len(t))\n    return sum(texts)")
		w.start("r", "{}")
		w.perform()
		for _, c := range []struct{ step, actions int }{{25, 6}, {10, 21}, {29, 3}, {1, 30}} { // the second reset is itself step 11
			w.log, s.failures = nil, 0
			w.operate(StreamReset, fmt.Sprintf(`{"run":"r","step":%d}`, c.step))
			if got := w.outcome("r"); got != "150000" || len(w.log) != c.actions {
				t.Errorf("step %d: %s after %d actions", c.step, got, len(w.log))
			}
		}
		w.clean()
	})
}

// The generation of keys is part of a snapshot: of what is pending, and of what is performed later.
func TestReset_KeysAreThoseOfTheResetAfterASnapshot(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, true, "    x = inc(n)\n    r = parallel(held(1), loop(30))\n    return inc(0)\ndef held(n):\n    x = inc(n)\n    return x\ndef loop(n):\n    for i in range(n):\n        t = shaky(\"x\" * 5000)\n    return n")
	w.start("r", "{}")
	action, task, _ := w.task()
	w.end(action, task)
	w.send(StreamReset, "", `{"run":"r","step":2}`)
	for range 20 {
		w.begin()
		task := w.taskOf("shaky")
		if !strings.HasPrefix(task.Key, "s/r/g1/") {
			t.Fatal(task.Key)
		}
		w.end("shaky", task)
	}
	if w.s.Value(snapshotDoc("r")).IsAbsent() {
		t.Fatal("there is no snapshot")
	}
	w.begin()
	w.send(StreamCancel, "", `{"run":"r"}`)
	if action, task, is := w.task(); is {
		t.Errorf("%s of %s is pending", task.Key, action)
	}
	w.operate(StreamRetry, `{"run":"r"}`)
	if got := w.outcome("r"); got != "1" {
		t.Error(got)
	}
	w.clean()
}

// A run that a version without histories has begun has no pages before its snapshot. It goes on, and can be reset to
// steps behind it.
func TestReset_OfARunThatAnEarlierVersionHasBegun(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    for i in range(30):\n        t = shaky(\"x\" * 5000)\n    return n")
		w.start("r", "{}")
		for w.s.Value(snapshotDoc("r")).IsAbsent() {
			w.end("shaky", w.taskOf("shaky"))
		}
		if err := w.s.Write(func(tx *space.Tx) error {
			for page := range 100 { // all are before the snapshot, which the last step has made
				if !tx.Peek(pageDoc("r", page)).IsAbsent() {
					tx.Delete(pageDoc("r", page))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.begin()
		h := w.history("r")
		w.perform()
		s.failures = 0
		if got := w.outcome("r"); got != "1" || !strings.HasPrefix(w.history("r"), h) || strings.HasPrefix(h, "gone 0") {
			t.Errorf("%s, %.100s", got, w.history("r"))
		}
		w.refused(NotKept, "record 0 is not kept", StreamReset, `{"run":"r","step":1}`)
		w.log = nil
		w.operate(StreamReset, `{"run":"r","step":29}`)
		if got := w.outcome("r"); got != "1" || len(w.log) != 2 {
			t.Error(got, len(w.log))
		}
		w.clean()
	})
}

// An earlier version has stored larger pages. Its runs go on, in pages of the present size, and a reset leaves nothing of what it drops.
func TestReset_OfARunWithTheLargerPagesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    for i in range(12):\n        t = shaky(\"x\" * 3000)\n    return n")
		w.start("r", "{}")
		for range 8 {
			w.end("shaky", w.taskOf("shaky"))
		}
		if err := w.s.Write(func(tx *space.Tx) error {
			for page := 1; page < 100; page++ {
				for key, text := range tx.Peek(pageDoc("r", page)).All() {
					tx.Set(pageDoc("r", 0), text, key)
				}
				if !tx.Peek(pageDoc("r", page)).IsAbsent() {
					tx.Delete(pageDoc("r", page))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.begin()
		w.perform()
		s.failures = 0
		if got := w.outcome("r"); got != "1" || w.s.Value(pageDoc("r", 0)).Len() < 9 {
			t.Errorf("%s, with %d records on the first page", got, w.s.Value(pageDoc("r", 0)).Len())
		}
		if h := w.history("r"); !strings.HasPrefix(h, "gone 0") {
			t.Errorf("%.100s", h)
		}
		w.operate(StreamReset, `{"run":"r","step":5}`)
		if got := w.outcome("r"); got != "1" {
			t.Error(got)
		}
		w.clean()
	})
}

// What a reset drops is gone: records, and a snapshot of them.
func TestReset_LeavesNothingOfWhatItDrops(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    for i in range(30):\n        t = shaky(\"x\" * 5000)\n    return n")
	w.start("r", "{}")
	for range 25 {
		w.end("shaky", w.taskOf("shaky"))
	}
	if w.s.Value(snapshotDoc("r")).IsAbsent() {
		t.Fatal("there is no snapshot")
	}
	w.send(StreamReset, "", `{"run":"r","step":5}`)
	if v := w.s.Value(snapshotDoc("r")); !v.IsAbsent() {
		t.Error("a snapshot of later steps is left")
	}
	w.operate(StreamCancel, `{"run":"r","why":"enough"}`)
	if got := w.history("r"); strings.Count(got, "\n") != 7 || !strings.HasSuffix(got, "\n6 reset from 26 starts 1\n7 cancelenough") {
		t.Errorf("%.300s", got)
	}
	w.clean()
}

// What is started again takes the place of what was pending, and does not count twice.
func TestReset_CountsWhatIsPendingOnce(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    return parallel(inc(0), shaky(\"x\" * 70000))")
	w.start("r", "{}")
	for range 2 {
		w.send(StreamReset, "", `{"run":"r","step":1}`)
		if inc, shaky := len(w.s.Tasks("inc")), len(w.s.Tasks("shaky")); inc != 1 || shaky != 1 {
			t.Errorf("%d and %d tasks", inc, shaky)
		}
		if n, _ := w.s.Value(load).Get("bytes").Get("shaky").AsInt(); n < 70_000 || n > 71_000 {
			t.Errorf("the tasks of shaky need %d bytes", n)
		}
	}
	w.perform()
	w.clean()
}

func TestReset_OfARunWhoseFirstStepsAreGone(t *testing.T) {
	t.Parallel()
	w, s := unstable(t, false, "    texts = []\n    for i in range(200):\n        t = shaky(\"x\" * 5000)\n        texts.append(len(t))\n    return sum(texts)")
	w.start("r", "{}")
	w.perform()
	w.refused(NotKept, "record 0 is not kept", StreamReset, `{"run":"r","step":3}`)
	w.log, s.failures = nil, 1
	w.operate(StreamReset, `{"run":"r","step":199}`)
	w.operate(StreamRetry, `{"run":"r"}`)
	if got := w.outcome("r"); got != "1000000" || len(w.log) != 3 {
		t.Errorf("%s after %d", got, len(w.log))
	}
	w.clean()
}

const versions = "load(\"actions\", \"inc\", \"shaky\")\ndef run(n = 1):\n    a = inc(n%s)\n    b = shaky(a)\n    return [a, b%s]\nworkflow(\"w\", run)\n"

// A run goes on in its own version, or in the latest one if what it has done would have been the same there.
func TestRetry_WithTheLatestVersion(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		s := &shaky{failures: 4}
		d := inStarlark(t, fewActions)
		d["shaky"] = s.deed()
		w := newWorld(t, fmt.Sprintf(versions, "", ""), d, simkit.Options{})
		w.restart = restart
		for _, id := range []string{"r", "q", "o", "p"} {
			w.start(id, "{}")
			w.perform()
		}
		w.deploy(fmt.Sprintf(versions, "", ", 3"))
		w.operate(StreamRetry, `{"run":"r"}`)
		w.operate(StreamRetry, `{"run":"q","latest":true}`)
		w.operate(StreamReset, `{"run":"o","step":1,"latest":true}`)
		if got := w.outcome("r") + w.outcome("q") + w.outcome("o"); got != "[2,2][2,2,3][2,2,3]" {
			t.Error(got)
		}
		w.deploy(fmt.Sprintf(versions, " + 1", ""))
		w.refused(Misfit, "step 1 of run p would not be the same", StreamRetry, `{"run":"p","latest":true}`)
		w.deploy(strings.ReplaceAll(fmt.Sprintf(versions, "", ""), `"w"`, `"other"`))
		w.refused(NoWorkflow, "this program has no workflow \"w\"", StreamRetry, `{"run":"p","latest":true}`)
		w.operate(StreamRetry, `{"run":"p"}`)
		if got := w.outcome("p"); got != "[2,2]" {
			t.Error(got)
		}
		w.clean()
	})
}

// Timers and waits have to be the same, too.
func TestReset_WithTheLatestVersionAndAnotherTimer(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`    sleep("1h")`, `    sleep("2h")`},
		{`    x = wait("go")`, `    x = wait("stop")`},
		{`    x = attempt(wait("go", timeout = "1h"))`, `    x = attempt(wait("go", timeout = "2h"))`},
	} {
		src := "def run(n = 1):\n%s\n    return n\nworkflow(\"w\", run)\n"
		w := newWorld(t, fmt.Sprintf(src, c[0]), deeds{}, simkit.Options{})
		w.start("r", "{}")
		w.deploy(fmt.Sprintf(src, c[1]))
		w.refused(Misfit, "step 1 of run r would not be the same", StreamReset, `{"run":"r","step":1,"latest":true}`)
		w.deploy(fmt.Sprintf(strings.Replace(src, "return n", "return 7", 1), c[0]))
		w.operate(StreamReset, `{"run":"r","step":1,"latest":true}`)
		w.send(StreamSignal, "", `{"run":"r","signal":"go"}`)
		w.advance(time.Hour)
		if got := w.outcome("r"); got != "7" {
			t.Errorf("%s: %s", c[0], got)
		}
		w.clean()
	}
}

// Of a run that failed before its first action, only another version may do better.
func TestRetry_OfTheFirstStepWithTheLatestVersion(t *testing.T) {
	t.Parallel()
	src := "load(\"actions\", \"inc\")\ndef run(n = 1):\n    return inc(n // %d)\nworkflow(\"w\", run)\n"
	w := newWorld(t, fmt.Sprintf(src, 0), inStarlark(t, fewActions), simkit.Options{})
	w.start("r", "{}")
	w.deploy(fmt.Sprintf(src, 1))
	w.refused(Invalid, "failed before its first action", StreamRetry, `{"run":"r"}`)
	w.operate(StreamRetry, `{"run":"r","latest":true}`)
	if got := w.outcome("r"); got != "2" {
		t.Error(got)
	}
	w.clean()
}

// Each operation is refused in the same shape, and leaves nothing.
func TestRefusal_OfEachOperation(t *testing.T) {
	t.Parallel()
	w := small(t, "    return inc(n)")
	w.start("r", `{"n":1}`)
	w.perform()
	before := w.s.Value(Index).String() + w.s.Value(Doc("r")).String()
	long := `"` + strings.Repeat("x", MaxValue) + `"`
	for _, c := range []struct {
		why                    Reason
		words, stream, payload string
	}{
		{NoWorkflow, `no workflow "x"; it has w`, StreamStart, `{"workflow":"x","run":"q"}`},
		{NoWorkflow, `no workflow ""`, StreamStart, `{"run":"q"}`},
		{Exists, "run r exists, with workflow w", StreamStart, `{"workflow":"w","run":"r"}`},
		{Invalid, `workflow w has no argument "m"; it has n`, StreamStart, `{"workflow":"w","run":"q","args":{"m":1}}`},
		{Invalid, `the payload has a field "bogus"; the start of a run has answer, args,`, StreamStart, `{"workflow":"w","run":"q","bogus":1}`},
		{Invalid, "must be an object by name", StreamStart, `{"workflow":"w","run":"q","args":[]}`},
		{Invalid, `run "a b"`, StreamStart, `{"workflow":"w","run":"a b"}`},
		{Invalid, "the arguments have 131", StreamStart, `{"workflow":"w","run":"q","args":{"n":` + long + `}}`},
		{NoRun, `space s has no run "q"`, StreamSignal, `{"run":"q","signal":"go"}`},
		{NoRun, `space s has no run ""`, StreamSignal, `{"run":7,"signal":"go"}`},
		{NoRun, `no run`, StreamSignal, `{"run":` + long + `}`},
		{Ended, "run r has ended: it is done", StreamSignal, `{"run":"r","signal":"go"}`},
		{NoRun, `space s has no run "q"`, StreamCancel, `{"run":"q"}`},
		{Ended, "run r has ended: it is done", StreamCancel, `{"run":"r"}`},
	} {
		w.refused(c.why, c.words, c.stream, c.payload)
	}
	if after := w.s.Value(Index).String() + w.s.Value(Doc("r")).String(); after != before {
		t.Errorf("%s\nis now %s", before, after)
	}
	w.send(StreamStart, "", `{"workflow":"w","run":"q","answer":true}`)
	w.refused(Invalid, "the payload names no signal", StreamSignal, `{"run":"q"}`)
	w.refused(Invalid, "the signal has 131", StreamSignal, `{"run":"q","signal":"go","value":`+long+`}`)
	w.refused(Invalid, "the reason has 501 bytes", StreamCancel, `{"run":"q","why":"`+strings.Repeat("x", 501)+`"}`)
	w.perform()
	w.clean()
}

func TestRefusal_OfAStartInAFullSpace(t *testing.T) {
	t.Parallel()
	w := small(t, "    return inc(n)")
	if err := w.s.Write(func(tx *space.Tx) error {
		for i := range maxRuns {
			tx.Set(Index, model.Object(model.F("state", string(Running))), fmt.Sprintf("r%d", i))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.refused(Full, "space s has 2000 runs; more are not possible", StreamStart, `{"workflow":"w","run":"r"}`)
	w.clean()
}

func TestRefusal_IsTheErrorOfItsReason(t *testing.T) {
	t.Parallel()
	for why, want := range errorOf {
		if err := refuse(why, "it is so"); !errors.Is(err, want) || err.Error() != "it is so" {
			t.Error(why, err)
		}
	}
	if err := (&Refusal{Reason: "later"}); errors.Is(err, ErrNoRun) {
		t.Error("a reason that is not known is another one")
	}
}
