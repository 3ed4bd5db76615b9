package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// The program changes while tasks are performed. Running attempts end with the old program, later ones use
// the new one, and each task is done.
func TestTask_IsPerformedWhileTheProgramChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		var changes atomic.Int64
		performer := func() *tasks.Performer {
			return &tasks.Performer{AtATime: 2, Do: func(ctx context.Context, key string, in model.Value) (model.Value, error) {
				time.Sleep(time.Duration(changes.Load()%3) * time.Millisecond)
				return out.do(ctx, key, in)
			}}
		}
		var d registry
		d.set(office(t, performer()), nil)
		w1 := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		w.Send("s", "many", "e1", "100")
		for range 40 {
			changes.Add(1)
			d.deploy(office(t, performer()), w1)
			w.Pass(time.Millisecond)
		}
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("k%04d", i))
			w.eventuallyTask("s", keys[i], space.TaskDone)
			if n := out.count("s", keys[i]); n != 1 {
				t.Errorf("%s was performed %d times", keys[i], n)
			}
		}
		w.wantDoneOnce("s", keys...)
	})
}
