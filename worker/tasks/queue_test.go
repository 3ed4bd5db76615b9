package tasks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// A finished task leaves the queue at once, whatever precedes it there: it would wait to be reported again
// after all tasks that have not begun.
func TestTaskQueue_HoldsNothingThatIsNotPending(t *testing.T) {
	core, err := space.New(space.Config{Space: "s", Runtime: "r"}, space.NewProgram("p"), replica.New("s"))
	if err != nil {
		t.Fatal(err)
	}
	l := &List{core: core}
	a := &performing{spec: &space.ActionSpec{Name: "work"}, how: &Performer{}, pending: map[string]*task{}}
	entry := func(state space.TaskState) model.Value {
		return model.Object(model.F("n", 1), model.F("state", string(state)))
	}
	l.lookAtTask(a, "first", entry(space.TaskPending))
	for i := range 1000 {
		key := completionID(&space.Completion{Key: "k", N: int64(i)}, 0)
		l.lookAtTask(a, key, entry(space.TaskPending))
		ended := a.pending[key]
		a.queue.remove(ended) // as if its turn had come
		_, ended.cancel = context.WithCancel(t.Context())
		ended.at = time.Hour
		a.queue.push(ended)
		l.lookAtTask(a, key, entry(space.TaskDone))
		if !ended.gone || a.queue.len() != 1 || len(a.pending) != 1 || a.queue.next(0).Key != "first" {
			t.Fatalf("after %d tasks the queue holds %d, of which %d are pending", i+1, a.queue.len(), len(a.pending))
		}
	}
}

// Of the tasks that can begin, that of the highest priority does; those of the same priority keep their order, and one that
// waits for its time holds up no other.
func TestTaskQueue_ThePriorityDecidesBetweenTasksThatCanBegin(t *testing.T) {
	d := newDesk(t, &Performer{AtATime: 1, Attempts: 2})
	d.a.spec.Priority = func(in model.Value) int {
		n, _ := in.AsInt()
		return int(n)
	}
	for i, priority := range []int{0, 2, -1, 2, 0} {
		d.lookAtTask(d.a, fmt.Sprint(i), model.Object(model.F("n", 1), model.F("state", string(space.TaskPending)), model.F("in", priority)))
	}
	later := d.a.pending["1"]
	d.a.queue.remove(later)
	later.at = time.Second
	d.a.queue.push(later)
	for range 5 {
		d.perform()
	}
	if got := strings.Join(d.done, " "); got != "3 0 4 2" {
		t.Errorf("performed %s, want 3 0 4 2", got)
	}
	if next := d.a.queue.next(time.Second); next != later {
		t.Errorf("after a second %s begins, want that of the priority 2", next.Key)
	}
}
