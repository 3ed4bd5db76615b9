package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// Stores return errors. A worker must not count an attempt to save, follow or read as a success.

var errStore = errors.New("the store is out of order")

// failing is a bus whose saves fail on demand, without storing anything.
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

// failingWorker starts a worker over a failing bus.
func (w *world) failingWorker(cfg worker.Config) (*process, *failing) {
	w.Helper()
	bus := &failing{}
	p := w.process(cfg, func(b *membus.Bus) port.Bus {
		bus.Bus = b
		return bus
	})
	return p, bus
}

// The documents of a checkpoint that could not be saved are part of the next one, although that is about
// other documents.
func TestSaver_AFailedSaveKeepsItsDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p, bus := w.failingWorker(worker.Config{ID: "w1"})
		bus.saves.Store(true)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w.Eventually("a save has failed", func() bool { return bus.failed.Load() > 2 })
		w.Send("s", "look", "e2", `"t"`)
		w.EventuallyEnded("s", 2)
		bus.saves.Store(false)
		w.Pass(10 * time.Second)
		w.wantSaved("s", map[string]string{"n": "1", "from": `"t"`})
		w.WantPosition(0, 2)
		if w.Log.Count("save checkpoint") == 0 {
			t.Error("the failed save was not logged")
		}
		p.Shutdown()
	})
}

// reminded is the program office with a stream that sets a timer for tomorrow.
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

// A space with a pending task and a timer for tomorrow is woken for the task.
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
				w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reminded(t, never))}, nil)
				if first == "the task" {
					w.Send("s", "start", "e1", `"a"`)
				}
				w.Send("s", "tomorrow", "e2")
				w.Pass(5 * time.Second)
				if first != "the task" {
					w.Send("s", "start", "e1", `"a"`)
				}
				w.Pass(5 * time.Second)
				w.WantPosition(0, 2)
				w1.Crash()
				w.Pass(time.Minute)
				w.process(worker.Config{ID: "w2", Programs: worldtest.Always(reminded(t, &tasks.Performer{Do: out.do}))}, nil)
				w.eventuallyTask("s", "a", space.TaskDone)
			})
		})
	}
}

// hand releases another goroutine, which must take the signal within a minute.
func (w *world) hand(to chan<- struct{}) {
	w.Helper()
	select {
	case to <- struct{}{}:
	case <-time.After(time.Minute):
		w.Fatal("no goroutine takes the signal")
	}
}

// lostLane is a bus that ends the lane subscription on demand.
type lostLane struct {
	*membus.Bus
	lose chan struct{}
}

func (b *lostLane) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-b.lose:
			cancel()
		case <-ctx.Done():
		}
	}()
	return b.Bus.FollowLane(ctx, partition, after, deliver)
}

// lostLaneWorker starts a worker over a lostLane.
func (w *world) lostLaneWorker(cfg worker.Config) (*process, *lostLane) {
	w.Helper()
	bus := &lostLane{lose: make(chan struct{})}
	p := w.process(cfg, func(b *membus.Bus) port.Bus {
		bus.Bus = b
		return bus
	})
	return p, bus
}

// A lane subscription that was lost resumes where it ended. That position does not count as saved.
func TestLane_AReadPositionDoesNotCountAsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p, bus := w.lostLaneWorker(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: 10 * time.Second}})
		lane := w.Send("s", "add", "e1").Seq
		w.EventuallyEnded("s", 1)
		w.hand(bus.lose)
		w.Pass(time.Minute)
		w.WantPosition(0, lane)
		p.Shutdown()
	})
}

// slowAppend is a bus whose appends take a second once the test asks for it, and which reports the first of
// them.
type slowAppend struct {
	*membus.Bus
	on    atomic.Bool
	first chan struct{}
	once  sync.Once
}

func (b *slowAppend) Append(a model.Append, done func(uint64, error)) {
	if !b.on.Load() {
		b.Bus.Append(a, done)
		return
	}
	b.once.Do(func() { close(b.first) })
	time.AfterFunc(time.Second, func() { b.Bus.Append(a, done) })
}

// slowWorker starts a worker over a slowAppend, which has handled e1.
func (w *world) slowWorker() (*process, *slowAppend) {
	w.Helper()
	bus := &slowAppend{first: make(chan struct{})}
	p := w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
		bus.Bus = b
		return bus
	})
	w.adds("s", 1)
	return p, bus
}

// overtake makes an attachment handle e2 while the owner, which uses this bus, appends it.
func (b *slowAppend) overtake(w *world) {
	w.Helper()
	app := w.attach("app", withEvents)
	b.on.Store(true)
	app.bus.Inject(func(op membus.Op) membus.Fate {
		if op.Label == "append" {
			w.Pass(100 * time.Millisecond) // else the owner has nothing to append
		}
		return membus.Deliver
	})
	w.Send("s", "add", "e2")
	select {
	case <-b.first:
	case <-time.After(time.Minute):
		w.Fatal("the owner appended nothing, which the test needs")
	}
}

// An answer waits for commits in flight. When one is refused, because another runtime has done the work
// already, there is nothing left to wait for.
func TestRead_RestartsWhenTheCommitItWaitsForIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1, bus := w.slowWorker()
		bus.overtake(w)
		a := w1.query("s", "n") // waits for up to a minute
		if a.Stale != "" || a.Value.String() != "2" {
			t.Errorf("answered with %+v", a)
		}
		w.wantHandled("s", "e1", "e2")
		w.Eventually("the append is refused", func() bool { return w1.Counts().Refused > 0 })
	})
}

// What a timer sends to its own space is queued at a lane position that was passed long ago. The lane no
// longer leads to that event, nor to its own sends, so the space saves that it has something due.
func TestDue_TheFollowUpOfATimerIsSavedAsDue(t *testing.T) {
	for links, stream := range []string{"chain", "longer"} {
		t.Run(stream, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 20 * time.Millisecond, Idle: -1}}
				cfg.MaxGroup = 1
				w1 := w.process(cfg, nil)
				w.Send("s", "remind", "e1", `{"in":60000,"on":"`+stream+`"}`)
				w.Send("other", "now", "e2")
				w.Pass(59 * time.Second)
				w.WantPosition(0, 2)
				var appends atomic.Int64
				w1.Bus.Inject(func(op membus.Op) membus.Fate {
					if op.Label == "append" && appends.Add(1) > 1 {
						return membus.Delay // the timer is handled, what it sends is not
					}
					return membus.Deliver
				})
				w.Pass(5 * time.Second)
				for range links {
					w1.Bus.Release() // what it sends is handled, what that sends is not
					w.Pass(5 * time.Second)
				}
				if n := len(w.Receipts("s")); n != 2+links {
					t.Fatalf("%d events are handled, which the test does not cover", n)
				}
				w1.Crash()
				w.Pass(time.Minute)
				cfg.ID = "w2"
				w.process(cfg, nil)
				w.EventuallyEnded("s", 3+links)
			})
		})
	}
}

// halfway is a bus that on demand saves the documents without the mark, and reports a failure.
type halfway struct {
	*membus.Bus
	on   atomic.Bool
	done atomic.Int64
}

func (b *halfway) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if mark != nil && b.on.Load() {
		if err := b.Bus.SaveState(ctx, space, docs, nil); err != nil {
			return err
		}
		b.done.Add(1)
		return errStore
	}
	return b.Bus.SaveState(ctx, space, docs, mark)
}

// After a failed save the wakeup that the bucket has is unknown. The space had work, then none, and has work
// again: that is saved.
func TestDue_AFailedSaveLeavesTheSavedWakeupUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		finish := make(chan struct{})
		how := &tasks.Performer{Do: func(ctx context.Context, _ string, _ model.Value) (model.Value, error) {
			select {
			case <-finish:
				return model.Value{}, nil
			case <-ctx.Done():
				return model.Value{}, ctx.Err()
			}
		}}
		bus := &halfway{}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, how)), Options: worker.Options{Checkpoint: 100 * time.Millisecond}}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.Send("s", "start", "e1", `"a"`)
		w.Pass(5 * time.Second)
		w.WantPosition(0, 1)
		bus.on.Store(true)
		w.hand(finish)
		w.eventuallyTask("s", "a", space.TaskDone)
		w.Eventually("half of the checkpoint is saved", func() bool { return bus.done.Load() > 2 })
		w.Pass(time.Second)
		w.Send("s", "start", "e2", `"b"`)
		w.eventuallyTask("s", "b", space.TaskPending)
		bus.on.Store(false)
		w.Pass(5 * time.Second)
		if n := len(w.Server.DueSpaces(0)); n != 1 {
			t.Errorf("%d spaces have a wakeup, want the one with a task", n)
		}
		w1.Crash()
	})
}

// unloaded is a bus that fails to load the space s a number of times.
type unloaded struct {
	*membus.Bus
	times atomic.Int64
}

func (b *unloaded) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if space == "s" && b.times.Add(-1) >= 0 {
		return model.SpaceState{}, errStore
	}
	return b.Bus.LoadState(ctx, space)
}

// A space that could not be loaded is loaded later, even if no event arrives.
func TestHost_IsReplacedAfterAFailedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &unloaded{}
		bus.times.Store(2)
		w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
	})
}
