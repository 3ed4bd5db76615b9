package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// sendAgain sends an event and reports whether the lane took it for one that it has.
func (w *world) sendAgain(space, stream, id string) (duplicate bool) {
	w.Helper()
	done := make(chan model.SendResult, 1)
	w.client.Send(model.Message{Space: space, Stream: stream, ID: id}, func(r model.SendResult, err error) {
		if err != nil {
			w.Errorf("send %s: %v", id, err)
		}
		done <- r
	})
	return (<-done).Duplicate
}

// A lane loses its end under a worker that starts: what is sent after that is handled once,
// though spaces have handled others under those sequences, and what was lost is known still.
func TestLostEnd_WhatIsSentAfterItIsHandledOnceAndWhatWasIsKnown(t *testing.T) {
	for _, sent := range []int{0, 2, 12} { // before the worker starts: none, fewer than were lost, more
		t.Run(fmt.Sprintf("%d were sent before the worker starts", sent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { afterALostEnd(newWorld(t, 1), sent) })
		})
	}
}

func afterALostEnd(w *world, sent int) {
	w.coordinator()
	first := w.worker("w1")
	w.sendMany("s", "add", 10)
	w.eventuallyHandled("s", 10)
	first.stop()
	w.server.LoseLane(0, 4)
	all := numbered(10)
	next := func() {
		all = append(all, fmt.Sprintf("n%d", len(all)))
		w.send("s", "add", all[len(all)-1])
	}
	for range sent {
		next()
	}
	w.worker("w2")
	w.eventuallyHandled("s", len(all))
	for range 3 {
		next()
	}
	w.eventuallyHandled("s", len(all))
	for _, id := range all {
		if !w.sendAgain("s", "add", id) {
			w.Errorf("a second event %s was taken for a new one", id)
		}
	}
	w.pass(time.Minute)
	w.wantHandled("s", all...)
	if got := w.doc("s", "n"); got != fmt.Sprint(len(all)) {
		w.Errorf("n is %s, want %d", got, len(all))
	}
}

// As long as receipts say what of a lane is handled, none of them is purged.
func TestLostEnd_NothingIsPurgedWhileEventsAreInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.coordinator()
		first := w.worker("w1")
		w.sendMany("s", "add", 10)
		w.eventuallyHandled("s", 10)
		first.stop()
		w.server.LoseLane(0, 4)
		second := w.process(frugal("w2"), func(b *membus.Bus) worker.Bus {
			b.Inject(func(op membus.Op) membus.Fate {
				if op.Label == "save-position" {
					return membus.Delay // the events stay in doubt
				}
				return membus.Deliver
			})
			return b
		})
		w.send("s", "add", "n1")
		w.eventuallyHandled("s", 11)
		w.pass(10 * time.Minute)
		w.wantWhole("s")
		second.crash()
		third := w.process(frugal("w3"), nil)
		w.pass(10 * time.Minute)
		third.stop()
		w.process(frugal("w4"), nil)
		w.send("s", "add", "n2")
		w.pass(30 * time.Minute)
		w.wantHandled("s", append(numbered(10), "n1", "n2")...)
		if n := w.left("s"); n > 2 {
			t.Errorf("when nothing is in doubt any more, the log holds %d commits", n)
		}
	})
}
