package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// An event is cancelled while its handler runs. The context of the handler ends at once, and a handler that
// ignores it is given up a second later, whatever its limit. Later events are handled.
func TestMarked_TheAttemptAtACancelledEventEnds(t *testing.T) {
	for _, c := range []struct {
		stream    string
		limit     time.Duration
		abandoned int
	}{
		{"hang", time.Hour, 1},
		{"hang", -1, 1},
		{"heed", time.Hour, 0},
		{"heed", -1, 0},
	} {
		t.Run(c.stream+" "+c.limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				e := newUnending(t)
				defer e.release()
				p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: c.limit}}, nil)
				w.Send("s", "add", "e1")
				w.EventuallyEnds("s", "e1 handled 0")
				w.Send("s", c.stream, "bad")
				w.Send("s", "add", "e2")
				w.Eventually("the handler runs", func() bool { return e.called.Load() == 1 })
				w.Pass(time.Minute)
				w.transact(func(tx *space.Tx) error {
					tx.Set(space.CancelDoc, space.CancelMark("it hangs", 0), space.CancelKey(c.stream, "bad"))
					return nil
				})
				began := time.Now()
				w.EventuallyEnds("s", "e1 handled 0", "bad cancelled 0", "e2 handled 0")
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the space continued after %s", took)
				}
				if n := p.Stats().Abandoned; n != c.abandoned || e.called.Load() != 1 {
					t.Errorf("%d goroutines count as given up after %d calls", n, e.called.Load())
				}
				e.release()
				w.Pass(time.Minute)
			})
		})
	}
}

// A mark for another event ends no attempt: the running handler keeps its limit.
func TestMarked_AnotherEventIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: time.Hour}}, nil)
		w.Send("s", "hang", "first")
		w.Send("s", "hang", "second")
		w.Eventually("the handler runs", func() bool { return e.called.Load() == 1 })
		w.transact(func(tx *space.Tx) error {
			tx.Set(space.CancelDoc, space.CancelMark("not this one", 0), space.CancelKey("hang", "second"))
			return nil
		})
		w.Pass(10 * time.Second)
		if n := p.Stats().Abandoned; n != 0 {
			t.Errorf("%d goroutines were given up", n)
		}
		e.release()
		w.EventuallyEnds("s", "first handled 0", "second cancelled 0")
	})
}

// The owner already follows the log when the handler begins, because an application is attached.
func TestMarked_ByAnApplicationThatWasAttachedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: time.Hour}}, nil)
		a := w.attach("app")
		w.Pass(time.Second)
		w.Send("s", "hang", "bad")
		w.Send("s", "add", "e1")
		w.Eventually("the handler runs", func() bool { return e.called.Load() == 1 })
		if err := a.Transact(w.Context(), "app", func(tx *space.Tx) error {
			tx.Set(space.CancelDoc, space.CancelMark("it hangs", 0), space.CancelKey("hang", "bad"))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.Pass(5 * time.Second)
		w.EventuallyEnds("s", "bad cancelled 0", "e1 handled 0")
		if called := e.called.Load(); called != 1 {
			t.Errorf("the handler was called %d times", called)
		}
		e.release()
		w.Pass(time.Minute)
	})
}
