package live_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

func TestWatch_FirstTheValueThenEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		s := w.follow("n", 0)
		w.Eventually("the deletion is delivered", func() bool { return len(s.of(live.Deleted)) == 1 })
		for i := range 5 {
			w.send("add", 1)
			w.Eventually("the change is delivered", func() bool { return s.last() == strconv.Itoa(i+1) })
		}
		w.send("drop", 1)
		w.Eventually("the last deletion is delivered", func() bool { return len(s.of(live.Deleted)) == 2 })
		list := s.of(live.Value, live.Deleted)
		for i, e := range list {
			if i > 0 && e.Previous != list[i-1].Revision {
				t.Errorf("event %d replaces revision %d, but the one before has %d", i, e.Previous, list[i-1].Revision)
			}
		}
		if _, rev := w.logged("n"); list[len(list)-1].Revision != rev {
			t.Errorf("the last revision is %d, the log has %d", list[len(list)-1].Revision, rev)
		}
	})
}

// A watch is demand: the computations that its document needs run while it is open, and stop after that.
func TestWatch_IsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1)
		time.Sleep(time.Minute)
		if n := w.ran(); n != 0 {
			t.Fatalf("double ran %d times before the watch", n)
		}
		s := w.follow("double", 0)
		w.Eventually("the document is computed", func() bool { return s.last() == "2" })
		w.send("add", 1)
		w.Eventually("the document stays up to date", func() bool { return s.last() == "4" })
		_ = s.stop()
		// From now on only the answering worker renews the demand, and its next heartbeat reveals that the
		// client is gone.
		time.Sleep(2 * live.Heartbeat)
		n := w.ran()
		w.send("add", 1)
		w.settled(3)
		time.Sleep(time.Minute)
		if w.ran() != n {
			t.Errorf("double ran %d times after the last watch", w.ran()-n)
		}
	})
}

// A client that crashes neither cancels its watch nor renews anything.
func TestWatch_DemandEndsWhenItsClientCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1)
		vanishes := w.Server.Connect("vanishes")
		go func() { // ends when the client is killed
			_ = (&live.Client{Bus: vanishes}).Watch(context.Background(), live.Watch{Space: "s", Document: "double"}, func(live.Event) {})
		}()
		w.Eventually("the document is computed", func() bool { return w.ran() == 1 })
		vanishes.Kill()
		time.Sleep(2 * live.Heartbeat)
		w.send("add", 1)
		w.settled(2)
		time.Sleep(time.Minute)
		if n := w.ran(); n != 1 {
			t.Errorf("double ran %d times", n)
		}
	})
}

func TestWatch_AThousandWatchesOfADocumentCostOneRunPerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1)
		all := make([]*seen, 1000)
		for i := range all {
			all[i] = w.follow("double", 0)
		}
		for n := 1; n < 6; n++ {
			if n > 1 {
				w.send("add", 1)
			}
			want := strconv.Itoa(2 * n)
			for _, s := range all {
				w.Eventually("all watches have "+want, func() bool { return s.last() == want })
			}
		}
		if n := w.ran(); n != 5 {
			t.Errorf("double ran %d times for 5 states", n)
		}
	})
}

// A value that the client has is not delivered again; a newer one is delivered at once.
func TestWatch_FromARevisionDeliversOnlyNewerValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.worker("a", live.Config{})
		ask := func(from uint64) *seen { // directly at the service: a live.Client would drop repeated values
			return w.watching(func(ctx context.Context, s *seen) error {
				return p.Watch(ctx, live.Watch{Space: "s", Document: "n", From: live.At(from)}, s.add)
			})
		}
		w.send("add", 1)
		w.settled(1)
		_, first := w.logged("n")
		w.send("add", 1)
		w.settled(2)
		_, second := w.logged("n")
		behind, equal := ask(first), ask(second)
		w.Eventually("the watcher that is behind gets the value", func() bool { return behind.last() == "2" })
		time.Sleep(time.Minute)
		if n := len(equal.of(live.Value)); n > 0 {
			t.Errorf("%d values were delivered that the watcher knew", n)
		}
		if len(equal.of(live.Beating)) < 20 {
			t.Error("a watcher without a new value got no heartbeat")
		}
		w.send("add", 1)
		w.Eventually("all watches get the next value", func() bool { return behind.last() == "3" && equal.last() == "3" })
		if n := len(behind.of(live.Value)); n != 2 {
			t.Errorf("%d values", n)
		}
	})
}

// A worker that was frozen or cut off may be behind. A watch that begins there receives no outdated value,
// since the client may have seen a newer one at another worker.
func TestWatch_BeginsAtTheHeadOfTheLogAtAWorkerThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.worker("a", live.Config{})
		ask := func() *seen {
			return w.watching(func(ctx context.Context, s *seen) error {
				return p.Watch(ctx, live.Watch{Space: "s", Document: "n"}, s.add)
			})
		}
		w.send("add", 1)
		w.settled(1)
		here := ask()
		w.Eventually("the watch gets the present value", func() bool { return here.last() == "1" })
		p.asks.reading <- struct{}{} // the server is behind from now on
		w.send("add", 1)
		w.settled(2)
		for name, joins := range map[string]*seen{"the first": ask(), "the second": ask()} {
			time.Sleep(10 * time.Second)
			if list := joins.of(live.Value, live.Current); len(list) > 0 {
				t.Errorf("%s new watch received %+v", name, list)
			}
			defer w.Eventually("the watch gets the value and its status", func() bool { return joins.last() == "2" && len(joins.of(live.Current)) > 0 })
		}
		<-p.asks.reading
		w.Eventually("the earlier watch gets the value too", func() bool { return here.last() == "2" })
		late := ask()
		w.Eventually("a later watch gets the value", func() bool { return late.last() == "2" })
	})
}

// A watch resumes at a worker that started after the store went back and does not know of that: both while
// the log is shorter than the client's revision, and after other documents have made it longer.
func TestWatch_ResumesAtAWorkerThatStartedAfterTheStoreWentBack(t *testing.T) {
	for name, longer := range map[string]bool{"the log is shorter": false, "the log is longer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.worker("a", live.Config{})
				w.send("add", 1)
				w.settled(1)
				time.Sleep(time.Minute) // so that the state is saved
				at := w.Server.Head("s")
				w.send("add", 2)
				w.settled(3)
				_, known := w.logged("n")
				a.Crash()
				w.Server.LoseLog(0, at)
				w.Server.LoseLane(0, 1)
				b := w.worker("b", live.Config{})
				if longer {
					for w.Server.Head("s") <= known {
						w.send("drop-nothing", 1) // refused, with a receipt
						w.Pass(time.Second)
					}
				}
				s := w.watching(func(ctx context.Context, s *seen) error {
					return b.Watch(ctx, live.Watch{Space: "s", Document: "n", From: live.At(known)}, s.add)
				})
				w.Eventually("the watch gets the present value", func() bool { return s.last() == "1" })
				if n := len(s.of(live.Rewound)); n != 1 {
					t.Errorf("Rewound was delivered %d times", n)
				}
				w.send("add", 1)
				w.Eventually("the watch gets later values", func() bool { return s.last() == "2" })
				time.Sleep(time.Minute)
				if n := len(s.of(live.Rewound)); n != 1 {
					t.Errorf("Rewound was delivered %d times", n)
				}
			})
		})
	}
}

// A watch survives the crash of any worker, and never goes back.
func TestWatch_SurvivesTheCrashOfAnyWorker(t *testing.T) {
	for name, end := range map[string]func(*process){"killed": func(p *process) { p.Crash() }, "stopped": func(p *process) { p.Shutdown() }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var all []*seen
				workers := []*process{w.worker("a", live.Config{}), w.worker("b", live.Config{}), w.worker("c", live.Config{})}
				for range 20 {
					all = append(all, w.follow("double", 0))
				}
				for n := 1; n <= 8; n++ {
					w.send("add", 1)
					if n%2 == 0 { // any of: the answering worker, the owner, both, neither
						end(workers[0])
						workers = append(workers[1:], w.worker("w"+strconv.Itoa(n), live.Config{}))
					}
					want := strconv.Itoa(2 * n)
					for _, s := range all {
						w.Eventually("all watches have "+want, func() bool { return s.last() == want })
					}
				}
				for _, s := range all {
					if err := s.stop(); !errors.Is(err, context.Canceled) {
						t.Errorf("a watch ended: %v", err)
					}
				}
			})
		})
	}
}

// lossy is a connection that loses one value.
type lossy struct {
	*membus.Bus
	lost atomic.Bool
}

func (b *lossy) Listen(ctx context.Context, endpoint string, q []byte, deliver func(model.Part)) error {
	return b.Bus.Listen(ctx, endpoint, q, func(p model.Part) {
		if string(p.Data) == "2" && b.lost.CompareAndSwap(false, true) {
			return
		}
		deliver(p)
	})
}

// A value that is lost without the client's notice is delivered later: heartbeats carry the revision that the
// client should have.
func TestWatch_RecoversALostValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		bus := &lossy{Bus: w.Client}
		w.client.Bus = bus
		s := w.follow("n", 0)
		for n := 1; n <= 2; n++ {
			w.send("add", 1)
			w.settled(n)
			time.Sleep(2 * live.Heartbeat)
		}
		if !bus.lost.Load() || s.last() != "2" {
			t.Errorf("lost: %v; the client has %s", bus.lost.Load(), s.last())
		}
	})
}

// A worker that leaves announces it, so clients need not detect its silence.
func TestWatch_MovesAtOnceWhenItsWorkerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		s := w.follow("n", 0)
		w.Eventually("the watch is connected", func() bool { return len(s.of(live.Deleted)) == 1 })
		w.worker("b", live.Config{})
		time.Sleep(time.Second)
		left := time.Now()
		a.Shutdown()
		w.Eventually("the watch is connected again", func() bool { return len(s.of(live.Connected)) == 2 })
		if took := time.Since(left); took > live.Heartbeat {
			t.Errorf("the move took %s", took)
		}
		if broken := s.of(live.Broken); len(broken) != 1 || broken[0].Err != nil {
			t.Errorf("received %+v, want an announced move", broken)
		}
	})
}

// A watch in the worker's own process receives one Moved and ends; afterwards the server starts nothing new.
func TestWatch_EndsWithTheServerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		s := w.watching(func(ctx context.Context, s *seen) error {
			return a.Server.Watch(ctx, live.Watch{Space: "s", Document: "n"}, s.add)
		})
		w.Eventually("the watch has begun", func() bool { return len(s.of(live.Deleted)) == 1 })
		a.Shutdown()
		if err := s.stop(); !errors.Is(err, live.ErrMoved) || len(s.of(live.Moved)) != 1 {
			t.Errorf("the watch ended with %v after %d Moved", err, len(s.of(live.Moved)))
		}
		_, err := a.Server.Get(t.Context(), live.Get{Space: "s", Document: "n"})
		if said, is := errors.AsType[*model.ServiceError](err); !is || said.Code != model.CodeUnavailable || !strings.Contains(said.Text, "this worker is leaving") {
			t.Errorf("a get afterwards: %v", err)
		}
	})
}

// A watcher that reads nothing holds one value, and gets the newest one when it is ready.
func TestWatch_ASlowWatcherGetsTheNewestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.worker("a", live.Config{})
		ready := make(chan struct{})
		s := w.watching(func(ctx context.Context, s *seen) error {
			return p.Watch(ctx, live.Watch{Space: "s", Document: "n"}, func(e live.Event) error {
				_ = s.add(e)
				<-ready
				return nil
			})
		})
		w.Eventually("the watch has begun", func() bool { return len(s.of(live.Deleted)) == 1 })
		w.send("add", 1)
		w.settled(1)
		time.Sleep(time.Second)
		for n := 2; n <= 100; n++ {
			w.send("add", 1)
			w.settled(n)
		}
		time.Sleep(time.Second) // the last value has arrived, too
		close(ready)
		w.Eventually("the watch has the newest value", func() bool { return s.last() == "100" })
		list := s.of(live.Value)
		if len(list) != 1 || list[0].Previous == 0 || list[0].Previous <= s.of(live.Deleted)[0].Revision {
			t.Errorf("received %+v", list)
		}
	})
}

func TestWatch_IsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{MaxWatches: 2})
		one, two := w.follow("n", 0), w.follow("n", 0)
		w.Eventually("two watches are answered", func() bool { return len(one.of(live.Deleted))+len(two.of(live.Deleted)) == 2 })
		err := w.Client.Listen(t.Context(), live.AskWatch, question(live.Watch{Space: "s", Document: "n"}), func(p model.Part) { t.Errorf("%+v", p) })
		var said *model.ServiceError
		if !errors.As(err, &said) || said.Code != model.CodeUnavailable {
			t.Errorf("the third watch: %v", err)
		}
		three := w.follow("n", 0)
		_ = one.stop()
		w.Eventually("the third watch is admitted after one has ended", func() bool { return len(three.of(live.Deleted)) == 1 })
	})
}

func TestWatch_ReportsImpossibleRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		if err := w.client.Watch(t.Context(), live.Watch{Space: "s", Document: "n"}, nil); !errors.Is(err, model.ErrNoResponder) || time.Since(began) > 5*time.Second {
			t.Errorf("without a worker: %v after %s", err, time.Since(began))
		}
		w.worker("a", live.Config{})
		for _, q := range []string{`{"space":"s"}`, `{"space":"s","document":"a.b"}`, `{"space":"s","document":"n","form":3}`, `n`, ``} {
			err := w.Client.Listen(t.Context(), live.AskWatch, []byte(q), nil)
			var said *model.ServiceError
			if !errors.As(err, &said) || said.Code != model.CodeBadRequest {
				t.Errorf("%q: %v", q, err)
			}
		}
	})
}
