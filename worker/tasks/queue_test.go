package tasks

import (
	"container/heap"
	"context"
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
		heap.Remove(&a.queue, ended.place) // as if its turn had come
		_, ended.cancel = context.WithCancel(t.Context())
		ended.at = time.Hour
		heap.Push(&a.queue, ended)
		l.lookAtTask(a, key, entry(space.TaskDone))
		if !ended.gone || len(a.queue) != 1 || len(a.pending) != 1 || a.queue.next().Key != "first" {
			t.Fatalf("after %d tasks the queue holds %d, of which %d are pending", i+1, len(a.queue), len(a.pending))
		}
	}
}
