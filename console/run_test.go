package console

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
)

const shipping = `
load("actions", "price", "ship")

def run(items, customer = ""):
    total = 0
    for i in items:
        total += price(item = i)
    by = wait("approve")
    receipt = retry(ship(cents = total), attempts = 2, backoff = "10ms")
    return {"receipt": receipt, "by": by}

workflow("shipping", run)
`

// harbour is a program with a workflow whose last action fails until it is repaired, and with a schedule.
func harbour(t *testing.T, repaired *atomic.Bool) *settle.Program {
	t.Helper()
	p := settle.NewProgram("harbour")
	w := flow.New(p)
	w.Starlark("shipping.star", []byte(shipping))
	flow.Perform(w, "price", func(_ context.Context, in struct {
		Item string `json:"item"`
	},
	) (int, error) {
		return 100 * len(in.Item), nil
	})
	flow.Perform(w, "ship", func(_ context.Context, in struct {
		Cents int `json:"cents"`
	},
	) (string, error) {
		if !repaired.Load() {
			return "", &flow.Error{Type: "Storm", Message: "the port is closed"}
		}
		return "by sea", nil
	})
	w.Schedule("nightly", flow.Schedule{Workflow: "shipping", Cron: "0 3 * * *"}, map[string]any{"items": []string{"tea"}})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	return p
}

// ships starts a run with three items.
func (w *world) ships(id, customer string) {
	w.Helper()
	_, err := flow.In(w.d.Client().Space("a")).Start(w.Context(), "shipping", id, map[string]any{"items": []string{"tea", "rice", "salt"}, "customer": customer}, flow.Attributes(map[string]string{"customer": customer}))
	if err != nil {
		w.Fatal(err)
	}
}

// A run is found by its id, its state, its workflow and its attributes; a list without runs says how one is started.
func TestWorkflows_AreFound(t *testing.T) {
	var repaired atomic.Bool
	w := operate(t, settle.Config{Programs: settle.Always(harbour(t, &repaired))})
	w.want("/workflows", 200, "No run of a workflow was started here", "settle workflow start")
	w.ships("r1", "ann")
	w.ships("r2", "bob")
	w.until("/workflows", "2 runs under way, none has failed")
	w.until("/workflows?attr=customer%3Dbob&space=a", "1 in all")
	text := w.want("/workflows?attr=customer%3Dbob", 200, "r2", "customer=bob")
	if strings.Contains(text, "/runs/r1") {
		t.Error("a run with another attribute is listed")
	}
	w.want("/workflows?q=r1", 200, "1 in all")
	w.want("/workflows?state=failed", 200, "No run matches")
	w.want("/workflows?state=asleep", 404, "is no state of a run")
	w.want("/workflows?since=x", 404, "is no duration")
	w.changes("/workflows", func() {
		if err := flow.In(w.d.Client().Space("a")).Signal(t.Context(), "r1", "approve", "ann"); err != nil {
			t.Fatal(err)
		}
	}, "1 run failed")
}

// The page of a run shows its graph as it runs, with iterations, attempts, inputs and outputs, and what it waits for; what changes comes by the stream.
func TestRun_ShowsTheGraphAsItRuns(t *testing.T) {
	var repaired atomic.Bool
	w := operate(t, settle.Config{Programs: settle.Always(harbour(t, &repaired))})
	w.ships("r1", "ann")
	page := "/spaces/a/runs/r1"
	text := w.until(page, "r1 waits for signal approve")
	for _, part := range []string{"customer", "ann", "×3", "Send signal approve", "price", "tea", "300", "line 7", "not reached"} {
		if !strings.Contains(visible(text), part) {
			t.Errorf("the page does not say %q: %s", part, visible(text))
		}
	}
	if !strings.Contains(text, "<svg") || !strings.Contains(text, `class="gantt"`) {
		t.Error("the page has no drawing, or no timeline")
	}
	node, _, _ := strings.Cut(link(text, "action price"), "#")
	w.want(node, 200, "Line 7", "rice", "400")
	w.changes(page, func() {
		if err := flow.In(w.d.Client().Space("a")).Signal(t.Context(), "r1", "approve", "ann"); err != nil {
			t.Fatal(err)
		}
	}, "the port is closed")
	w.until(page, "r1 failed: Storm: the port is closed")
	w.want(page, 200, "attempt 2", "Retry in the latest version", "2 failed")
	w.want("/spaces/a/runs/r9", 404, "Space a has no run r9")
}

// builds is a program whose actions are performed elsewhere.
func builds(t *testing.T) *settle.Program {
	t.Helper()
	p := settle.NewProgram("builds")
	w := flow.New(p)
	w.Starlark("build.star", []byte("load(\"actions\", \"build\")\ndef run(n):\n    return len(parallel([build(i) for i in range(n)]))\nworkflow(\"build\", run)\n"))
	w.External("build")
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	return p
}

// The overview names an action that has no performer, with the command that starts one; the page of a run with many calls is no larger than what it shows.
func TestOverview_NamesAnActionWithoutAPerformer(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(builds(t))})
	if _, err := flow.In(w.d.Client().Space("a")).Start(t.Context(), "build", "b1", map[string]any{"n": 1500}); err != nil {
		t.Fatal(err)
	}
	text := w.until("/", "no performer of build is connected; 1500 tasks of space a and perhaps of others wait")
	if !strings.Contains(text, "settle perform build -- COMMAND") {
		t.Errorf("the command is not named: %s", visible(text))
	}
	text = w.until("/spaces/a/runs/b1", "0 of 1,500")
	if len(text) > 100<<10 {
		t.Errorf("the page of the run has %d bytes", len(text))
	}
}

// lastStep returns the last step of the history of a run.
func lastStep(page string) (step int) {
	for part := range strings.SplitSeq(page, `<tr id="h-`) {
		number, _, _ := strings.Cut(part, `"`)
		if n, err := strconv.Atoi(number); err == nil {
			step = max(step, n)
		}
	}
	return step
}

// A run receives a signal, is retried, reset and cancelled.
func TestRun_Actions(t *testing.T) {
	var repaired atomic.Bool
	w := operate(t, settle.Config{Programs: settle.Always(harbour(t, &repaired))})
	w.ships("r1", "ann")
	page := "/spaces/a/runs/r1"
	w.until(page, "r1 waits for signal approve")
	what := url.Values{"space": {"a"}, "run": {"r1"}}
	signal := url.Values{"space": {"a"}, "run": {"r1"}, "signal": {"approve"}}
	_, after := w.acts("run-signal", signal, url.Values{"value": {`"ann"`}}, `settle workflow signal a r1 approve '"ann"'`)
	if !strings.Contains(after, "r1 has received signal approve") {
		t.Error(after)
	}
	w.until(page, "r1 failed: Storm")
	w.want("/-/do/run-cancel?"+what.Encode(), 400, "r1 has ended: it is failed")
	repaired.Store(true)
	w.acts("run-retry", what, nil, "settle workflow retry a r1")
	w.until(page, "r1 is done")
	ended := w.want(page, 200, "by sea", "Go on from here")
	last := lastStep(ended)
	if strings.Contains(ended, fmt.Sprintf("step=%d&#34;", last)) || strings.Contains(ended, fmt.Sprintf(`step=%d"`, last)) || !strings.Contains(ended, fmt.Sprintf("step=%d", last-1)) {
		t.Errorf("a run that is done is to go on from its last step, %d, or not from the one before: %s", last, ended)
	}
	w.want(fmt.Sprintf("/-/do/run-reset?space=a&run=r1&step=%d", last), 400, fmt.Sprintf("r1 can go on from the steps 1 to %d", last-1))
	w.want("/-/do/run-retry?"+what.Encode(), 400, "only a run that has failed or was cancelled goes on")
	reset := url.Values{"space": {"a"}, "run": {"r1"}, "step": {"4"}}
	before, _ := w.acts("run-reset", reset, nil, "settle workflow reset a r1 4")
	if !strings.Contains(before, "Let r1 go on from step 4") {
		t.Error(before)
	}
	w.until(page, "r1 waits for signal approve")
	w.acts("run-cancel", what, url.Values{"reason": {"too late"}}, "settle workflow cancel a r1")
	w.until(page, "r1 was cancelled")
	w.want(page, 200, "too late")
	w.want("/-/do/run-reset?space=a&run=r1&step=x", 400, "is no step of a run")
}

// A schedule is paused with a reason, resumed, and triggered.
func TestSchedules_Actions(t *testing.T) {
	var repaired atomic.Bool
	w := operate(t, settle.Config{Programs: settle.Always(harbour(t, &repaired))})
	w.want("/schedules", 200, "No space has a schedule", "settle schedule set")
	w.ships("r1", "ann")
	w.until("/schedules?space=a", "nightly of a is next")
	what := url.Values{"space": {"a"}, "schedule": {"nightly"}}
	w.changes("/schedules?space=a", func() {
		w.acts("schedule-pause", what, url.Values{"why": {"a storm"}}, "settle schedule pause a nightly")
	}, "1 schedule is paused")
	w.want("/schedules?space=a", 200, "a storm", "Resume")
	w.acts("schedule-resume", what, nil, "settle schedule resume a nightly")
	w.until("/schedules?space=a", "nightly of a is next")
	_, after := w.acts("schedule-trigger", what, nil, "settle schedule trigger a nightly")
	if !strings.Contains(after, "nightly has started run nightly-") {
		t.Error(after)
	}
	w.until("/workflows", "2 runs under way")
}

// The streams of a program are offered for an event; those that each program with a workflow has are folded, unless one of them is chosen.
func TestSend_StreamsOfWorkflowsAreFolded(t *testing.T) {
	var repaired atomic.Bool
	w := operate(t, settle.Config{Programs: settle.Always(harbour(t, &repaired))})
	w.ships("r1", "ann")
	w.until("/spaces/a", "Send price") // events of its own streams were seen
	for path, open := range map[string]bool{"/spaces/a": false, "/spaces/a?stream=workflow-start": true} {
		text := w.want(path, 200, "Streams of workflows")
		before, folded, found := strings.Cut(text, `<details id="workflowstreams"`)
		_, offered, _ := strings.Cut(before, `id="streams"`)
		if !found || strings.Contains(offered, ">workflow-") || !strings.Contains(folded, ">workflow-start<") {
			t.Errorf("%s: the streams of workflows are not folded: %s", path, visible(text))
		}
		if is := strings.HasPrefix(folded, " open>"); is != open {
			t.Errorf("%s: they are open: %v", path, is)
		}
	}
}
