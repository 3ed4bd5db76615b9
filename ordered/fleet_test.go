package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func TestFleet_TwoServersThatDisagreeApplyNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		// Each server takes the other for dead, so both serve all keys.
		p1 := w.serve(ordered.Config{Name: "o1", TTL: time.Millisecond}, nil)
		p2 := w.serve(ordered.Config{Name: "o2", TTL: time.Millisecond}, nil)
		for i := range 100 {
			w.Send("alice", "pay", fmt.Sprint("e", i+1), `{"cents":1,"to":"bob"}`)
			w.Pass(50 * time.Millisecond)
		}
		w.EventuallyEnded("alice", 100)
		w.EventuallyEnded("bob", 100)
		w.WantEnded("alice", worldtest.Numbered(100)...)
		w.wantDoc("bob", "balance", "100")
		if n := len(w.Takeovers("alice")); n < 3 {
			t.Errorf("%d takeovers: the test needs servers that disagree", n)
		}
		w.stop(p1)
		w.stop(p2)
	})
}

func TestFleet_ServersShareThePartitionsAndOneStandsInForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		p1 := w.serve(ordered.Config{Name: "o1"}, nil)
		p2 := w.serve(ordered.Config{Name: "o2"}, nil)
		w.Pass(3 * time.Second)
		var keys []string
		for i := range 40 {
			keys = append(keys, fmt.Sprint("k", i))
		}
		all := func(id string) {
			for _, k := range keys {
				w.Send(k, "pay", id, `{"cents":1}`)
			}
		}
		all("e1")
		w.Pass(3 * time.Second)
		by := map[string]int{}
		for _, k := range keys {
			w.WantEnded(k, "e1")
			by[w.Takeovers(k)[0][:2]]++
		}
		if by["o1"] < 5 || by["o2"] < 5 {
			t.Errorf("the servers did not share: %v", by)
		}
		p1.crash()
		all("e2")
		w.Pass(3 * time.Second)
		for _, k := range keys {
			w.WantEnded(k, "e1", "e2")
		}
		p3 := w.serve(ordered.Config{Name: "o3"}, nil)
		w.Pass(3 * time.Second)
		w.stop(p2)
		all("e3")
		w.Pass(2 * time.Second)
		for _, k := range keys {
			w.WantEnded(k, "e1", "e2", "e3")
		}
		w.stop(p3)
	})
}

// A handover passes a partition from one server to the next: the new owner waits until the old one has saved
// and released it, and no append is refused.
func TestFleet_AHandoverCostsNoRefusedAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		sent := 0
		pays := func(n int) {
			for range n {
				sent++
				for k := range 20 {
					w.Send(fmt.Sprint("k", k), "pay", fmt.Sprint("e", sent), `{"cents":1}`)
				}
				w.Pass(50 * time.Millisecond)
			}
		}
		p1 := w.serve(ordered.Config{Name: "o1"}, nil)
		pays(20)
		p2 := w.serve(ordered.Config{Name: "o2"}, nil) // it gets some of the partitions
		pays(60)
		before := w.look()
		w.stop(p1) // and then all of them
		pays(20)
		w.Pass(3 * time.Second)
		for k := range 20 {
			w.EventuallyEnded(fmt.Sprint("k", k), sent)
		}
		moved := 0
		for k := range 20 {
			moved += len(w.Takeovers(fmt.Sprint("k", k))) - 1
		}
		if moved < 20 {
			t.Errorf("keys were taken over %d times, which is too few", moved)
		}
		refused := uint64(0)
		for _, f := range []*fleet.Fleet{before, w.look()} {
			for i := range f.Workers {
				refused += f.Workers[i].Figures.Refused
			}
		}
		if refused > 0 {
			t.Errorf("%d appends were refused", refused)
		}
		w.stop(p2)
	})
}

// During an outage of the store no server is heard, and none is taken for dead.
func TestFleet_AnOutageOfTheStoreMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		p1 := w.serve(ordered.Config{Name: "o1"}, nil)
		p2 := w.serve(ordered.Config{Name: "o2"}, nil)
		w.Pass(3 * time.Second)
		keys := []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"}
		for _, k := range keys {
			w.Send(k, "pay", "e1", `{"cents":1}`)
		}
		w.Pass(time.Second)
		w.Server.Disconnect()
		w.Pass(45 * time.Second) // less than it takes to evict an idle key
		w.Server.Reconnect()
		for _, k := range keys {
			w.Send(k, "pay", "e2", `{"cents":1}`)
		}
		w.Pass(20 * time.Second)
		for _, k := range keys {
			w.WantEnded(k, "e1", "e2")
			if n := len(w.Takeovers(k)); n != 1 {
				t.Errorf("key %s was taken over %d times", k, n)
			}
		}
		w.stop(p1)
		w.stop(p2)
	})
}

func TestFleet_AServerThatHangsAndContinuesChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var hung atomic.Bool
		p1 := w.serve(ordered.Config{Name: "o1"}, func(membus.Op) membus.Fate {
			for hung.Load() {
				w.Pass(time.Second)
			}
			return membus.Deliver
		})
		w.sendAll("alice", 3)
		w.EventuallyEnded("alice", 3)
		hung.Store(true)
		w.Send("alice", "pay", "e4", `{"cents":1}`) // p1 handles it, and cannot append
		w.Pass(time.Second)
		p2 := w.serve(ordered.Config{Name: "o2", TTL: 2 * time.Second}, nil)
		w.EventuallyEnded("alice", 4)
		w.Send("alice", "pay", "e5", `{"cents":1}`)
		w.EventuallyEnded("alice", 5)
		if last := w.Takeovers("alice"); !strings.HasPrefix(last[len(last)-1], "o2-") {
			t.Fatalf("takeovers by %v", last)
		}
		hung.Store(false)
		w.Send("alice", "pay", "e6", `{"cents":1}`)
		w.Pass(30 * time.Second)
		w.WantEnded("alice", worldtest.Numbered(6)...)
		w.wantDoc("alice", "balance", "6")
		w.stop(p1)
		w.stop(p2)
	})
}

func TestFleet_LostAndLateAnswersAreResolvedToWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		random := rand.New(rand.NewPCG(1, 2))
		hook := func(op membus.Op) membus.Fate {
			if op.Try > 5 || !slices.Contains([]string{"append", "send", "save", "save-position", "bury"}, op.Label) {
				return membus.Deliver
			}
			return []membus.Fate{membus.Deliver, membus.DropAck, membus.DropRequest, membus.Duplicate, membus.Late}[random.IntN(5)]
		}
		p := w.serve(ordered.Config{Name: "o1"}, hook)
		for i := range 200 {
			w.Send("alice", "pay", fmt.Sprint("e", i+1), `{"cents":1,"to":"bob"}`)
			w.Pass(20 * time.Millisecond)
			p.bus.Release()
		}
		w.EventuallyEnded("alice", 200)
		w.Eventually("bob has everything", func() bool { p.bus.Release(); return len(w.Receipts("bob")) == 200 })
		w.WantEnded("alice", worldtest.Numbered(200)...)
		w.wantDoc("alice", "balance", "200")
		w.wantDoc("bob", "balance", "200")
		w.stop(p)
	})
}

func TestFleet_AHandlerThatKillsItsProcessIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var tries atomic.Int32
		var starting sync.Mutex // a process may reach the handler before it is the current one
		var current *serving
		h := accounts()
		h["kill"] = func(*ordered.Tx, *model.Event) (any, error) {
			tries.Add(1)
			starting.Lock()
			defer starting.Unlock()
			current.crash()
			return nil, nil
		}
		w.Send("alice", "kill", "k")
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		for i := range 20 {
			starting.Lock()
			p := w.serve(ordered.Config{Name: fmt.Sprint("o", i), Handlers: h}, nil)
			current = p
			starting.Unlock()
			w.Pass(10 * time.Second)
			p.crash()
		}
		w.WantEnded("alice", "k", "e1")
		rc := w.Receipts("alice")[0]
		if rc.Outcome != model.Failed || !strings.Contains(rc.Error, "never came back") || tries.Load() > 6 {
			t.Errorf("%+v after %d tries", rc, tries.Load())
		}
	})
}

func TestFleet_AKeyIsEvictedAndLoadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.serve(ordered.Config{Name: "o1", Idle: time.Second}, nil)
		for i := range 5 {
			w.Send("alice", "pay", fmt.Sprint("e", i+1), `{"cents":1}`)
			w.Pass(time.Minute)
			if n := len(w.Takeovers("alice")); n != i+1 {
				t.Errorf("%d takeovers after %d events", n, i+1)
			}
			if got, want := w.Server.LoadPosition(0, "lane"), uint64(i+1); got != want {
				t.Errorf("the position is %d, want %d", got, want)
			}
		}
		w.wantDoc("alice", "balance", "5")
		w.stop(p)
	})
}

func TestFleet_OnlyOldDataIsPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, membus.Config{Partitions: 1, Horizon: time.Hour})
		p := w.serve(ordered.Config{Name: "o1", History: 15 * time.Minute}, nil)
		w.sendAll("alice", 10)
		w.Send("alice", "pay", "last", `{"cents":1,"to":"bob"}`)
		w.Pass(5 * time.Minute)
		if n := len(w.Server.ReadLog("alice", 0, 100)); n < 2 {
			t.Errorf("%d commits after five minutes", n)
		}
		w.Pass(40 * time.Minute)
		if n := len(w.Server.ReadLog("alice", 0, 100)); n != 1 {
			t.Errorf("%d commits are left, want the last one", n)
		}
		if n := len(w.Server.ReadLane("alice", 0, 100)); n != 11 {
			t.Errorf("%d events are left before the horizon", n)
		}
		w.Pass(2 * time.Hour)
		if n := len(w.Server.ReadLane("alice", 0, 100)); n != 0 {
			t.Errorf("%d events are left after the horizon", n)
		}
		w.Send("alice", "pay", "new", `{"cents":1}`)
		w.Pass(time.Second)
		w.wantDoc("alice", "balance", "12")
		w.stop(p)
	})
}

// illRead is a bus whose log reads fail sometimes.
type illRead struct {
	*membus.Bus
	fails atomic.Int32
}

func (b *illRead) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if b.fails.Add(-1) >= 0 {
		return nil, errors.New("the disk is on fire")
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

func TestFleet_AReloadedKeyHandlesItsDeliveredEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &illRead{Bus: w.Server.Connect("o1")}
		var foreign atomic.Bool
		b.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" && foreign.CompareAndSwap(true, false) {
				// Another runtime takes the key over, and this server cannot read that.
				w.Append(&model.Commit{Space: op.Space, Runtime: "other", Attempt: w.Server.Head(op.Space) + 1, Takeover: true, Cursor: model.Cursor{Floor: 1}})
				b.fails.Store(3)
			}
			return membus.Deliver
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ordered.Serve(ctx, b, ordered.Config{Handlers: accounts()}) }() // ends with ctx
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.EventuallyEnded("alice", 1)
		foreign.Store(true)
		w.Send("alice", "pay", "e2", `{"cents":1}`)
		w.Send("alice", "pay", "e3", `{"cents":1}`)
		w.EventuallyEnded("alice", 3)
		w.WantEnded("alice", "e1", "e2", "e3")
		cancel()
		if err := <-ended; err != nil || foreign.Load() || b.fails.Load() > 0 {
			t.Errorf("%v; foreign %v, %d reads did not fail", err, foreign.Load(), b.fails.Load())
		}
		b.Close()
	})
}

// A server that has given an event up keeps marking attempts: the next event that kills its process costs no
// uncounted attempt, as with a worker.
func TestPoison_EachEventThatKillsItsProcessCostsThreeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var starting sync.Mutex // a process may reach the handler before it is the current one
		var current, dead *serving
		tries := map[string]int{}
		h := accounts()
		h["kill"] = func(_ *ordered.Tx, ev *model.Event) (any, error) {
			starting.Lock()
			defer starting.Unlock()
			if current != dead { // calls after its end do not count
				tries[ev.ID]++
			}
			dead = current
			current.crash()
			return nil, nil
		}
		w.Send("alice", "kill", "k1")
		w.Send("alice", "kill", "k2")
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		for i := 0; i < 30 && len(w.Receipts("alice")) < 3; i++ {
			starting.Lock()
			p := w.serve(ordered.Config{Name: fmt.Sprint("o", i), Handlers: h}, nil)
			current = p
			starting.Unlock()
			w.Pass(time.Minute)
			p.crash()
		}
		w.WantEnded("alice", "k1", "k2", "e1")
		if tries["k1"] != 4 || tries["k2"] != 3 { // the first process had no reason to mark attempts
			t.Errorf("tried %v", tries)
		}
		for _, rc := range w.Receipts("alice")[:2] {
			if rc.Outcome != model.Failed || rc.Attempts != 3 {
				t.Errorf("%+v", rc)
			}
		}
	})
}

// A server that is stopped between the mark of an attempt and the attempt removes the mark: the attempt was
// not made, and does not count, as with a worker.
func TestPoison_AnAttemptThatWasNotMadeDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		barren := &model.Commit{Version: model.CommitVersion, Space: "alice", Runtime: "other", Attempt: 1, Takeover: true}
		if _, err := w.Server.Append(model.Append{Space: "alice", ID: barren.ID(), Data: model.AppendCommit(nil, barren, nil)}); err != nil {
			t.Fatal(err)
		}
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		started := make(chan *serving, 1)
		appends := 0
		p := w.serve(ordered.Config{Name: "o1"}, func(op membus.Op) membus.Fate {
			if op.Label == "append" {
				if appends++; appends == 2 { // the takeover was the first
					(<-started).cancel()
					w.Pass(100 * time.Millisecond)
				}
			}
			return membus.Deliver
		})
		started <- p
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
		p.bus.Close()
		log := w.Server.History("alice")
		c, err := model.DecodeCommit(log[len(log)-1].Data)
		if err != nil || len(w.Receipts("alice")) != 0 || c.Trying == nil || !c.Trying.Back || c.Trying.Tries != 0 {
			t.Errorf("the log ends with %+v, %v", c, err)
		}
		last := w.serve(ordered.Config{Name: "o2"}, nil)
		w.EventuallyEnds("alice", "e1 handled 0")
		w.stop(last)
	})
}
