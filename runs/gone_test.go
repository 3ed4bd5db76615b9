package runs

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/simkit"
)

// A call that waits for room, and is not needed any more because another one has failed, is not made.
func TestCall_ThatWaitsForRoomAndIsNotNeededIsNotMade(t *testing.T) {
	t.Parallel()
	src := `load("actions", "watched_size")
def run(n):
    text = "x" * n
    attempt(parallel([watched_size(text) for i in range(4)]))
    return watched_size("")
workflow("w", run)
`
	w := newWorld(t, src, inStarlark(t, "def watched_size(x): return len(x) if x == '' else fail('too large')"), simkit.Options{})
	w.start("r", `{"n":100000}`)
	pending := func() int { return w.s.Value("watched_size").Get("tasks").Len() }
	if n := pending(); n != 2 {
		t.Fatalf("%d of 4 calls are pending, want 2", n)
	}
	action, task, _ := w.task()
	w.end(action, task)
	if n := pending(); n != 1 {
		t.Errorf("%d calls are pending after one has failed, want only the one behind them", n)
	}
	w.perform()
	if got := w.outcome("r"); got != "0" {
		t.Error(got)
	}
	w.clean()
}

// A run that has failed, and is ended at once during its undo steps, has failed.
func TestUndo_AFailedRunThatIsEndedAtOnceHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{})
	w.start("r", `{"stops":["Riga","Bonn"],"cents":200}`)
	for w.s.Value(Doc("r")).Get("undoing").IsAbsent() {
		action, task, is := w.task()
		if !is {
			t.Fatalf("it has ended: %s", w.s.Value(Doc("r")))
		}
		w.end(action, task)
	}
	w.send(StreamCancel, "", `{"run":"r","why":"x","at_once":true}`)
	if got := w.s.Value(Doc("r")); got.Get("state").String() != `"failed"` || !strings.Contains(got.Get("error").String(), `"Declined"`) {
		t.Error(got)
	}
	w.clean()
}
