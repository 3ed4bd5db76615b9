package ordered_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func ids(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i+1))
	}
	return list
}

// pay sends payments of one cent.
func (w *world) pay(key string, ids ...string) (duplicates int) {
	w.Helper()
	for _, id := range ids {
		if w.Send(key, "pay", id, `{"cents":1}`).Duplicate {
			duplicates++
		}
	}
	return duplicates
}

// A lane alone has lost its end. Later events are handled once, even under sequences that the keys have
// passed, and handled events are still known.
func TestLostEnd_LaterEventsAreHandledOnceAndLostOnesAreKnown(t *testing.T) {
	for _, sent := range []int{0, 2, 12} { // before a server starts: none, fewer than were lost, more
		t.Run(fmt.Sprintf("%d events sent before the server starts", sent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				first := w.serve(ordered.Config{Name: "o1"}, nil)
				all := ids("e", 10)
				w.pay("alice", all...)
				w.EventuallyEnded("alice", 10)
				w.stop(first)
				w.Server.LoseLane(0, 4)
				more := ids("n", sent)
				w.pay("alice", more...)
				w.pay("alice", "e10") // again: the lane has lost it
				second := w.serve(ordered.Config{Name: "o2"}, nil)
				all = append(all, more...)
				w.EventuallyEnded("alice", len(all))
				w.pay("alice", "last")
				all = append(all, "last")
				w.EventuallyEnded("alice", len(all))
				if n := w.pay("alice", all...); n != len(all) {
					t.Errorf("%d of %d duplicates were taken for new events", len(all)-n, len(all))
				}
				w.Pass(time.Minute)
				w.WantEnded("alice", all...)
				w.wantDoc("alice", "balance", fmt.Sprint(len(all)))
				w.stop(second)
			})
		})
	}
}

// While receipts decide which lane events are handled, no receipt is purged, by this server or the next.
func TestLostEnd_NothingIsPurgedWhileEventsAreInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := ordered.Config{Name: "o1", History: time.Minute}
		first := w.serve(cfg, nil)
		w.pay("alice", ids("e", 10)...)
		w.EventuallyEnded("alice", 10)
		w.stop(first)
		w.Server.LoseLane(0, 4)
		w.pay("bob", "b1") // at 5, which alice's cursor counts as done
		w.pay("alice", "n1")
		cfg.Name = "o2"
		cfg.Handlers = map[string]ordered.Handler{}
		for stream, h := range accounts() { // any order: a copy
			cfg.Handlers[stream] = func(tx *ordered.Tx, ev *model.Event) (any, error) {
				if ev.ID == "b1" { // the events stay in doubt
					return nil, ordered.Transient(fmt.Errorf("not yet"))
				}
				return h(tx, ev)
			}
		}
		cfg.Attempts, cfg.RetryMax = 1<<30, time.Second
		second := w.serve(cfg, nil)
		w.EventuallyEnded("alice", 11)
		w.Pass(time.Hour)
		second.crash()
		third := w.serve(ordered.Config{Name: "o3", History: time.Minute}, nil)
		w.EventuallyEnded("bob", 1)
		w.Pass(time.Hour)
		w.WantEnded("alice", append(ids("e", 10), "n1")...)
		w.WantEnded("bob", "b1")
		w.stop(third)
	})
}

// A lane that is refused is served once its loss is accepted.
func TestLostEnd_AnEmptyLaneIsServedOnceTheLossIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.serve(ordered.Config{Name: "o1"}, nil)
		w.pay("alice", ids("e", 6)...)
		w.EventuallyEnded("alice", 6)
		w.stop(first)
		w.Server.LoseLane(0, 0)
		second := w.serve(ordered.Config{Name: "o2"}, nil)
		w.Pass(time.Minute)
		lost, err := loss.InPartition(t.Context(), w.Client, 0)
		if err != nil || len(lost) != 1 {
			t.Fatalf("the losses are %v, %v", lost, err)
		}
		if err := lost[0].Accept(t.Context(), w.Client, nil); err != nil {
			t.Fatal(err)
		}
		w.pay("alice", "n1")
		w.EventuallyEnded("alice", 7)
		w.WantEnded("alice", append(ids("e", 6), "n1")...)
		w.stop(second)
	})
}

// The same holds for a key whose log has lost its end.
func TestLostEnd_AKeyWithALostLogIsServedOnceTheLossIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.serve(ordered.Config{Name: "o1"}, nil)
		w.pay("alice", ids("e", 6)...)
		w.EventuallyEnded("alice", 6)
		w.stop(first)
		w.Server.LoseLog(0, 1)
		second := w.serve(ordered.Config{Name: "o2"}, nil)
		w.pay("alice", "n1")
		w.pay("bob", "b1")
		w.EventuallyEnded("bob", 1)
		w.Pass(time.Minute)
		if n := len(w.Receipts("alice")); n != 0 {
			t.Errorf("%d events were handled on top of a log that was lost", n)
		}
		lost, err := loss.InSpace(t.Context(), w.Client, "alice")
		if err != nil || lost == nil {
			t.Fatalf("the losses are %v, %v", lost, err)
		}
		if err := lost.Accept(t.Context(), w.Client, nil); err != nil {
			t.Fatal(err)
		}
		w.Eventually("n1 is handled", func() bool { return w.Doc("alice", "balance") == "7" })
		w.stop(second)
	})
}
