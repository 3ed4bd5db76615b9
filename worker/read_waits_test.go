package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// The input of a document is in flight to the log, and its computation follows in a commit of its own. The
// answer waits for both.
func TestRead_WaitsForEveryCommitItRestsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1"}, nil)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		p.Bus.Inject(worldtest.Only("append", membus.Delay))
		w.Send("s", "add", "e2")
		w.Pass(time.Second)
		answers := make(chan model.DocumentState, 1)
		go func() { // ends with the answer
			a, err := p.readCurrent(t.Context(), "s", "double", time.Hour)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		w.Pass(time.Second)
		p.Bus.Release() // the event is in the log, what is computed from it is not
		w.Pass(time.Second)
		w.wantHandled("s", "e1", "e2")
		select {
		case a := <-answers:
			t.Fatalf("answered %+v before all of it was in the log", a)
		default:
		}
		p.Bus.Release()
		if a := <-answers; a.Stale != "" || a.Value.String() != "4" {
			t.Errorf("answered with %+v", a)
		}
	})
}
