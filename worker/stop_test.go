package worker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A worker is told to stop while a handler is in the middle of its run. Stop waits for
// that, and the event has its receipt then.
func TestR09_StopWaitsForTheRunInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var w1 *process
		var ended atomic.Bool
		var stopping sync.WaitGroup
		p := space.NewProgram("slow")
		err := p.Handle("add", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			tx.Set("n", ev.ID)
			stopping.Go(func() {
				if err := w1.Stop(context.Background()); err != nil {
					t.Error(err)
				}
				if !ended.Load() {
					t.Error("stopped in the middle of a run")
				}
			})
			for range 10_000 {
				runtime.Gosched() // the others are to have their chance
			}
			ended.Store(true)
			return model.Value{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w1 = w.process(worker.Config{ID: "w1", Programs: always(p)}, nil)
		w.send("s", "add", "e1")
		w.eventually("the run has ended", ended.Load)
		stopping.Wait()
		w.wantHandled("s", "e1")
		w.wantSaved("s", map[string]string{"n": `"e1"`})
	})
}
