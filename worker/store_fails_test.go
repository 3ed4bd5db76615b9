package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// Stores return errors; what a worker knows to be saved, followed or read must not be what it has
// only tried to.

var errStore = errors.New("the store is out of order")

// failing is a bus whose saves, while they fail, store nothing and say so.
type failing struct {
	*membus.Bus
	saves  atomic.Bool
	failed atomic.Int64
}

func (b *failing) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if b.saves.Load() {
		b.failed.Add(1)
		return errStore
	}
	return b.Bus.SaveState(ctx, space, docs, mark)
}

// failingWorker starts a worker over such a bus.
func (w *world) failingWorker(cfg worker.Config) (*process, *failing) {
	w.Helper()
	bus := &failing{}
	p := w.process(cfg, func(b *membus.Bus) worker.Bus {
		bus.Bus = b
		return bus
	})
	return p, bus
}

// The documents of a checkpoint that could not be saved go with the next one, which is of other
// documents.
func TestSaver_AFailedSaveKeepsItsDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p, bus := w.failingWorker(worker.Config{ID: "w1"})
		bus.saves.Store(true)
		w.send("s", "add", "e1")
		w.eventuallyHandled("s", 1)
		w.eventually("a save has failed", func() bool { return bus.failed.Load() > 0 })
		w.send("s", "look", "e2", `"t"`)
		w.eventuallyHandled("s", 2)
		bus.saves.Store(false)
		w.pass(10 * time.Second)
		w.wantSaved("s", map[string]string{"n": "1", "from": `"t"`})
		w.wantPosition(0, 2)
		if w.logged.count("save checkpoint") == 0 {
			t.Error("nobody is told that a save has failed")
		}
		p.stop()
	})
}

// reminded is office with a stream that sets a timer for tomorrow.
func reminded(t *testing.T, how *tasks.Performer) *space.Program {
	t.Helper()
	p := office(t, how)
	err := p.Handle("tomorrow", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		tx.SetTimer("x", "close", tx.Now().Add(24*time.Hour), nil)
		return model.Value{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A space with a task that is pending, and a timer for tomorrow, is woken for the task.
func TestTask_IsNotPutOffByATimer(t *testing.T) {
	for _, first := range []string{"the task", "the timer"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				out := newOutside()
				never := &tasks.Performer{Do: func(ctx context.Context, _ string, _ model.Value) (model.Value, error) {
					<-ctx.Done()
					return model.Value{}, ctx.Err()
				}}
				w1 := w.process(worker.Config{ID: "w1", Programs: always(reminded(t, never))}, nil)
				if first == "the task" {
					w.send("s", "start", "e1", `"a"`)
				}
				w.send("s", "tomorrow", "e2")
				w.pass(5 * time.Second)
				if first != "the task" {
					w.send("s", "start", "e1", `"a"`)
				}
				w.pass(5 * time.Second)
				w.wantPosition(0, 2)
				w1.crash()
				w.pass(time.Minute)
				w.process(worker.Config{ID: "w2", Programs: always(reminded(t, &tasks.Performer{Do: out.do}))}, nil)
				w.eventuallyTask("s", "a", space.TaskDone)
			})
		})
	}
}
