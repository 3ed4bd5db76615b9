package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/worker"
)

// The owner finds another runtime's mark at the sequence at which it wants to save. That mark is equivalent:
// the lane position moves on.
func TestSaver_AMarkOfAnotherRuntimeAtTheSameSequenceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: 10 * time.Second}}, nil)
		lane := w.Send("s", "add", "e1").Seq
		w.EventuallyEnded("s", 1)
		w.Pass(time.Second)
		w.SaveAsAnother("s")
		w.Pass(time.Minute)
		w.WantPosition(0, lane)
		w.wantSaved("s", map[string]string{"n": "1"})
		lane = w.Send("s", "add", "e2").Seq
		w.Pass(time.Minute)
		w.WantPosition(0, lane)
		w.wantSaved("s", map[string]string{"n": "2"})
		if n := w.Log.Count("save checkpoint"); n > 0 {
			t.Errorf("%d saves failed", n)
		}
		p.Shutdown()
		w.worker("w2")
		w.Send("s", "add", "e3")
		w.EventuallyEnded("s", 3)
		if got := w.Doc("s", "n"); got != "3" {
			t.Errorf("n is %s", got)
		}
	})
}
