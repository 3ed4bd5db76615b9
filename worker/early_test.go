package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// More events than fit in memory arrive before the one that they wait for, and their owner dies. The next
// owner reads the rest again, and all are handled in order.
func TestEarly_TheNextOwnerHandlesMoreThanFitInMemoryInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = lanes.DefaultHeld + 700
		w := newWorld(t, 1)
		release := func(pos uint64) {
			w.SendMessage(model.Message{Space: "s", Stream: "add", ID: model.TxID{Space: "x", Epoch: 1, N: pos}.Event(0), Position: pos})
		}
		w1 := w.process(worker.Config{ID: "w1"}, nil)
		for pos := uint64(n); pos > 1; pos-- { // the last one first
			release(pos)
		}
		w.Send("s", "look", "e1", `"t"`) // its commit names all of them
		w.EventuallyEnded("s", 1)
		w.Pass(10 * time.Second)
		w.WantPosition(0, 0)
		w1.Crash()
		w.Pass(time.Minute)
		w.process(worker.Config{ID: "w2"}, nil)
		release(1)
		w.EventuallyEnded("s", n+1)
		for i, rc := range w.Receipts("s")[1:] {
			if rc.Pos != uint64(i+1) {
				t.Fatalf("event number %d has position %d", i+1, rc.Pos)
			}
		}
		w.Pass(10 * time.Second)
		w.WantPosition(0, n+1)
	})
}
