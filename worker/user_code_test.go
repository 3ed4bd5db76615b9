package worker_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// reported is what a worker has reported about user code.
type reported struct {
	mu    sync.Mutex
	lines []string
}

func (t *reported) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

func (t *reported) has(line string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.lines, line)
}

// talkative is a program that logs, fails, and has an effect that passes the last event to show.
func talkative(t *testing.T, show func(event string)) *space.Program {
	t.Helper()
	p := space.NewProgram("talkative")
	err := errors.Join(
		p.Handle("say", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			tx.Log("said", "what", ev.ID)
			tx.Set("last", ev.ID)
			return model.Value{}, nil
		}),
		p.Handle("fail", func(*space.Tx, *model.Event) (model.Value, error) {
			return model.Value{}, errors.New("as it should")
		}),
		p.Handle("decline", func(*space.Tx, *model.Event) (model.Value, error) {
			return model.Value{}, receipts.Reject("no", "as it may", nil)
		}),
		p.Add(space.NodeSpec{ID: "last", Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
			id, _ := tx.Get("last").AsString()
			show(id)
			return model.Value{}, nil
		}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A worker passes errors and output of user code to its callbacks.
func TestUserCode_ErrorsAndOutputArePassedToCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var got reported
		p := w.process(worker.Config{
			ID: "w1", Programs: worldtest.Always(talkative(t, func(string) {})),
			OnError:   func(i space.ErrorInfo) { got.add(i.Stream + " " + i.Event + ": " + i.Err.Error()) },
			OnConsole: func(i space.ConsoleInfo) { got.add(i.Stream + " " + i.Event + " " + i.Message) },
		}, nil)
		w.Send("s", "say", "e1")
		w.Send("s", "fail", "e2")
		w.Eventually("both errors are reported", func() bool { return got.has("say e1 said") && got.has("fail e2: as it should") })
		p.Shutdown()
	})
}

// Without callbacks, errors and output are logged. A rejection is an answer, and is not.
func TestUserCode_IsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(talkative(t, func(string) {}))}, nil)
		w.Send("s", "say", "e1")
		w.Send("s", "decline", "e2")
		w.Send("s", "fail", "e3")
		w.Eventually("both are logged", func() bool { return w.Log.Count(" said") > 0 && w.Log.Count("event failed") > 0 })
		if n := w.Log.Count("rejected"); n > 0 {
			t.Errorf("a rejection was logged:\n%s", w.Log)
		}
		if n := w.Log.Count("handler"); n > 0 {
			t.Error("the failure was logged twice")
		}
		p.Shutdown()
	})
}

// The worker measures an effect that takes 60 ms, and the space debounces it from then on (F13).
func TestUserCode_ASlowEffectIsDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ran reported
		slowly := func(event string) {
			time.Sleep(60 * time.Millisecond)
			ran.add(event)
		}
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(talkative(t, slowly))}, nil)
		for _, id := range []string{"e1", "e2", "e3", "e4"} {
			w.Send("s", "say", id)
			w.Eventually(id+" is seen", func() bool { return ran.has(id) })
		}
		for _, id := range []string{"f1", "f2", "f3"} {
			w.Send("s", "say", id)
			time.Sleep(70 * time.Millisecond) // longer than a run, shorter than the debounce
		}
		w.Eventually("the last change is shown", func() bool { return ran.has("f3") })
		if ran.has("f1") || ran.has("f2") {
			t.Errorf("the effect ran for each change: %v", ran.lines)
		}
		p.Shutdown()
	})
}

// An event that waits for a later version of its program is tried again without a limit, and is logged at growing intervals.
func TestUserCode_AnEventThatWaitsForAVersionIsLoggedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		program := space.NewProgram("test")
		var attempts atomic.Int64
		if err := program.Handle("go", func(*space.Tx, *model.Event) (model.Value, error) {
			attempts.Add(1)
			return model.Value{}, &model.NewerError{Place: "order", Version: 2, Known: 1}
		}); err != nil {
			t.Fatal(err)
		}
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(program)}, nil)
		w.Send("s", "go", "e1")
		w.Pass(2 * time.Minute)
		if n := w.Log.Count("order has version 2"); n < 5 || n > 8 || attempts.Load() < 100 {
			t.Errorf("%d attempts have %d lines:\n%s", attempts.Load(), n, w.Log)
		}
		p.Shutdown()
	})
}
