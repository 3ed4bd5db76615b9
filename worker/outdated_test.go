package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/worker"
)

// saveAsAnother saves what the log of a space adds up to, as an owner that was deposed does, and
// has read the log since.
func (w *world) saveAsAnother(space string) {
	w.Helper()
	r, err := replica.Load(space, w.Server.LoadState(space))
	if err == nil {
		err = history.Replay(w.Context(), w.Client, r)
	}
	if err != nil {
		w.Fatal(err)
	}
	c, err := r.Checkpoint()
	if err != nil {
		w.Fatal(err)
	}
	for _, d := range c.Docs {
		if _, err := w.Server.SaveDoc(space, d); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.Server.SaveMark(space, c.Mark); err != nil {
		w.Fatal(err)
	}
}

// A mark at the sequence at which the owner wants to save is as good as its own: the lane
// position moves on.
func TestSaver_AMarkThatAnotherHasSavedAtTheSameSequenceIsAsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: 10 * time.Second}}, nil)
		lane := w.Send("s", "add", "e1").Seq
		w.eventuallyHandled("s", 1)
		w.Pass(time.Second)
		w.saveAsAnother("s")
		w.Pass(time.Minute)
		w.wantPosition(0, lane)
		w.wantSaved("s", map[string]string{"n": "1"})
		lane = w.Send("s", "add", "e2").Seq
		w.Pass(time.Minute)
		w.wantPosition(0, lane)
		w.wantSaved("s", map[string]string{"n": "2"})
		if n := w.Log.Count("save checkpoint"); n > 0 {
			t.Errorf("%d saves failed", n)
		}
		p.Shutdown()
		w.worker("w2")
		w.Send("s", "add", "e3")
		w.eventuallyHandled("s", 3)
		if got := w.Doc("s", "n"); got != "3" {
			t.Errorf("n is %s", got)
		}
	})
}
