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

// life starts a server whose handlers of hang do not return until they are released, and returns what
// it reads of the lane.
func (w *world) life(name string, u *unending) (*serving, *atomic.Int64) {
	w.Helper()
	var read atomic.Int64
	b := w.Server.Connect(name)
	return w.serveOn(worldtest.LaneCount{Bus: b, Read: &read}, b, ordered.Config{Name: name, Handlers: u.handlers, RunLimit: -1}), &read
}

// lifeOnceStuck is a world in which a server has handled n events of other keys behind one of alice that
// stands still, and has died.
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
		w.Fatal("this proves nothing")
	}
	first.crash()
}

// A key that stands still costs a takeover its own events, however many the others have handled
// behind them, and each of them is handled once, in order, when it goes on.
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
				t.Errorf("life %d has read %d events of the lane", life, got)
			}
			if f := w.look(); f.Partitions[0].Events > 4 {
				t.Errorf("%d events are said not to be handled", f.Partitions[0].Events)
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
			t.Errorf("the one after has read %d events of the lane", n)
		}
	})
}

// An event that somebody has removed from the lane is not waited for.
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

// Servers of an earlier version read more, and what was set aside before them stays true.
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

// Of a key that is set aside, events may stand behind where the lane is read from: it reads them for itself,
// after those before them, and that they are delivered as well says nothing.
func TestAside_WhatAKeyReadsForItselfIsNotDeliveredToItBefore(t *testing.T) {
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
		w.Send("bob", "hang", "b1") // which is not set aside yet
		w.Send("alice", "pay", "e3", `{"cents":1}`)
		w.Pass(4 * time.Second)
		if a := w.Server.LoadAhead(0); len(a.Aside) != 1 || a.Aside[0].Last <= a.UpTo {
			t.Fatalf("it proves nothing with %+v", a)
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

// asideRun is a world in which a key is set aside by a first server, a second is killed at one of its
// requests while it takes over and the key goes on, and a third ends it all.
func asideRun(t *testing.T, at crashAt) (labels []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck, free := newUnending(), newUnending()
		defer stuck.release()
		free.release()
		w.lifeOnceStuck(stuck, 14)
		if len(w.Server.LoadAhead(0).Aside) != 1 {
			t.Fatalf("nothing is set aside: %+v", w.Server.LoadAhead(0))
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
