package runs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

func asText(err error) error {
	var f *workflow.Failure
	if !errors.As(err, &f) {
		return err
	}
	e := ActionError{Type: f.Name, Message: f.Message}
	if f.Detail != nil {
		if e.Detail, err = workflow.ToJSON(f.Detail); err != nil {
			return err
		}
	}
	return errors.New(e.Text())
}

const pipeline = `
load("actions", "aggregate_chunk", "fetch_items", "finalize", "process_item", "validate_chunk")

def run(fan_out = 8, loop_iters = 4):
    items = fetch_items(count = fan_out)
    processed = parallel([process_item(item = it) for it in items])
    chunk_size = len(processed) // loop_iters
    results = []
    for chunk_id in range(loop_iters):
        chunk = processed[chunk_id * chunk_size:(chunk_id + 1) * chunk_size]
        is_valid = validate_chunk(chunk_id = chunk_id, items = chunk)
        chunk_result = aggregate_chunk(chunk_id = chunk_id, items = chunk, is_valid = is_valid)
        results.append(chunk_result)
    return finalize(results = results)

workflow("w", run)
`

const pipelineActions = `
def fetch_items(count): return [{"id": i, "value": "item_%d" % i} for i in range(count)]
def process_item(item): return {"id": item["id"], "hash": "hash_%d" % item["id"], "score": item["id"] * 10}
def validate_chunk(chunk_id, items): return all([item["score"] > 0 for item in items])
def aggregate_chunk(chunk_id, items, is_valid): return {"chunk_id": chunk_id, "total": sum([i["score"] for i in items]) if is_valid else 0}
def finalize(results): return sum([r["total"] for r in results])
`

// The values of the original, in a space, with and without a restart before each end of an action.
func TestPipeline_HasTheValuesOfTheOriginal(t *testing.T) {
	for _, c := range []struct {
		fan, iters, want, actions int
	}{{8, 4, 270, 18}, {16, 8, 1190, 34}, {0, 4, 0, 10}, {3, 8, 0, 21}, {9, 4, 270, 19}} {
		for _, restart := range []bool{false, true} {
			w := newWorld(t, pipeline, inStarlark(t, pipelineActions), simkit.Options{})
			w.restart = restart
			w.start("r", fmt.Sprintf(`{"fan_out":%d,"loop_iters":%d}`, c.fan, c.iters))
			w.perform()
			if got := w.outcome("r"); got != fmt.Sprint(c.want) || len(w.log) != c.actions {
				t.Errorf("(%d, %d), restart %v: %s after %d actions, want %d after %d", c.fan, c.iters, restart, got, len(w.log), c.want, c.actions)
			}
			w.clean()
		}
	}
	w := newWorld(t, pipeline, inStarlark(t, pipelineActions), simkit.Options{})
	w.start("r", `{"loop_iters":0}`)
	w.perform()
	if got := w.outcome("r"); !strings.HasPrefix(got, "error CodeError:") || !strings.Contains(got, "division by zero") {
		t.Errorf("a division by zero: %s", got)
	}
	w.clean()
}

const few = `
load("actions", "inc", "bad")
def run(n = 3):
%s
workflow("w", run)
`

const fewActions = `
def inc(x): return x + 1
def bad(x): return fail(error("BadError", "no %d" % x))
`

func small(t *testing.T, body string) *world {
	t.Helper()
	return newWorld(t, fmt.Sprintf(few, body), inStarlark(t, fewActions), simkit.Options{})
}

func TestStart_OfAnIDIsOneRun(t *testing.T) {
	w := small(t, "    return inc(n)")
	if got := w.send(StreamStart, "e1", `{"workflow":"w","run":"r","args":{"n":1}}`); got.String() != `{"run":"r","started":true}` {
		t.Error(got)
	}
	if got := w.send(StreamStart, "e2", `{"workflow":"w","run":"r","args":{"n":1}}`); got.String() != `{"run":"r","started":false,"state":"running"}` {
		t.Error(got)
	}
	for payload, want := range map[string]string{
		`{"workflow":"w","run":"r","args":{"n":2}}`: "run r exists, with workflow w and arguments {\"n\":1}",
		`{"workflow":"x"}`:                          `no workflow "x"; it has w`,
		`{"workflow":"w","run":"a b"}`:              "run \"a b\":",
		`{"workflow":"w","args":[1]}`:               "must be an object by name",
	} {
		if rc := w.sent(StreamStart, "", payload); rc.Outcome != model.Failed || !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s %s, want %s", payload, rc.Outcome, rc.Error, want)
		}
	}
	w.perform()
	if got := w.outcome("r"); got != "2" || len(w.log) != 1 {
		t.Errorf("%s after %v", got, w.log)
	}
	w.send(StreamStart, "e3", `{"workflow":"w","run":"r","args":{"n":1}}`)
	if w.perform(); len(w.log) != 1 {
		t.Errorf("a run that has ended ran again: %v", w.log)
	}
	w.send(StreamStart, "order-17", `{"workflow":"w"}`)
	if w.perform(); w.outcome("order-17") != "4" {
		t.Errorf("a run with the ID of its event: %s", w.outcome("order-17"))
	}
	w.clean()
}

func TestSleep_SurvivesARestartAndCostsATimer(t *testing.T) {
	w := small(t, "    sleep(\"30m\")\n    x = inc(n)\n    sleep(2)\n    return x")
	w.start("r", "{}")
	w.advance(29 * time.Minute)
	if err := w.Restart(); err != nil {
		t.Fatal(err)
	}
	w.s, _ = w.Space("s")
	if len(w.log) != 0 {
		t.Error("too early")
	}
	w.advance(time.Minute)
	if len(w.log) != 1 || w.outcome("r") != "running" {
		t.Errorf("%v, %s", w.log, w.outcome("r"))
	}
	w.advance(2 * time.Second)
	if w.outcome("r") != "4" {
		t.Error(w.outcome("r"))
	}
	w.clean()
}

// A sleep of many years is longer than a timer of a space may be set ahead.
func TestSleep_OfManyYears(t *testing.T) {
	w := small(t, "    sleep(25 * 365 * 24 * 3600)\n    return 1")
	w.start("r", "{}")
	w.advance(24 * 365 * 24 * time.Hour)
	if w.outcome("r") != "running" {
		t.Error(w.outcome("r"))
	}
	w.advance(366 * 24 * time.Hour)
	if w.outcome("r") != "1" {
		t.Error(w.outcome("r"))
	}
	w.clean()
}

func TestSignal_IsKeptUntilTheRunWaitsForIt(t *testing.T) {
	w := small(t, "    a = wait(\"go\")\n    x = inc(a[\"n\"])\n    b = attempt(wait(\"more\", timeout = \"1h\"))\n    if b.failed(\"TimeoutError\"): return [x, \"late\"]\n    return [x, b.value]")
	for _, id := range []string{"r", "q"} {
		w.start(id, "{}")
	}
	w.send(StreamSignal, "", `{"run":"r","signal":"more","value":7}`)
	w.send(StreamSignal, "", `{"run":"r","signal":"go","value":{"n":1}}`)
	w.send(StreamSignal, "", `{"run":"q","signal":"go","value":{"n":2}}`)
	w.perform()
	if w.outcome("r") != "[2,7]" || w.outcome("q") != "running" {
		t.Error(w.outcome("r"), w.outcome("q"))
	}
	w.advance(time.Hour)
	if w.outcome("q") != `[3,"late"]` {
		t.Error(w.outcome("q"))
	}
	for payload, want := range map[string]string{
		`{"run":"z","signal":"go"}`: `no run "z"`,
		`{"run":"r","signal":"go"}`: "run r has ended: it is done",
		`{"signal":"go"}`:           `no run ""`,
	} {
		if rc := w.sent(StreamSignal, "", payload); rc.Outcome != model.Failed || !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s %s", payload, rc.Outcome, rc.Error)
		}
	}
	w.clean()
}

func TestCancel_RemovesTheTasksAndTheTimerOfARun(t *testing.T) {
	w := small(t, "    r = parallel(helper(n), inc(n), late(n))\n    return r\ndef helper(n):\n    sleep(\"1h\")\n    return n\ndef late(n):\n    return wait(\"x\")")
	w.start("r", "{}")
	_, task, _ := w.task()
	w.send(StreamCancel, "", `{"run":"r","why":"not needed"}`)
	if _, _, is := w.task(); is || w.outcome("r") != "error CancelledError: not needed" {
		t.Error(w.outcome("r"), w.s.Value("inc"))
	}
	if rc := w.sent(StreamCancel, "", `{"run":"r"}`); !strings.Contains(rc.Error, "run r has ended: it is cancelled") {
		t.Error(rc)
	}
	w.end("inc", task) // its performer has not noticed
	if _, set := w.Next(); set {
		t.Error("a timer is left")
	}
	w.clean()
}

func TestFailure_HasTypeAndMessage(t *testing.T) {
	w := small(t, "    r = attempt(bad(n))\n    if r.failed(\"BadError\"):\n        x = inc(1)\n        fail(error(\"Mine\", \"because of \" + r.error.message))\n    return 0")
	w.start("r", "{}")
	w.perform()
	if got := w.outcome("r"); got != "error Mine: because of no 3" {
		t.Error(got)
	}
	w.clean()
}

func TestRetry_MakesTheNextAttemptUnderTheSameKey(t *testing.T) {
	w := small(t, "    return retry(bad(n), attempts = 3, backoff = \"1m\")")
	w.start("r", "{}")
	_, first, _ := w.task()
	w.perform()
	w.advance(time.Minute)
	w.advance(time.Minute)
	if got := w.outcome("r"); got != "error BadError: no 3" || len(w.log) != 3 {
		t.Error(got, w.log)
	}
	if first.Key != "s/r/0/0" {
		t.Error(first.Key)
	}
	w.clean()
}

// All calls of a fan-out are pending at the same time, up to the bound of a run, in several runs at once.
func TestFanOut_TenThousandCallsArePendingAtATime(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(few, "    rs = parallel([inc(i) for i in range(n)])\n    return sum(rs)"), inStarlark(t, fewActions), simkit.Options{Lenient: true})
	w.start("r", fmt.Sprintf(`{"n":%d}`, defaultBounds.Tasks+500))
	w.start("q", `{"n":300}`)
	if err := w.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	if n := len(w.s.Tasks("inc")); n != defaultBounds.Tasks+300 {
		t.Errorf("%d tasks are pending", n)
	}
	w.performAll()
	n := defaultBounds.Tasks + 500
	if w.outcome("r") != fmt.Sprint(n*(n+1)/2) || w.outcome("q") != fmt.Sprint(300*301/2) {
		t.Error(w.outcome("r"), w.outcome("q"))
	}
	w.clean()
}

// A run that ends removes the tasks that it does not need any more, however many there are, and no other run's. Until they are removed,
// their ends have no effect.
func TestCancel_ThousandsOfPendingTasksAreRemoved(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(few, "    rs = parallel([inc(i) for i in range(n)])\n    return sum(rs)"), inStarlark(t, fewActions), simkit.Options{Lenient: true})
	w.start("r", `{"n":4500}`)
	w.start("q", `{"n":10}`)
	if err := w.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	before := w.s.Tasks("inc")
	w.send(StreamCancel, "", `{"run":"r","at_once":true}`)
	if err := w.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	for _, task := range w.s.Tasks("inc") {
		if run, _ := task.In.Get("run").AsString(); run != "q" {
			t.Fatalf("task %s is left", task.Key)
		}
	}
	if len(before) != 4510 || len(w.s.Tasks("inc")) != 10 {
		t.Errorf("%d tasks, then %d", len(before), len(w.s.Tasks("inc")))
	}
	w.performAll()
	if w.outcome("q") != "55" {
		t.Error(w.outcome("q"))
	}
	w.clean()
}

// Tasks whose arguments do not fit into the document of their action wait in their runs.
func TestLoad_TasksWaitForThoseOfOtherRuns(t *testing.T) {
	w := newWorld(t, "load(\"actions\", \"watched_size\")\ndef run(n):\n    text = \"x\" * n\n    return parallel([watched_size(text) for i in range(3)])\nworkflow(\"w\", run)\n", inStarlark(t, "def watched_size(x): return len(x)"), simkit.Options{})
	for _, id := range []string{"a", "b", "c", "d"} {
		w.start(id, `{"n":100000}`)
	}
	if n := w.s.Value("watched_size").Get("tasks").Len(); n != 2 || w.s.Value(load).Get("waiting").Len() != 3 {
		t.Errorf("%d tasks, %s", n, w.s.Value(load))
	}
	w.perform()
	for _, id := range []string{"a", "b", "c", "d"} {
		if w.outcome(id) != "[100000,100000,100000]" {
			t.Error(id, w.outcome(id))
		}
	}
	w.start("e", `{"n":200000}`)
	if got := w.outcome("e"); !strings.HasPrefix(got, "error LimitError: the arguments of watched_size have 200") {
		t.Error(got)
	}
	w.clean()
}

// What a run gives up when its time is over, or because of a signal, is room for the tasks of others.
func TestLoad_ATimerOrASignalThatEndsTasksGivesTheirRoomToOtherRuns(t *testing.T) {
	src := `load("actions", "watched_size")
def stop():
    wait("stop")
    fail("stopped")

def run(n):
    text = "x" * n
    return parallel(watched_size(text), stop())
workflow("w", run)
`
	for _, by := range []string{"deadline", "signal"} {
		w := newWorld(t, src, inStarlark(t, "def watched_size(x): return len(x)"), simkit.Options{})
		for _, id := range []string{"a", "b", "c", "d"} {
			deadline := `"1s"`
			if id > "b" || by == "signal" {
				deadline = "null"
			}
			w.send(StreamStart, "start-"+id, fmt.Sprintf(`{"workflow":"w","run":%q,"args":{"n":100000},"deadline":%s}`, id, deadline))
		}
		if waiting := w.s.Value(load).Get("waiting"); waiting.String() != `{"c":true,"d":true}` {
			t.Fatalf("%s wait", waiting)
		}
		if by == "signal" {
			w.send(StreamSignal, "", `{"run":"a","signal":"stop"}`)
			w.send(StreamSignal, "", `{"run":"b","signal":"stop"}`)
		} else if err := w.Advance(time.Second); err != nil {
			t.Fatal(err)
		}
		if n := w.s.Value("watched_size").Get("tasks").Len(); n != 2 || w.s.Value(load).Get("waiting").Len() > 0 || !strings.HasPrefix(w.outcome("b"), "error") {
			t.Errorf("%s: %d tasks are pending, %s; b: %s", by, n, w.s.Value(load), w.outcome("b"))
		}
	}
}

// The documents of a run are bounded by its state, and not by the number of its steps.
func TestLoop_KeepsBoundedState(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(few, "    x = 0\n    while x < n:\n        x = inc(x)\n    return x"), inStarlark(t, fewActions), simkit.Options{Lenient: true})
	w.start("r", `{"n":2500}`)
	most := 0
	for w.outcome("r") == "running" {
		action, task, _ := w.task()
		w.end(action, task)
		if w.s.Handled()%20 != 0 {
			continue
		}
		size := 0
		for _, doc := range w.s.Docs() {
			if strings.HasPrefix(doc, "run") {
				size += len(w.s.Value(doc).String())
			}
		}
		most = max(most, size)
	}
	if w.outcome("r") != "2500" || most > 2*(minSnapshot+pageBytes)+keptPages*pageBytes {
		t.Errorf("%s, and %d bytes at most", w.outcome("r"), most)
	}
	w.clean()
}

// A run in memory that came from a transaction which was undone is not believed: the documents are compared.
func TestCache_IsComparedWithTheDocuments(t *testing.T) {
	w := small(t, "    x = inc(n)\n    y = inc(x)\n    return [n, x, y]")
	w.start("r", `{"n":1}`)
	w.start("q", `{"n":5}`)
	if err := w.s.Write(func(tx *space.Tx) error {
		c := space.Local[cache](tx)
		c.entries["r"], c.entries["q"] = c.entries["q"], c.entries["r"]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.perform()
	if w.outcome("r") != "[1,2,3]" || w.outcome("q") != "[5,6,7]" {
		t.Error(w.outcome("r"), w.outcome("q"))
	}
	w.clean()
}

// A result that is larger than a record may be is a failure of its call, which the run can handle.
func TestResult_ThatIsTooLargeFailsItsCall(t *testing.T) {
	w := newWorld(t, "load(\"actions\", \"text\")\ndef run(n):\n    r = attempt(text(n))\n    if r.failed(\"LimitError\"): return r.error.message\n    return len(r.value)\nworkflow(\"w\", run)\n", inStarlark(t, "def text(n): return \"x\" * n"), simkit.Options{})
	w.start("r", `{"n":200000}`)
	w.start("q", `{"n":100000}`)
	w.perform()
	if got := w.outcome("r"); !strings.HasPrefix(got, `"the result has 200002 bytes; at most 131072 are possible`) || w.outcome("q") != "100000" {
		t.Error(got, w.outcome("q"))
	}
	w.clean()
}
