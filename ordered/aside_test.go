package ordered_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/ordered"
)

// life starts a server whose hang handlers do not return until they are released, and returns the number of
// lane events that it has read.
func (w *world) life(name string, u *unending) (*serving, *atomic.Int64) {
	w.Helper()
	var read atomic.Int64
	b := w.Server.Connect(name)
	return w.serveOn(worldtest.LaneCount{Bus: b, Read: &read}, b, ordered.Config{Name: name, Handlers: u.handlers, RunLimit: -1}), &read
}

// lifeOnceStuck runs a server that handles n events of other keys after one of alice that is stuck, and then
// dies.
func (w *world) lifeOnceStuck(u *unending, n int) {
	w.Helper()
	first, _ := w.life("o1", u)
	w.Send("alice", "hang", "e1")
	w.Send("alice", "pay", "e2", `{"cents":1}`)
	for i := range n {
		w.Send(fmt.Sprint("well", i%7), "pay", fmt.Sprint("e", i), `{"cents":1}`)
	}
	w.Send("alice", "pay", "e3", `{"cents":1}`)
	w.Send("beside", "pay", "b1", `{"cents":1}`)
	w.Pass(15 * time.Second)
	if w.WantPosition(0, 0); w.Failed() {
		w.Fatal("the position is not held back, which the test needs")
	}
	first.crash()
}

// A takeover reads again only the stuck key's own events, however many events of other keys were handled
// after them. Once the key continues, each of its events is handled once, in order.
func TestAside_ATakeoverReadsOnlyTheStuckSpacesEventsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		const n = 500
		stuck := newUnending()
		defer stuck.release()
		w.lifeOnceStuck(stuck, n)
		for life := range 2 { // a third would give the handler up
			p, read := w.life(fmt.Sprint("o", life+2), stuck)
			w.Send("well0", "pay", fmt.Sprint("life", life), `{"cents":1}`)
			w.EventuallyEnded("well0", n/7+1+life+1)
			w.Pass(10 * time.Second)
			if got := read.Load(); got < 1 || got > 5 {
				t.Errorf("server %d read %d events of the lane", life, got)
			}
			if f := w.look(); f.Partitions[0].Events > 4 {
				t.Errorf("%d events count as unhandled", f.Partitions[0].Events)
			}
			w.Send("alice", "pay", fmt.Sprint("l", life), `{"cents":1}`)
			w.Pass(time.Second)
			p.crash()
		}
		free := newUnending()
		free.release()
		last, _ := w.life("last", free)
		w.EventuallyEnded("alice", 5)
		w.Send("alice", "pay", "e4", `{"cents":1}`)
		w.EventuallyEnded("alice", 6)
		w.WantEnded("alice", "e1", "e2", "e3", "l0", "l1", "e4")
		w.Pass(10 * time.Second)
		w.WantPosition(0, w.Server.LaneEnd(0))
		w.stop(last)
		_, read := w.life("after", free)
		w.Pass(10 * time.Second)
		if n := read.Load(); n != 0 {
			t.Errorf("the next server read %d events of the lane", n)
		}
	})
}

// The server does not wait for an event that was removed from the lane.
func TestAside_ARemovedEventIsNotWaitedFor(t *testing.T) {
	for gone := range uint64(4) {
		t.Run(fmt.Sprintf("up to %d", gone), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				stuck, free := newUnending(), newUnending()
				defer stuck.release()
				free.release()
				w.lifeOnceStuck(stuck, 0) // its events are at 1, 2 and 3
				w.Server.PurgeLane(0, gone, 0)
				last, _ := w.life("o2", free)
				w.Send("alice", "pay", "e4", `{"cents":1}`)
				want := append([]string{"e1", "e2", "e3"}[gone:], "e4")
				w.EventuallyEnded("alice", len(want))
				w.WantEnded("alice", want...)
				w.Pass(10 * time.Second)
				w.WantPosition(0, w.Server.LaneEnd(0))
				w.stop(last)
			})
		})
	}
}

// Servers of an earlier version read more, and what was set aside before them stays valid.
func TestAside_ServersOfAnEarlierVersionLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck, free := newUnending(), newUnending()
		defer stuck.release()
		free.release()
		w.lifeOnceStuck(stuck, 50)
		b := w.Server.Connect("o2")
		p2 := w.serveOn(worldtest.Elder{Bus: b}, b, ordered.Config{Name: "o2", Handlers: stuck.handlers, RunLimit: -1})
		w.Send("well0", "pay", "more", `{"cents":1}`)
		w.EventuallyEnded("well0", 9)
		w.Pass(10 * time.Second)
		p2.crash()
		p3, _ := w.life("o3", free)
		w.EventuallyEnded("alice", 3)
		w.WantEnded("alice", "e1", "e2", "e3")
		w.wantDoc("well0", "balance", "9")
		w.Pass(10 * time.Second)
		w.WantPosition(0, w.Server.LaneEnd(0))
		w.stop(p3)
	})
}

// Some events of a key that is set aside may lie after the position from which the lane is read. The key
// reads them itself, after earlier ones; their delivery from the lane does not change that.
func TestAside_AKeyReadsItsOwnEventsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck, free := newUnending(), newUnending()
		defer stuck.release()
		free.release()
		p, _ := w.life("o1", stuck)
		w.Send("alice", "hang", "e1")
		w.Send("alice", "pay", "e2", `{"cents":1}`)
		w.Pass(10 * time.Second)
		w.Send("well", "pay", "w1", `{"cents":1}`)
		w.Send("bob", "hang", "b1") // not set aside yet
		w.Send("alice", "pay", "e3", `{"cents":1}`)
		w.Pass(4 * time.Second)
		if a := w.Server.LoadAhead(0); len(a.Aside) != 1 || a.Aside[0].Last <= a.UpTo {
			t.Fatalf("alice is not set aside past the position, which the test needs: %+v", a)
		}
		p.crash()
		p2, _ := w.life("o2", free)
		w.EventuallyEnded("alice", 3)
		w.EventuallyEnded("bob", 1)
		w.Send("alice", "pay", "e4", `{"cents":1}`)
		w.EventuallyEnded("alice", 4)
		w.WantEnded("alice", "e1", "e2", "e3", "e4")
		w.Pass(10 * time.Second)
		w.WantPosition(0, w.Server.LaneEnd(0))
		w.stop(p2)
	})
}

// asideRun is a run in which a first server sets a key aside. A second is killed at one of its requests while
// it takes over and the key continues, and a third finishes.
func asideRun(t *testing.T, at crashAt) (labels []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck, free := newUnending(), newUnending()
		defer stuck.release()
		free.release()
		w.lifeOnceStuck(stuck, 14)
		if len(w.Server.LoadAhead(0).Aside) != 1 {
			t.Fatalf("no key is set aside: %+v", w.Server.LoadAhead(0))
		}
		d := &dying{at: at}
		ready := make(chan struct{})
		cfg := ordered.Config{Name: "o2", Handlers: free.handlers, Checkpoint: 300 * time.Millisecond, Idle: 400 * time.Millisecond}
		p := w.serve(cfg, func(op membus.Op) membus.Fate {
			<-ready
			return d.hook(op)
		})
		d.p.Store(p)
		close(ready)
		w.Send("well0", "pay", "more", `{"cents":1}`)
		w.Send("alice", "pay", "e4", `{"cents":1}`)
		w.Pass(3 * time.Second)
		p.crash()
		last, _ := w.life("o3", free)
		w.EventuallyEnded("alice", 4)
		w.EventuallyEnded("well0", 3)
		w.Pass(5 * time.Second)
		w.WantEnded("alice", "e1", "e2", "e3", "e4")
		w.wantDoc("alice", "balance", "3")
		w.wantDoc("well0", "balance", "3")
		w.WantPosition(0, w.Server.LaneEnd(0))
		w.stop(last)
		labels = d.labels
	})
	return labels
}

func TestAside_ACrashAtAnyRequestLosesNothing(t *testing.T) {
	whole := asideRun(t, crashAt{})
	if len(whole) < 15 {
		t.Fatalf("only %v", whole)
	}
	for n := range len(whole) + 1 {
		for _, after := range []bool{false, true} {
			asideRun(t, crashAt{int64(n + 1), after})
			if t.Failed() {
				t.Fatalf("killed at request %d of %v (done: %v)", n+1, whole, after)
			}
		}
	}
}
