package worker_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// An event was handled and confirmed, but its checkpoint was in flight when the worker died. No further event
// arrives for the space, and still its documents must reach the STATE bucket: the lane position must not have
// passed the event.
func TestTheNextWorkerSavesWhatACrashedOneHadNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var saving atomic.Bool
		w1 := w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
			b.Inject(func(op membus.Op) membus.Fate {
				if op.Label == "save" {
					saving.Store(true)
					return membus.Delay
				}
				return membus.Deliver
			})
			return b
		})
		w.Send("a", "add", "e1")
		time.Sleep(10 * time.Second) // ten checkpoints
		if head := w.Server.Head("a"); head != 2 {
			t.Fatalf("the log ends at %d, want a takeover and a commit", head)
		}
		if !saving.Load() {
			t.Fatal("no checkpoint was attempted")
		}
		w1.Crash()

		w2 := w.worker("w2")
		time.Sleep(10 * time.Second)
		if docs := w.Server.LoadState("a").Docs; len(docs) != 1 || string(docs[0].Data) != "1" {
			t.Errorf("the bucket has %+v, want n to be 1", docs)
		}
		w2.Shutdown()
	})
}
