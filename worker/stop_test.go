package worker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// A worker is stopped while a handler runs. Stop waits for the handler, and its event then has a receipt.
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
					t.Error("Stop returned during a run")
				}
			})
			for range 10_000 {
				runtime.Gosched() // lets the other goroutines run
			}
			ended.Store(true)
			return model.Value{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w1 = w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("s", "add", "e1")
		w.Eventually("the run has ended", ended.Load)
		stopping.Wait()
		w.wantHandled("s", "e1")
		w.wantSaved("s", map[string]string{"n": `"e1"`})
	})
}

// Stop waits for code that does not return as long as its context allows, and logs which code that is.
func TestStop_NamesTheCodeThatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		stuck := make(chan struct{})
		out := newOutside()
		out.how = func(context.Context, string, int) (model.Value, error) {
			<-stuck
			return model.Value{}, nil
		}
		acting, blocking := office(t, &tasks.Performer{Do: out.do}), sticking(t, stuck, nil)
		w1 := w.process(worker.Config{ID: "w1", Programs: func(name string) (*space.Program, error) {
			if name == "acts" {
				return acting, nil
			}
			return blocking, nil
		}, Options: worker.Options{RunLimit: -1}}, nil)
		w.Send("acts", "start", "e1", `"stubborn"`)
		w.Send("blocks", "stick", "e2")
		w.Pass(time.Second)
		var stopping sync.WaitGroup
		var stopped atomic.Bool
		stopping.Go(func() {
			if err := w1.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			stopped.Store(true)
		})
		w.Pass(4 * time.Second)
		if w.Log.Count("stop waits") != 0 {
			t.Errorf("logged within the time of a handover:\n%s", w.Log)
		}
		w.Pass(time.Hour)
		for _, said := range []string{
			"stop waits for a handler or node to return worker=w1 space=blocks stream=stick event=e2",
			"stop waits for an action or input to return worker=w1 space=acts action=work key=stubborn",
		} {
			if w.Log.Count(said) != 1 {
				t.Errorf("%q was not logged once:\n%s", said, w.Log)
			}
		}
		if stopped.Load() {
			t.Error("Stop did not wait")
		}
		close(stuck)
		stopping.Wait()
		w.wantHandled("blocks", "e2")
	})
}

// When the context ends, Stop abandons the handler: nothing that it does later is committed, and the next
// owner handles the event.
func TestStop_CutsOffAHandlerWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck := make(chan struct{})
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(sticking(t, stuck, nil))}
		w1 := w.process(cfg, nil)
		w.Send("s", "stick", "e1")
		w.Pass(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := w1.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("stop: %v after %v", err, time.Since(began))
		}
		head, err := w.Client.Head(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		close(stuck) // the handler returns while its worker is still connected
		w.Pass(time.Minute)
		if now, err := w.Client.Head(t.Context(), "s"); err != nil || now != head {
			t.Errorf("the log grew from %d to %d, %v", head, now, err)
		}
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.EventuallyEnded("s", 1)
		w.wantHandled("s", "e1")
	})
}
