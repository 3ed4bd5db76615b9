package worker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

const notReturned = "a handler or node has not returned"

// sticking is a program that blocks where its events ask for it, until stuck is closed: in the handler, in a
// node that the handler reads, or for a nap.
func sticking(t *testing.T, stuck chan struct{}, nap func()) *space.Program {
	t.Helper()
	p := space.NewProgram("sticking")
	err := errors.Join(
		p.Handle("stick", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			tx.Set("last", ev.ID)
			<-stuck
			return model.Value{}, nil
		}),
		p.Handle("want", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
			tx.Set("wanted", true)
			return model.Value{}, nil
		}),
		p.Handle("read", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return tx.Get("slow"), nil }),
		p.Handle("nap", func(*space.Tx, *model.Event) (model.Value, error) {
			nap()
			return model.Value{}, nil
		}),
		p.Add(space.NodeSpec{ID: "slow", Kind: space.Computation, Output: "slow", Run: func(tx *space.Tx) (model.Value, error) {
			if !tx.Get("wanted").IsAbsent() {
				<-stuck
			}
			return model.Int(1), nil
		}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A handler or a node that does not return is logged once; a series of short ones is not logged.
func TestUserCode_ThatDoesNotReturnIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck := make(chan struct{})
		nap := func() { time.Sleep(9 * time.Second) }
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(sticking(t, stuck, nap)), Options: worker.Options{RunLimit: -1}}, nil)
		for _, id := range []string{"n1", "n2", "n3"} {
			w.Send("naps", "nap", id)
		}
		w.Pass(30 * time.Second)
		if n := w.Log.Count(notReturned); n != 0 {
			t.Errorf("logged although it has returned:\n%s", w.Log)
		}
		w.Send("a", "stick", "e1")
		w.Send("b", "want", "e2")
		w.Send("b", "read", "e3") // its input is stale
		w.Pass(9 * time.Second)
		if n := w.Log.Count(notReturned); n != 0 {
			t.Errorf("logged within ten seconds:\n%s", w.Log)
		}
		w.Pass(time.Minute)
		for _, said := range []string{"space=a stream=stick event=e1 for=10s", "space=b node=slow for=10s"} {
			if w.Log.Count(said) != 1 || w.Log.Count(notReturned) != 2 {
				t.Errorf("%q was not logged once:\n%s", said, w.Log)
			}
		}
		close(stuck)
		w.EventuallyEnded("a", 1)
		w.EventuallyEnded("b", 2)
		const busy = "INFO a space is at work most of the time space=a worker=w1 at_work=1m9s within=1m9s"
		w.Eventually("the busy space is logged", func() bool { return w.Log.Count(busy) == 1 })
		p.Shutdown()
	})
}
