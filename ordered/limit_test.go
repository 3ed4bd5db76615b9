package ordered_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// unending are handlers that do not return until release is called, beside those of accounts.
type unending struct {
	handlers map[string]ordered.Handler
	release  func()
	stuck    chan struct{}
	called   atomic.Int32 // calls of handlers that wait
	came     atomic.Int32 // of those, the ones that used their transaction afterwards and were not stopped
}

func newUnending() *unending {
	u := &unending{handlers: accounts(), stuck: make(chan struct{})}
	u.release = sync.OnceFunc(func() { close(u.stuck) })
	u.handlers["hang"] = func(tx *ordered.Tx, ev *model.Event) (any, error) {
		tx.Set("before", ev.ID)
		u.called.Add(1)
		<-u.stuck
		tx.Set("late", ev.ID)
		tx.Send(ordered.To("other"), "pay", payment{Cents: 1})
		u.came.Add(1)
		return nil, nil
	}
	u.handlers["heed"] = func(tx *ordered.Tx, ev *model.Event) (any, error) {
		tx.Set("before", ev.ID)
		u.called.Add(1)
		<-tx.Context().Done()
		return nil, tx.Context().Err()
	}
	u.handlers["nap"] = func(_ *ordered.Tx, ev *model.Event) (any, error) {
		var d string
		_ = ev.Payload.Decode(&d)
		long, err := time.ParseDuration(d)
		_ = pause.For(context.Background(), long)
		return nil, err
	}
	u.handlers["leave"] = func(*ordered.Tx, *model.Event) (any, error) { runtime.Goexit(); return nil, nil }
	return u
}

// A handler that never returns is given up three times, and its event becomes a dead letter that explains
// why. Earlier events are handled once, and later ones in the meantime, although none of the goroutines has
// returned; what these write and send when they do return is discarded.
func TestLimit_AHandlerThatNeverReturnsIsGivenUpAndTheKeyContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		u := newUnending()
		defer u.release()
		w.sendAll("alice", 100) // in one group with it
		w.Send("alice", "hang", "bad")
		w.Send("alice", "pay", "e101", `{"cents":1}`)
		w.Send("bob", "pay", "o1", `{"cents":1}`)
		p := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers}, nil)
		began := time.Now()
		var want []string
		for _, id := range worldtest.Numbered(100) {
			want = append(want, id+" handled 0")
		}
		want = append(want, "bad failed 3", "e101 handled 0")
		w.EventuallyEnds("alice", want...)
		if took := time.Since(began); took < 90*time.Second || took > 2*time.Minute {
			t.Errorf("three attempts of 30 s each have taken %s", took)
		}
		said := w.Receipts("alice")[100].Error
		for _, part := range []string{"stream hang", "30s", "3 attempts", "Within"} {
			if !strings.Contains(said, part) {
				t.Errorf("the receipt has error %q, want %q in it", said, part)
			}
		}
		w.Eventually("the dead letter is written", func() bool { return len(w.dead("alice")) == 1 })
		if n := u.called.Load(); n != 3 {
			t.Errorf("the handler was called %d times", n)
		}
		// The second attempt follows within a minute of the first, and counts as the same fault.
		for what, times := range map[string]int{"a handler is given up": 3, "a handler has not returned; nothing else": 2} {
			if n := w.Log.Count(what); n != times {
				t.Errorf("%q is logged %d times, want %d", what, n, times)
			}
		}
		u.release()
		w.Pass(time.Minute)
		if n := u.came.Load(); n != 0 {
			t.Errorf("%d goroutines used a transaction that was given up, and continued", n)
		}
		for _, doc := range []string{"late", "before"} {
			if v := w.Doc("alice", doc); v != "absent" {
				t.Errorf("a write of a handler that was given up was committed: %s is %s", doc, v)
			}
		}
		w.wantDoc("alice", "balance", "101")
		w.WantEnded("bob", "o1")
		w.WantEnded("other")
		w.WantPosition(0, 103)
		w.stop(p)
	})
}

// A handler that returns when its context ends is not given up: the attempt has failed and is retried like
// one with a transient error. Nothing of it is kept.
func TestLimit_AHandlerSeesItAsAContextThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		u := newUnending()
		p := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers, RunLimit: 8 * time.Second}, nil)
		w.Send("alice", "heed", "bad")
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.EventuallyEnds("alice", "bad failed 5", "e1 handled 0")
		if said := w.Receipts("alice")[0].Error; !strings.Contains(said, "event bad: the handler of stream heed has not returned within 8s.") {
			t.Errorf("the receipt has error %q", said)
		}
		if by := w.Takeovers("alice"); len(by) != 1 {
			t.Errorf("takeovers: %v", by)
		}
		if v := w.Doc("alice", "before"); v != "absent" {
			t.Errorf("a write of a failed attempt was committed: %s", v)
		}
		w.stop(p)
	})
}

// A stream may have its own limit: longer, shorter or none. A handler that returns within it is never given
// up, however many run in a row.
func TestLimit_AStreamMayHaveItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		u := newUnending()
		defer u.release()
		u.handlers["quick"], u.handlers["endless"] = u.handlers["nap"], u.handlers["nap"]
		within := map[string]time.Duration{"quick": 100 * time.Millisecond, "endless": -1}
		p := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers, Within: within}, nil)
		for i := range 4 {
			w.Send("naps", "nap", fmt.Sprint("n", i), `"28s"`)
		}
		w.Send("quick", "quick", "q1", `"5s"`)
		w.Send("quick", "quick", "q2", `"50ms"`)
		w.Send("endless", "endless", "s1", `"5m0s"`)
		w.EventuallyEnds("naps", "n0 handled 0", "n1 handled 0", "n2 handled 0", "n3 handled 0")
		w.EventuallyEnds("quick", "q1 failed 3", "q2 handled 0")
		w.EventuallyEnds("endless", "s1 handled 0")
		w.stop(p)
	})
}

// A handler that ends its goroutine is an attempt that never returned, and its key continues.
func TestLimit_AHandlerThatEndsItsGoroutineIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.serve(ordered.Config{Name: "o1", Handlers: newUnending().handlers}, nil)
		w.Send("alice", "leave", "bad")
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.EventuallyEnds("alice", "bad failed 3", "e1 handled 0")
		if said := w.Receipts("alice")[0].Error; !strings.Contains(said, "ended its goroutine") {
			t.Errorf("the receipt has error %q", said)
		}
		w.Pass(5 * time.Second)
		w.WantPosition(0, 2)
		w.stop(p)
	})
}

// Attempts are counted across servers, even if one takes over from a live server.
func TestLimit_AttemptsAreCountedAcrossServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		u := newUnending()
		defer u.release()
		p1 := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers}, nil)
		w.Send("alice", "hang", "bad")
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.Eventually("the second attempt is running", func() bool { return u.called.Load() == 2 })
		w.stop(p1)
		p2 := w.serve(ordered.Config{Name: "o2", Handlers: u.handlers}, nil)
		w.EventuallyEnds("alice", "bad failed 3", "e1 handled 0")
		if n := u.called.Load(); n != 3 {
			t.Errorf("the handler was called %d times", n)
		}
		w.stop(p2)
	})
}

// A server that is stopped while a handler does not return ends, and nothing of the transaction is kept,
// whatever the handler does later.
func TestLimit_AServerThatIsStoppedCutsAHandlerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		u := newUnending()
		defer u.release()
		p := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers, RunLimit: -1}, nil)
		w.Send("alice", "hang", "bad")
		w.Eventually("the handler is called", func() bool { return u.called.Load() == 1 })
		began := time.Now()
		p.cancel()
		if err := <-p.ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the server took %s to stop", took)
		}
		head, err := w.Client.Head(context.Background(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		u.release()
		w.Pass(time.Minute)
		if now, err := w.Client.Head(context.Background(), "alice"); err != nil || now != head {
			t.Errorf("the log grew from %d to %d, %v", head, now, err)
		}
		p.bus.Close()
	})
}

// At most 100 goroutines of a server count as given up. Beyond that a key stands still, which is logged,
// until some have returned.
func TestLimit_TheNumberOfGivenUpGoroutinesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		u := newUnending()
		defer u.release()
		p := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers, RunLimit: time.Second}, nil)
		for i := range 60 {
			w.Send(fmt.Sprint("k", i), "hang", "bad")
		}
		w.Pass(time.Minute)
		if n := w.Log.Count("a handler is given up"); n != 100 {
			t.Errorf("%d goroutines were given up", n)
		}
		if w.Log.Count("too many were that have not returned since") == 0 {
			t.Error("the limit was not logged")
		}
		u.release()
		for i := range 60 {
			w.EventuallyEnded(fmt.Sprint("k", i), 1)
		}
		w.stop(p)
	})
}
