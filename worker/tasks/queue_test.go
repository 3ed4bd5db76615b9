package tasks

import (
	"context"
	"fmt"
	"slices"
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
	l := New(Host{})
	l.core = core
	a := &performing{spec: &space.ActionSpec{Name: "work"}, how: &Performer{}, pending: map[string]*task{}, queue: newQueue()}
	entry := func(state space.TaskState) model.Value {
		return model.Object(model.F("n", 1), model.F("state", string(state)))
	}
	l.lookAtEntry(a, "first", entry(space.TaskPending))
	for i := range 1000 {
		key := completionID(&space.Completion{Key: "k", N: int64(i)}, 0)
		l.lookAtEntry(a, key, entry(space.TaskPending))
		ended := a.pending[key]
		a.queue.begin(ended) // as if its turn had come
		_, ended.cancel = context.WithCancel(t.Context())
		ended.at = time.Hour
		a.queue.push(ended)
		l.lookAtEntry(a, key, entry(space.TaskDone))
		if !ended.gone || a.queue.len() != 1 || len(a.pending) != 1 || a.queue.first(0).Key != "first" {
			t.Fatalf("after %d tasks the queue holds %d, of which %d are pending", i+1, a.queue.len(), len(a.pending))
		}
	}
}

// order returns in which order the tasks of a queue begin.
func order(q *queue) (keys []string) {
	for {
		t := q.first(0)
		if t == nil {
			return keys
		}
		q.begin(t)
		keys = append(keys, t.Key)
	}
}

// The highest priority begins first, then the oldest.
func TestPriority_TheHighestBeginsFirstThenTheOldest(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for i, priority := range []int{0, 5, -1, 5, 0} {
		q.push(&task{Task: space.Task{Key: fmt.Sprint(i), Priority: priority}, order: i})
	}
	if got := strings.Join(order(&q), " "); got != "1 3 0 4 2" {
		t.Errorf("they begin in the order %s", got)
	}
}

// However many of a higher priority come, each eighth that begins is the oldest.
func TestPriority_ALowOneIsNotStarved(t *testing.T) {
	t.Parallel()
	q := newQueue()
	const low = 5
	n := 0
	add := func(priority int) {
		q.push(&task{Task: space.Task{Key: fmt.Sprint(priority), Priority: priority}, order: n})
		n++
	}
	for range low {
		add(-7)
	}
	var begun []string
	for range low * oldestEvery {
		add(9) // always more than can begin
		add(9)
		next := q.first(0)
		q.begin(next)
		begun = append(begun, next.Key)
	}
	for i, key := range begun {
		want := "9"
		if i%oldestEvery == oldestEvery-1 {
			want = "-7"
		}
		if key != want {
			t.Fatalf("of those that began, number %d has priority %s; all: %v", i, key, begun)
		}
	}
	if slices.Contains(order(&q), "-7") {
		t.Error("one of low priority is left")
	}
}
