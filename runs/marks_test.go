package runs

import (
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// states returns the state of each node of a run that has one, by the line and the kind of the node.
func (w *world) states(id string) map[string]workflow.Mark {
	w.Helper()
	s, err := Inspect(id, func(doc string) (model.Value, error) { return w.s.Value(doc), nil })
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]workflow.Mark{}
	for fn := range s.Graph.Funcs {
		for i, n := range s.Graph.Funcs[fn].Nodes {
			if m := s.Mark(fn, i); m != "" {
				all[string(n.Kind)+" "+string('0'+n.Line)] = m
			}
		}
	}
	return all
}

func (w *world) wantStates(id string, want map[string]workflow.Mark) {
	w.Helper()
	got := w.states(id)
	for node, state := range want {
		if got[node] != state {
			w.Errorf("%s is %q, want %q", node, got[node], state)
		}
	}
	if len(got) != len(want) {
		w.Errorf("%v, want %v", got, want)
	}
}

// The state of each node is what the run has done there last, also after a restart and after its end.
func TestMarks_AreTheStatesOfTheNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `load("actions", "inc", "bad")
def run(n = 3):
    x = inc(n)
    r = attempt(retry(bad(n), attempts = 2, backoff = "1m"))
    if r.ok: return inc(0)
    part(n)
    return 0
def part(n):
    wait("go")
workflow("w", run)
`, inStarlark(t, fewActions), simkit.Options{})
	w.start("r", "{}")
	w.wantStates("r", map[string]workflow.Mark{"action 3": workflow.MarkRunning})
	w.perform()
	w.wantStates("r", map[string]workflow.Mark{"action 3": workflow.MarkDone, "action 4": workflow.MarkWaiting})
	w.advance(time.Minute)
	waits := map[string]workflow.Mark{
		"action 3": workflow.MarkDone, "action 4": workflow.MarkFailed, "branch 5": workflow.MarkDone, "action 6": workflow.MarkDone, "wait 9": workflow.MarkWaiting,
	}
	w.wantStates("r", waits)
	if err := w.Restart(); err != nil {
		t.Fatal(err)
	}
	w.s, _ = w.Space("s")
	w.wantStates("r", waits)
	w.send(StreamSignal, "", `{"run":"r","signal":"go"}`)
	waits["wait 9"], waits["return 7"], waits["return 8"] = workflow.MarkDone, workflow.MarkDone, workflow.MarkDone
	w.wantStates("r", waits)
	w.clean()
}

// A snapshot has the states, too.
func TestMarks_SurviveASnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "load(\"actions\", \"inc\")\ndef run(n):\n    inc(0)\n    for i in range(n):\n        inc(i)\n    fail(\"no\")\nworkflow(\"w\", run)\n", inStarlark(t, fewActions), simkit.Options{Lenient: true})
	w.start("r", `{"n":1200}`)
	for range 1100 {
		action, task, _ := w.task()
		w.end(action, task)
	}
	if w.s.Value(snapshotDoc("r")).IsAbsent() {
		t.Fatal("there is no snapshot")
	}
	if err := w.Restart(); err != nil {
		t.Fatal(err)
	}
	w.s, _ = w.Space("s")
	w.wantStates("r", map[string]workflow.Mark{"action 3": workflow.MarkDone, "loop 4": workflow.MarkDone, "action 5": workflow.MarkRunning})
	w.perform()
	w.wantStates("r", map[string]workflow.Mark{"action 3": workflow.MarkDone, "loop 4": workflow.MarkDone, "action 5": workflow.MarkDone, "do 6": workflow.MarkFailed})
	w.clean()
}
