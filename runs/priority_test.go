package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow/compile"
)

const calling = `
load("actions", "work")

def run(text = "", n = 1, nested = False):
    if nested:
        return child("w", {"text": text})
    return work(text * n)

workflow("w", run)
`

const workAction = "def work(text): return len(text)\n"

func (w *world) startWith(id string, priority int, args string) {
	w.Helper()
	w.send(StreamStart, "start-"+id, fmt.Sprintf(`{"workflow":"w","run":%q,"priority":%d,"args":%s}`, id, priority, args))
}

// The priority of a run is in the input of its tasks, in its status, and in those of its children.
func TestPriority_IsThatOfTheTasksAndOfTheChildren(t *testing.T) {
	w := newWorld(t, calling, inStarlark(t, workAction), simkit.Options{})
	w.startWith("r", 7, `{"nested":true}`)
	_, task, _ := w.task()
	if got := task.Priority; got != 7 {
		t.Errorf("the task of a child has the priority %d", got)
	}
	s, err := StatusOf("r", w.s.Value(Doc("r")))
	if err != nil || s.Priority != 7 {
		t.Errorf("the status has the priority %d, %v", s.Priority, err)
	}
	w.perform()
	if got := w.outcome("r"); got != "0" {
		t.Error(got)
	}
	w.clean()
}

func TestPriority_OneThatIsNotValidIsRefused(t *testing.T) {
	w := newWorld(t, calling, inStarlark(t, workAction), simkit.Options{Lenient: true})
	for _, bad := range []string{"10", "-10", `"high"`, "1.5"} {
		rc := w.sent(StreamStart, "", fmt.Sprintf(`{"workflow":"w","run":"r","priority":%s}`, bad))
		if rc.Outcome != model.Failed || !strings.Contains(rc.Error, "it must be an integer from -9 to 9") {
			t.Errorf("%s: %s %s", bad, rc.Outcome, rc.Error)
		}
	}
}

// When the tasks of a space need too much, runs wait: the one of the highest priority gets room first.
func TestPriority_DecidesWhichRunGetsRoomInTheSpace(t *testing.T) {
	w := newWorld(t, strings.NewReplacer(`"work"`, `"watched_work"`, "return work(", "return watched_work(").Replace(calling), inStarlark(t, "def watched_work(text): return len(text)\n"), simkit.Options{})
	large := fmt.Sprintf(`{"text":"x","n":%d}`, 100<<10)
	for i, priority := range []int{0, 0, -1, 0, 5} {
		w.startWith(fmt.Sprint("r", i), priority, large)
	}
	var order []string // in which tasks became pending
	for {
		for _, entry := range w.s.Value("watched_work").Get("tasks").All() {
			if id, _ := entry.Get("in").Get("run").AsString(); !slices.Contains(order, id) {
				order = append(order, id)
			}
		}
		action, task, is := w.task()
		if !is {
			break
		}
		w.end(action, task)
	}
	if got := strings.Join(order, " "); got != "r0 r1 r4 r3 r2" {
		t.Errorf("the order is %s: want that of the priority 5 as soon as there is room, and that of -1 last", got)
	}
	w.clean()
}

// Memory that the code of a run has used is the same after a restart before each end of an action, and so is where it fails.
func TestMemory_ARunFailsAtTheSameStepAfterRestarts(t *testing.T) {
	src := `
load("actions", "work")

def run():
    kept = []
    for i in range(100):
        kept.append("%d" % i + "x" * 10000000)
        work("")
    return len(kept)

workflow("w", run)
`
	if _, err := compile.Compile("w.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
	var logs [2]int
	for i, restart := range []bool{false, true} {
		w := newWorld(t, src, inStarlark(t, workAction), simkit.Options{})
		w.restart = restart
		w.start("r", "{}")
		w.perform()
		if got := w.outcome("r"); !strings.HasPrefix(got, "error LimitError: ") || !strings.Contains(got, "MiB") {
			t.Errorf("restart %v: %s", restart, got)
		}
		logs[i] = len(w.log)
		w.clean()
	}
	if logs[0] != logs[1] || logs[0] < 10 || logs[0] > 30 {
		t.Errorf("it fails after %d calls, and with restarts after %d", logs[0], logs[1])
	}
}
