package worker_test

import (
	"context"
	"fmt"
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
)

// deployed switches a program: while it is off, spaces run none.
type deployed struct {
	program *space.Program
	is      atomic.Bool
}

func (d *deployed) programs(string) (*space.Program, error) {
	if !d.is.Load() {
		return nil, nil
	}
	return d.program, nil
}

func TestNoProgram_EventsWaitForAWorkerThatHasOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		none := w.process(worker.Config{ID: "w1", Programs: func(string) (*space.Program, error) { return nil, nil }}, nil)
		w.sendMany("s", "add", 3)
		time.Sleep(10 * time.Second)
		w.WantPosition(0, 0)
		if n := len(w.Commits("s")); n != 0 {
			t.Fatalf("%d commits by a worker without a program", n)
		}
		if n := w.Log.Count("space has no program"); n != 1 {
			t.Errorf("the missing program was logged %d times", n)
		}
		none.Shutdown()
		w.worker("w2")
		time.Sleep(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(3)...)
		w.WantPosition(0, 3)
	})
}

// The events of one space wait, and so does the position of the whole lane, but no other space does.
func TestNoProgram_OtherSpacesOfThePartitionContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		program := book(t)
		w.process(worker.Config{ID: "w1", Programs: func(name string) (*space.Program, error) {
			if name == "unknown" {
				return nil, fmt.Errorf("no such program")
			}
			return program, nil
		}}, nil)
		w.Send("a", "add", "e1")
		w.Send("unknown", "add", "e1")
		w.Send("a", "add", "e2")
		w.Send("unknown", "add", "e2")
		time.Sleep(10 * time.Second)
		w.wantHandled("a", worldtest.Numbered(2)...)
		w.WantPosition(0, 1)
	})
}

// Watching a space without a program logs one line, however often the lease is renewed, and keeps nothing in
// memory.
func TestNoProgram_AWatchIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		program := &deployed{program: book(t)}
		w.process(worker.Config{ID: "w1", Programs: program.programs}, nil)
		v := w.watch("s", "double")
		time.Sleep(30 * time.Second)
		if n := w.Log.Count("space has no program"); n != 1 {
			t.Errorf("logged %d times in half a minute:\n%s", n, w.Log)
		}
		program.is.Store(true)
		time.Sleep(5 * time.Second)
		w.Send("s", "add", "e1")
		time.Sleep(5 * time.Second)
		if v.last() != "2" {
			t.Errorf("once there is a program, the watcher sees %q, want 2", v.last())
		}
	})
}

// laggingLane answers the first reads of a space's lane from a lagging replica.
type laggingLane struct {
	*membus.Bus
	lags atomic.Int64
}

func (b *laggingLane) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	if b.lags.Add(-1) >= 0 {
		limit = 1
	}
	return b.Bus.ReadLane(ctx, space, after, limit)
}

// Events that were delivered while the space had no host are read again when it gets one, however far the
// answering replica lags.
func TestNoProgram_EventsDeliveredWithoutAHostComeFirst(t *testing.T) {
	for _, n := range []int{1, 3, 600, 1300} { // reads have pages of 512
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				program := &deployed{program: book(t)}
				var bus *laggingLane
				w.process(worker.Config{ID: "w1", Programs: program.programs}, func(b *membus.Bus) port.Bus {
					bus = &laggingLane{Bus: b}
					return bus
				})
				w.sendMany("s", "add", n)
				time.Sleep(time.Second)
				program.is.Store(true)
				bus.lags.Store(2)
				w.Send("s", "add", fmt.Sprintf("e%d", n+1))
				time.Sleep(5 * time.Second)
				w.wantHandled("s", worldtest.Numbered(n+1)...)
				w.WantPosition(0, uint64(n+1))
			})
		})
	}
}
