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
	"github.com/settlehq/settle/worker"
)

// sendAgain sends an event and reports whether the lane took it for a duplicate.
func (w *world) sendAgain(space, stream, id string) (duplicate bool) {
	w.Helper()
	done := make(chan model.SendResult, 1)
	w.Client.Send(model.Message{Space: space, Stream: stream, ID: id}, func(r model.SendResult, err error) {
		if err != nil {
			w.Errorf("send %s: %v", id, err)
		}
		done <- r
	})
	return (<-done).Duplicate
}

// A lane loses its end under a worker that starts. Events sent after that are handled once, although spaces
// have handled others under those sequences, and lost events are still known.
func TestLostEnd_LaterEventsAreHandledOnceAndLostOnesAreKnown(t *testing.T) {
	for _, sent := range []int{0, 2, 12} { // before the worker starts: none, fewer than were lost, more
		t.Run(fmt.Sprintf("%d events sent before the worker starts", sent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { afterALostEnd(newWorld(t, 1), sent) })
		})
	}
}

func afterALostEnd(w *world, sent int) {
	w.Coordinator()
	first := w.worker("w1")
	w.adds("s", 10)
	first.Shutdown()
	w.Server.LoseLane(0, 4)
	all := worldtest.Numbered(10)
	next := func() {
		all = append(all, fmt.Sprintf("n%d", len(all)))
		w.Send("s", "add", all[len(all)-1])
	}
	for range sent {
		next()
	}
	w.worker("w2")
	w.EventuallyEnded("s", len(all))
	for range 3 {
		next()
	}
	w.EventuallyEnded("s", len(all))
	for _, id := range all {
		if !w.sendAgain("s", "add", id) {
			w.Errorf("a duplicate of event %s was taken for a new event", id)
		}
	}
	w.Pass(time.Minute)
	w.wantHandled("s", all...)
	if got := w.Doc("s", "n"); got != fmt.Sprint(len(all)) {
		w.Errorf("n is %s, want %d", got, len(all))
	}
}

// While receipts decide which lane events are handled, no receipt is purged.
func TestLostEnd_NothingIsPurgedWhileEventsAreInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 10)
		first.Shutdown()
		w.Server.LoseLane(0, 4)
		second := w.process(frugal("w2"), func(b *membus.Bus) port.Bus {
			b.Inject(func(op membus.Op) membus.Fate {
				if op.Label == "save-position" {
					return membus.Delay // the events stay in doubt
				}
				return membus.Deliver
			})
			return b
		})
		w.Send("s", "add", "n1")
		w.EventuallyEnded("s", 11)
		w.Pass(10 * time.Minute)
		w.wantWhole("s")
		second.Crash()
		third := w.process(frugal("w3"), nil)
		w.Pass(10 * time.Minute)
		third.Shutdown()
		w.process(frugal("w4"), nil)
		w.Send("s", "add", "n2")
		w.Pass(30 * time.Minute)
		w.wantHandled("s", append(worldtest.Numbered(10), "n1", "n2")...)
		if n := w.left("s"); n > 2 {
			t.Errorf("with no event in doubt, the log has %d commits", n)
		}
	})
}

// A space that is requested before the lane was compared is taken over after that. Otherwise an event that
// its cursor has passed without a receipt would never be handled.
func TestLostEnd_NoSpaceIsTakenOverBeforeTheLaneWasCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.worker("w1")
		w.adds("s", 10)
		first.Shutdown()
		w.Server.LoseLane(0, 4)
		w.Send("s", "add", "n1")
		var late atomic.Int64 // requests for the end of the lane
		var bus *membus.Bus
		w.process(worker.Config{ID: "w2"}, func(b *membus.Bus) port.Bus {
			bus = b
			b.Inject(func(op membus.Op) membus.Fate {
				if op.Label == "lane-end" && late.Add(1) == 1 {
					return membus.Delay
				}
				return membus.Deliver
			})
			return b
		})
		seen := w.watch("s", "n")
		defer seen.end()
		w.Pass(time.Second)
		if late.Load() == 0 {
			t.Fatal("no request for the end of the lane, which the test needs")
		}
		bus.Release()
		w.EventuallyEnded("s", 11)
		w.wantHandled("s", append(worldtest.Numbered(10), "n1")...)
	})
}

// A worker ends before it has handled the events in doubt, while another space has continued after them. The
// next worker reads the lane from where it was truncated.
func TestLostEnd_TheNextWorkerContinuesWithEventsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 5)
		w.adds("t", 5)
		first.Shutdown()
		w.Server.LoseLane(0, 8)
		w.Send("t", "add", "n1") // at 9, which the cursor counts as done
		second := w.process(worker.Config{ID: "w2"}, func(b *membus.Bus) port.Bus {
			b.Inject(func(op membus.Op) membus.Fate {
				if op.Label == "append" && op.Space == "t" {
					return membus.Delay
				}
				return membus.Deliver
			})
			return b
		})
		w.Pass(time.Minute)
		w.Send("s", "add", "n2")
		w.EventuallyEnded("s", 6)
		w.Pass(time.Minute)
		second.Crash()
		w.process(worker.Config{ID: "w3"}, nil)
		w.EventuallyEnded("t", 6)
		w.wantHandled("t", append(worldtest.Numbered(5), "n1")...)
		w.wantHandled("s", append(worldtest.Numbered(5), "n2")...)
	})
}

// A client sends an event again that the lane has lost, before any worker has taken its name there. Its new
// position is one that its space has not handled yet, but its receipt shows that it is handled.
func TestLostEnd_ARepeatedEventIsNotHandledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 5)
		w.Send("t", "add", "t1")
		w.EventuallyEnded("t", 1)
		w.adds("u", 4)
		first.Shutdown()
		w.Server.LoseLane(0, 4)
		for _, id := range []string{"n1", "n2", "n3"} { // at 5, 6 and 7
			w.Send("s", "add", id)
		}
		if w.sendAgain("t", "add", "t1") {
			t.Fatal("the lane still has the event, which the test must have lost")
		}
		w.worker("w2")
		w.EventuallyEnded("s", 8)
		w.Pass(time.Minute)
		w.wantHandled("t", "t1")
		w.wantHandled("s", append(worldtest.Numbered(5), "n1", "n2", "n3")...)
	})
}

// An event that is sent again may by chance get its old sequence, even the highest that is known. The lane
// has lost its end all the same.
func TestLostEnd_AnEventWithItsOldSequenceProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 7)
		w.Send("t", "add", "t1") // at 8
		w.EventuallyEnded("t", 1)
		first.Shutdown()
		w.Pass(time.Second)
		w.Server.LoseLane(0, 5)
		w.Send("s", "add", "n1")
		w.Send("s", "add", "n2")
		if w.sendAgain("t", "add", "t1") {
			t.Fatal("the lane still has the event, which the test must have lost")
		}
		w.worker("w2")
		w.EventuallyEnded("s", 9)
		w.Pass(time.Minute)
		w.wantHandled("t", "t1")
		w.wantHandled("s", append(worldtest.Numbered(7), "n1", "n2")...)
	})
}

// The event may also get a position after everything that was ever handled, because others were sent before
// it.
func TestLostEnd_ARepeatedEventAfterAllHandledOnesIsNotHandledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 7)
		w.Send("t", "add", "t1") // at 8
		w.EventuallyEnded("t", 1)
		first.Shutdown()
		w.Server.LoseLane(0, 3)
		for i := range 6 { // the last at 11
			if i == 5 && w.sendAgain("t", "add", "t1") {
				t.Fatal("the lane still has the event, which the test must have lost")
			}
			w.Send("s", "add", fmt.Sprint("n", i))
		}
		w.worker("w2")
		w.EventuallyEnded("s", 13)
		w.Pass(time.Minute)
		w.wantHandled("t", "t1")
		w.wantHandled("s", append(worldtest.Numbered(7), "n0", "n1", "n2", "n3", "n4", "n5")...)
	})
}

// unpositioned is a bus that saves no position: events in doubt stay in doubt.
type unpositioned struct{ *membus.Bus }

func (unpositioned) SavePosition(context.Context, int, string, uint64) error { return errStore }

// An event in doubt that was handled has a receipt after those that were read when the lane was compared. A
// space that is evicted and loaded again does not handle it again.
func TestLostEnd_AnEventInDoubtIsNotHandledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 10)
		first.Shutdown()
		w.Server.LoseLane(0, 4)
		w.Send("s", "add", "n1") // at 5, which the cursor counts as done
		second := w.process(worker.Config{ID: "w2", Options: worker.Options{Idle: time.Second}}, func(b *membus.Bus) port.Bus { return unpositioned{b} })
		w.EventuallyEnded("s", 11)
		w.Eventually("the space is evicted", func() bool { return second.Stats().Partitions[0].Evictions > 0 })
		w.Send("s", "add", "n2")
		w.EventuallyEnded("s", 12)
		w.Pass(time.Minute)
		w.wantHandled("s", append(worldtest.Numbered(10), "n1", "n2")...)
	})
}

// unfollowed is a bus on which the test interrupts a lane subscription.
type unfollowed struct {
	*membus.Bus
	stop chan struct{}
}

func (b *unfollowed) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-b.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return b.Bus.FollowLane(ctx, partition, after, deliver)
}

// The lane loses its end under a worker that reads it. Events sent then get sequences that it has already
// read. They are handled, since the partition restarts.
func TestLostEnd_UnderAWorkerThatReadsTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &unfollowed{stop: make(chan struct{}, 1)}
		w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.adds("s", 10)
		w.Pass(5 * time.Second)
		w.WantPosition(0, 10)
		w.Server.LoseLane(0, 4)
		w.Send("s", "add", "n1")
		w.Send("s", "add", "n2")
		bus.stop <- struct{}{}
		w.EventuallyEnded("s", 12)
		w.wantHandled("s", append(worldtest.Numbered(10), "n1", "n2")...)
	})
}
