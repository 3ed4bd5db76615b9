package history_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// waiting starts to wait for the tree of an event, and returns a channel of the result.
func (w *world) waiting(ctx context.Context, bus port.Client, space, id string) <-chan error {
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // an endless wait must become an error
	go func() {                                            // ends with ctx, or when the tree has settled
		defer cancel()
		_, err := history.WaitTree(ctx, bus, space, "do", id)
		ended <- err
	}()
	return ended
}

func over(ended <-chan error) bool {
	synctest.Wait()
	return len(ended) > 0
}

func TestWait_ReturnsWhenTheLastEventOfTheTreeHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ended := w.waiting(t.Context(), w.Client, "a", "e1")
		w.rest()
		if over(ended) {
			t.Fatal("the wait ended before the event was sent")
		}
		w.work("w1")
		w.send("a", "e1", script(to("b", script(to("idle", nil))), to("a", nil), to("b", nil)))
		w.rest()
		if over(ended) {
			t.Fatal("the wait ended while a sent event is parked")
		}
		w.Coordinator()
		w.rest()
		if over(ended) {
			t.Fatal("the wait ended while one event has no worker")
		}
		w.finish("idle")
		w.rest()
		if !over(ended) || <-ended != nil {
			t.Error("the wait did not end")
		}
		began := time.Now()
		if err := <-w.waiting(t.Context(), w.Client, "a", "e1"); err != nil || time.Since(began) > time.Second {
			t.Errorf("waiting for a settled tree: %v, after %v", err, time.Since(began))
		}
	})
}

// finish appends the handling of the space's first event, as its owner would.
func (w *world) finish(space string) {
	w.Helper()
	m := w.Server.ReadLane(space, 0, 1)[0]
	tx := model.Tx{N: 1, By: "handle " + m.Stream, Receipt: &model.Receipt{Event: m.ID, Lane: m.Seq, Pos: m.Position, Outcome: model.Handled}}
	epoch := w.Append(&model.Commit{Space: space, Runtime: "x", Takeover: true})
	w.Append(&model.Commit{Space: space, Runtime: "x", Epoch: epoch, Cursor: model.Cursor{Floor: m.Seq}, Txs: []model.Tx{tx}})
}

func TestWait_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		w.send("a", "e1", script(to("b", nil), to("c", nil)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := history.WaitTree(ctx, w.Client, "a", "do", "e1")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still open: 2") {
			t.Errorf("wait: %v", err)
		}
		w.Client.Kill()
		if _, err := history.WaitTree(t.Context(), w.Client, "a", "do", "e1"); !errors.Is(err, model.ErrStopped) {
			t.Errorf("wait: %v, want ErrStopped", err)
		}
		var name *model.NameError
		if _, err := history.WaitTree(t.Context(), w.Client, "a", "", "e1"); !errors.As(err, &name) {
			t.Errorf("wait: %v, want a NameError", err)
		}
	})
}

func TestWait_IncludesTheNoticeOfARefusedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		kill := w.work("w1")
		w.send("a", "e1", script(sent{To: "b", Stream: "unknown"}))
		w.rest()
		w.Coordinator()
		ended := w.waiting(t.Context(), w.Client, "a", "e1")
		w.rest()
		if !over(ended) || <-ended != nil {
			t.Fatal("the wait did not end")
		}
		tree := w.wantShape(history.TreeQuery{Event: "e1"}, "a:handled(b:refused(notice a:handled))")
		if !tree.Settled {
			t.Error("the tree is not settled")
		}
		kill()
	})
}

// chain makes an act that is passed on n times, and then performs last.
func chain(n int, last *act) *act {
	for range n {
		last = script(to("a", last))
	}
	return last
}

// The bounds of a displayed tree do not limit a wait.
func TestWait_CoversMoreGenerationsThanATreeShows(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		const beyond = history.DefaultDepth + 50
		w.send("a", "failing", chain(beyond, ends("fail")))
		states, err := history.WaitTree(t.Context(), w.Client, "a", "do", "failing")
		if want := map[lineage.State]int{"handled": beyond, "failed": 1}; err != nil || !maps.Equal(states, want) {
			t.Errorf("the wait counted %v, %v; want %v", states, err, want)
		}
		w.send("a", "pending", chain(beyond, script(to("idle", nil))))
		ended := w.waiting(t.Context(), w.Client, "a", "pending")
		w.rest()
		if over(ended) {
			t.Fatal("the wait ended while the last event has no worker")
		}
		w.finish("idle")
		w.rest()
		if !over(ended) || <-ended != nil {
			t.Error("the wait did not end")
		}
	})
}

// A timer has ended when it has fired, or when any event has cancelled it at any time.
func TestWait_ACancelledTimerHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		var states map[lineage.State]int
		begin := func(id string) <-chan error {
			ended := make(chan error, 1)
			go func() { // ends when the tree has settled, or with the test
				var err error
				states, err = history.WaitTree(t.Context(), w.Client, "a", "alarm", id)
				ended <- err
			}()
			return ended
		}
		want := func(ended <-chan error, counted map[lineage.State]int) {
			t.Helper()
			if err := <-ended; err != nil || !maps.Equal(states, counted) {
				t.Errorf("the wait counted %v, %v; want %v", states, err, counted)
			}
		}
		cancelled := map[lineage.State]int{"handled": 1, "cancelled": 1}
		w.Send("a", "alarm", "a-1")
		ended := begin("a-1")
		w.rest()
		if over(ended) {
			t.Fatal("the wait ended before the timer fired")
		}
		w.Send("a", "calm", "c-1")
		w.rest()
		want(ended, cancelled)
		want(begin("a-1"), cancelled) // a later caller gets the same result

		w.Send("a", "alarm", "a-2")
		ended = begin("a-2")
		w.rest()
		w.Send("a", "alarm", "a-3") // sets it to another time
		w.rest()
		want(ended, cancelled)
		ended = begin("a-3")
		w.Pass(2 * time.Hour)
		want(ended, map[lineage.State]int{"handled": 2})
	})
}

// behind is a client whose replica, when it is asked for the state of a space, knows nothing of it yet; it catches up after some
// reads of the log.
type behind struct {
	port.Client
	reads int
}

func (b *behind) LoadState(context.Context, string) (model.SpaceState, error) {
	b.reads = 2
	return model.SpaceState{}, nil
}

func (b *behind) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if b.reads > 0 {
		b.reads--
		return nil, nil
	}
	return b.Client.ReadLog(ctx, space, after, limit)
}

// A replica that does not have the commit that has set a timer does not show that the timer was cancelled.
func TestTree_ATimerIsNotCancelledForAReplicaThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		w.Send("a", "alarm", "a-1")
		w.rest()
		b := &behind{Client: w.Client}
		tree, err := history.ReadTree(t.Context(), b, history.TreeQuery{Space: "a", Stream: "alarm", Event: "a-1"})
		if err != nil || len(tree.Root.Caused) != 1 || tree.Root.Caused[0].State != lineage.Waiting {
			t.Fatalf("tree: %+v, %v", tree, err)
		}
		timer := tree.Root.Caused[0]
		tree, err = history.ReadTree(t.Context(), b, history.TreeQuery{Space: "a", Stream: timer.Stream, Event: timer.Event})
		if err != nil || tree.Root.State != lineage.Waiting {
			t.Errorf("tree: %+v, %v", tree, err)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		if states, err := history.WaitTree(ctx, b, "a", "alarm", "a-1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait has counted %v, %v", states, err)
		}
	})
}

// lastReceipt returns when the last event so far has ended.
func (w *world) lastReceipt() (at time.Time) {
	for _, name := range []string{"a", "b", "c", "d"} {
		for _, e := range w.Server.ReadLog(name, 0, 1<<20) {
			if bytes.Contains(e.Data, []byte(`"o":"`)) && e.Stored.After(at) {
				at = e.Stored
			}
		}
	}
	return at
}

// grown makes a random act for a space, and counts its events.
func grown(rng *rand.Rand, here string, depth int) (*act, int) {
	a, n := &act{End: []string{"", "", "", "", "fail", "panic"}[rng.IntN(6)]}, 1
	for range rng.IntN(4) {
		if depth == 0 {
			break
		}
		there := string(rune('a' + rng.IntN(4)))
		below, events := grown(rng, there, depth-1)
		s := sent{To: there, Act: below}
		if rng.IntN(12) == 0 {
			s.Stream, events = "unknown", 1
			if there != here {
				events = 2 // with the notice
			}
		}
		a.Send = append(a.Send, s)
		n += events
	}
	if a.End != "" {
		n = 1 // what a failed handler sent is dropped
	}
	return a, n
}

// lossy returns a bus that loses some requests and answers.
func (w *world) lossy(rng *rand.Rand, id string) *membus.Bus {
	b := w.Server.Connect(id)
	w.Cleanup(b.Close)
	fates := []membus.Fate{membus.DropAck, membus.DropRequest, membus.Duplicate}
	b.Inject(func(op membus.Op) membus.Fate {
		if i := rng.IntN(10); op.Try < 3 && i < len(fates) {
			return fates[i]
		}
		return membus.Deliver
	})
	return b
}

// In every tree, with crashes and with waits that begin at any time, a wait ends when every event has ended,
// and the tree then has all of them.
func TestWait_EndsExactlyWhenTheWholeTreeHasEnded(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				rng := rand.New(rand.NewPCG(seed, 7))
				do, want := grown(rng, "a", 5)
				early := w.waiting(t.Context(), w.lossy(rand.New(rand.NewPCG(seed, 8)), "early"), "a", "e1")
				kill := w.work("w1")
				w.Coordinator()
				w.send("a", "e1", do)
				w.Pass(time.Duration(rng.IntN(3)) * time.Millisecond)
				middle := w.waiting(t.Context(), w.lossy(rand.New(rand.NewPCG(seed, 9)), "middle"), "a", "e1")
				kill()
				for range 5 {
					w.Pass(time.Duration(rng.IntN(2000)) * time.Microsecond)
					kill = w.work(fmt.Sprint("w", rng.IntN(1000)+2))
					if rng.IntN(2) == 0 {
						kill()
					}
				}
				w.work("last")
				for _, ended := range []<-chan error{early, middle, w.waiting(t.Context(), w.Client, "a", "e1")} {
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
					// The end comes from the followed logs, not from the periodic lookup.
					if late := time.Since(w.lastReceipt()); late > 15*time.Second {
						t.Errorf("the wait ended %v after the last receipt", late)
					}
					tree := w.tree(history.TreeQuery{Event: "e1", Space: "a", MaxEvents: 10_000})
					if !tree.Settled || tree.Events != want {
						t.Fatalf("settled %t with %d events, want %d: %s", tree.Settled, tree.Events, want, shape(tree.Root))
					}
					if states, err := history.WaitTree(t.Context(), w.Client, "a", "do", "e1"); err != nil || !maps.Equal(states, tree.States) {
						t.Fatalf("the wait counted %v (%v), want %v", states, err, tree.States)
					}
				}
			})
		})
	}
}
