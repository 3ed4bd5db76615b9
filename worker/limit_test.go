package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// unending is a program with handlers that do not return until release is called. It records how the goroutines
// that were given up ended.
type unending struct {
	*space.Program
	release func()
	nap     func(time.Duration)
	wake    func() // ends the handlers that release does not
	stuck   chan struct{}
	called  atomic.Int32 // handlers and nodes that have begun to wait
	came    atomic.Int32 // of those, the ones that used their transaction afterwards and were not stopped
}

func newUnending(t *testing.T) *unending {
	t.Helper()
	e := &unending{Program: book(t), stuck: make(chan struct{})}
	e.release = sync.OnceFunc(func() { close(e.stuck) })
	stubborn := make(chan struct{})
	e.wake = func() { close(stubborn) }
	err := errors.Join(
		e.Handle("stubborn", func(*space.Tx, *model.Event) (model.Value, error) { <-stubborn; return model.Value{}, nil }),
		e.Handle("leave", func(*space.Tx, *model.Event) (model.Value, error) { runtime.Goexit(); return model.Value{}, nil }),
		e.Handle("hang", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			tx.Set("before", ev.ID)
			e.called.Add(1)
			<-e.stuck
			tx.Set("late", ev.ID)
			tx.Send("other", "add", nil)
			e.came.Add(1)
			return model.Value{}, nil
		}),
		e.Handle("heed", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			tx.Set("before", ev.ID)
			e.called.Add(1)
			ctx := worker.Context(tx)
			<-ctx.Done()
			return model.Value{}, ctx.Err()
		}),
		e.Handle("nap", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			e.nap(28 * time.Second)
			tx.Set("napped", ev.ID)
			return model.Value{}, nil
		}),
		e.Handle("quick", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			e.called.Add(1)
			<-e.stuck
			return model.Value{}, nil
		}),
		e.Within("quick", 100*time.Millisecond),
		e.Handle("slow", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			e.nap(10 * time.Minute)
			return model.Value{}, nil
		}),
		e.Within("slow", -1),
		e.Handle("want", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			tx.Set("wanted", ev.ID)
			return model.Value{}, nil
		}),
		e.Handle("glimpse", func(tx *space.Tx, ev *model.Event) (model.Value, error) { return tx.Get("stuck"), nil }),
		e.Add(space.NodeSpec{ID: "stuck", Kind: space.Computation, Output: "stuck", Run: func(tx *space.Tx) (model.Value, error) {
			if !tx.Get("wanted").IsAbsent() {
				e.called.Add(1)
				<-e.stuck
			}
			return model.Int(1), nil
		}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (w *world) eventuallyWithin(d time.Duration, what string, is func() bool) {
	w.Helper()
	for began := time.Now(); !is(); w.Pass(time.Second) {
		if time.Since(began) > d {
			w.Fatalf("not within %s: %s; receipts of s: %v\n%s", d, what, w.Ends("s"), w.Log)
		}
	}
}

// A handler that never returns is given up three times, and its event becomes a dead letter that explains
// why. Later events are handled in the meantime, although none of the goroutines has returned; what these
// write and send when they do return is discarded.
func TestLimit_AHandlerThatNeverReturnsIsGivenUpAndTheSpaceContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program)}, nil)
		w.Send("s", "add", "e1")
		w.Send("s", "hang", "bad")
		w.Send("s", "add", "e2")
		w.Send("t", "add", "o1")
		began := time.Now()
		w.EventuallyEnds("s", "e1 handled 0", "bad failed 3", "e2 handled 0")
		if took := time.Since(began); took < 90*time.Second || took > 2*time.Minute {
			t.Errorf("three attempts of 30 s each have taken %s", took)
		}
		said := w.Receipts("s")[1].Error
		for _, part := range []string{"stream hang", "30s", "3 attempts", "action"} {
			if !strings.Contains(said, part) {
				t.Errorf("the receipt has error %q, want %q in it", said, part)
			}
		}
		if n := p.Stats().Abandoned; n != 3 || e.called.Load() != 3 {
			t.Errorf("%d goroutines count as given up after %d calls", n, e.called.Load())
		}
		if n := p.Figures().Abandoned; n != 3 {
			t.Errorf("the figures have %d", n)
		}
		e.release()
		w.Pass(time.Minute)
		if n := p.Stats().Abandoned; n != 0 {
			t.Errorf("%d goroutines count as given up after all have ended", n)
		}
		if n := p.Figures().Abandoned; n != 0 {
			t.Errorf("the figures have %d after all have ended", n)
		}
		if n := e.came.Load(); n != 0 {
			t.Errorf("%d goroutines used a transaction that was given up, and continued", n)
		}
		for _, doc := range []string{"late", "before"} {
			if v := w.Doc("s", doc); v != "absent" {
				t.Errorf("a write of a handler that was given up was committed: %s is %s", doc, v)
			}
		}
		w.wantHandled("t", "o1")
		w.Send("s", "add", "e3")
		w.EventuallyEnds("s", "e1 handled 0", "bad failed 3", "e2 handled 0", "e3 handled 0")
		p.Shutdown()
	})
}

// A worker that is stopped while a handler does not return gives the handler up, and Stop reports that the
// space's last changes are not saved.
func TestLimit_StopReportsASpaceThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{Handover: 5 * time.Minute}}, nil)
		w.Send("s", "add", "e1")
		w.Send("s", "hang", "bad")
		w.eventuallyWithin(time.Minute, "the handler is called", func() bool { return e.called.Load() == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		var limit *space.LimitError
		if err := p.Stop(ctx); !errors.As(err, &limit) || limit.Event != "bad" {
			t.Errorf("stop: %v", err)
		}
	})
}

// A handler that returns when its context ends is not given up: the attempt has failed and is retried like
// one with a transient error, until the event becomes a dead letter. Nothing of it is kept.
func TestLimit_AHandlerSeesItAsAContextThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: 8 * time.Second}}, nil)
		w.Send("s", "heed", "bad")
		w.Send("s", "add", "e1")
		w.EventuallyEnds("s", "bad failed 5", "e1 handled 0")
		said := w.Receipts("s")[0].Error
		if !strings.Contains(said, "event bad: the handler of stream heed has not returned within 8s.") {
			t.Errorf("the receipt has error %q", said)
		}
		if n := p.Stats().Abandoned; n != 0 || len(w.Takeovers("s")) != 1 {
			t.Errorf("%d goroutines count as given up; takeovers: %v", n, w.Takeovers("s"))
		}
		if v := w.Doc("s", "before"); v != "absent" {
			t.Errorf("a write of a failed attempt was committed: %s", v)
		}
		p.Shutdown()
	})
}

// A handler may have its own limit: longer, shorter or none. A handler that returns within it is never given
// up.
func TestLimit_AHandlerMayHaveItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program)}, nil)
		e.nap = func(d time.Duration) { time.Sleep(d) }
		w.Send("naps", "nap", "n1")
		w.Send("naps", "nap", "n2")
		w.Send("slow", "slow", "l1")
		w.Send("quick", "quick", "q1")
		began := time.Now()
		w.EventuallyEnds("quick", "q1 failed 3")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("three attempts of 100 ms, and a second each, have taken %s", took)
		}
		if said := w.Receipts("quick")[0].Error; !strings.Contains(said, "within 100ms") {
			t.Errorf("the receipt has error %q", said)
		}
		w.EventuallyEnds("naps", "n1 handled 0", "n2 handled 0")
		w.eventuallyWithin(11*time.Minute, "the handler without a limit ends", func() bool { return slices.Equal(w.Ends("slow"), []string{"l1 handled 0"}) })
		e.release()
		p.Shutdown()
	})
}

// A node that does not return is given up once and then rests. Neither the events of its space nor readers of
// its output wait for it.
func TestLimit_ANodeThatNeverReturnsRestsAndBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		var told []string
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), OnError: func(i space.ErrorInfo) { told = append(told, i.Node+": "+i.Err.Error()) }}, nil)
		w.Send("s", "glimpse", "g1")
		w.EventuallyEnds("s", "g1 handled 0")
		w.Send("s", "want", "e1")
		w.Send("s", "glimpse", "g2")
		w.Send("s", "add", "e2")
		w.EventuallyEnds("s", "g1 handled 0", "e1 handled 0", "g2 handled 0", "e2 handled 0")
		if got := w.Receipts("s")[2].Result.String(); got != "1" {
			t.Errorf("the event that reads the node's document found %s", got)
		}
		if n := e.called.Load(); n != 1 || p.Stats().Abandoned != 1 {
			t.Errorf("the node was called %d times, %d goroutines count as given up", n, p.Stats().Abandoned)
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], "stuck: node stuck has not returned within 30s and is given up") {
			t.Errorf("told were %q", told)
		}
		e.release()
		w.Pass(2 * time.Minute)
		if n := p.Stats().Abandoned; n != 0 {
			t.Errorf("%d goroutines count as given up after all have ended", n)
		}
		p.Shutdown()
	})
}

// A worker gives up at most a hundred goroutines: the next space stands still until one of them has returned.
func TestLimit_TheNumberOfGivenUpGoroutinesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: time.Second}}, nil)
		const spaces = 34 // at three attempts each, more than a hundred
		for i := range spaces {
			w.Send(fmt.Sprintf("s%d", i), "hang", "bad")
		}
		w.Pass(5 * time.Minute)
		if n := p.Stats().Abandoned; n != 100 {
			t.Errorf("%d goroutines are given up, want 100", n)
		}
		if n := w.Log.Count("has not returned within its limit and is not given up, as too many were"); n != 2 {
			t.Errorf("%d log lines about goroutines that are not given up, want 2", n)
		}
		e.release()
		for i := range spaces {
			w.eventuallyWithin(5*time.Minute, "all end", func() bool { return len(w.Receipts(fmt.Sprintf("s%d", i))) == 1 })
		}
		p.Shutdown()
	})
}

// When earlier goroutines have returned, a space that stands still gives its handler up after all.
func TestLimit_AStuckSpaceIsGivenUpWhenOthersHaveReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: time.Second}}, nil)
		for i := range 34 {
			w.Send(fmt.Sprintf("s%d", i), "hang", "bad")
		}
		w.Pass(5 * time.Minute)
		w.Send("last", "stubborn", "bad")
		w.Pass(time.Minute)
		e.release()
		w.EventuallyEnds("last", "bad failed 3")
		e.wake()
		p.Shutdown()
	})
}

// An effect may also use a context, which ends with its run: a handler that runs much later has its own, and
// does not fail.
func TestLimit_AContextIsThatOfOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		e.release()
		var of []context.Context
		err := e.Add(space.NodeSpec{ID: "asks", Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
			of = append(of, worker.Context(tx))
			return tx.Get("wanted"), of[len(of)-1].Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{Idle: time.Hour}}, nil)
		w.Send("s", "want", "a")
		w.EventuallyEnds("s", "a handled 0")
		w.Pass(40 * time.Second)
		w.Send("s", "want", "b")
		w.EventuallyEnds("s", "a handled 0", "b handled 0")
		p.Shutdown()
		for i, ctx := range of {
			if ctx.Err() == nil || i > 0 && ctx == of[i-1] {
				t.Errorf("the contexts of the runs were %v", of)
			}
		}
		if len(of) < 2 {
			t.Errorf("%d runs", len(of))
		}
	})
}

// A handler that ends its goroutine, as t.FailNow of a test does, is an attempt that never returned: its
// space continues, nothing waits for the attempt, and it does not count against the limit of goroutines that
// were given up.
func TestLimit_AHandlerThatEndsItsGoroutineIsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program), Options: worker.Options{RunLimit: -1}}, nil)
		w.Send("s", "leave", "bad")
		w.Send("s", "want", "good")
		w.eventuallyWithin(time.Minute, "both end", func() bool { return len(w.Ends("s")) == 2 })
		if got := w.Ends("s"); !strings.HasPrefix(got[0], "bad failed") || got[1] != "good handled 0" {
			t.Errorf("the outcomes are %v", got)
		}
		if n := p.Stats().Abandoned; n != 0 {
			t.Errorf("%d goroutines count as given up", n)
		}
		w.Send("s", "leave", "worse")
		w.Pass(time.Millisecond)
		p.Shutdown()
	})
}

// The next process also counts an attempt that was given up.
func TestLimit_AttemptsAreCountedAcrossACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(e.Program)}, nil)
		w.Send("s", "hang", "bad")
		w.eventuallyWithin(5*time.Minute, "the second attempt is running", func() bool { return e.called.Load() == 2 })
		p.Crash()
		p = w.process(worker.Config{ID: "w2", Programs: worldtest.Always(e.Program)}, nil)
		w.EventuallyEnds("s", "bad failed 3")
		if n := e.called.Load(); n != 3 {
			t.Errorf("the handler was called %d times", n)
		}
		e.release()
		p.Shutdown()
	})
}

// An attachment whose handler does not return ends with a reason; the owner continues.
func TestLimit_AnAttachmentEndsWithItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		e := newUnending(t)
		defer e.release()
		if err := e.Within("hang", 5*time.Second); err != nil {
			t.Fatal(err)
		}
		b := w.Server.Connect("app")
		defer b.Close()
		a, err := worker.Attach(w.Context(), b, worker.AttachConfig{ID: "app", Space: "s", Program: e.Program, Events: true})
		if err != nil {
			t.Fatal(err)
		}
		w.Send("s", "hang", "bad")
		<-a.Done()
		var limit *space.LimitError
		if _, err := a.Get(w.Context(), "n"); !errors.As(err, &limit) || limit.Event != "bad" {
			t.Errorf("the attachment ends with %v", err)
		}
		if err := a.Close(w.Context()); err != nil {
			t.Error(err)
		}
		e.release()
	})
}
