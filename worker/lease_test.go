package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

func runsOf(p *process, space, node string) uint64 {
	return p.Runs()[worker.RunKey{Space: space, Node: node}]
}

// wantFollows checks whether a computation still runs when what it reads changes.
func (w *world) wantFollows(p *process, space string, id int, want bool) {
	w.Helper()
	before := runsOf(p, space, "double")
	w.Send(space, "add", fmt.Sprintf("follow%d", id))
	synctest.Wait()
	if ran := runsOf(p, space, "double") > before; ran != want {
		w.Errorf("double of %s ran: %v, want %v", space, ran, want)
	}
}

func (w *world) observe(space, doc, watcher string, ttl time.Duration) {
	w.Helper()
	if err := w.Client.Observe(model.Lease{Space: space, Doc: doc, Watcher: watcher, TTL: ttl}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func TestLease_IsDemandUntilItRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.wantFollows(w1, "s", 1, false)
		w.observe("s", "double", "v1", 6*time.Second)
		w.wantFollows(w1, "s", 2, true)
		time.Sleep(4 * time.Second)
		w.observe("s", "double", "v1", 6*time.Second) // renewed
		time.Sleep(4 * time.Second)
		w.wantFollows(w1, "s", 3, true)
		time.Sleep(4 * time.Second) // ten seconds without renewal
		w.wantFollows(w1, "s", 4, false)
		if held := w1.Held(); held.Leases != 0 {
			t.Errorf("%d leases are held", held.Leases)
		}
	})
}

func TestLease_EndsAtOnceWhenItsObserverLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.observe("s", "double", "v1", time.Minute)
		w.observe("s", "double", "v2", time.Minute)
		w.observe("s", "double", "v1", 0)
		w.wantFollows(w1, "s", 1, true) // v2 is still there
		w.observe("s", "double", "v1", 0)
		w.wantFollows(w1, "s", 2, true) // v1 counted once
		w.observe("s", "double", "v2", 0)
		w.wantFollows(w1, "s", 3, false)
		if held := w1.Held(); held.Leases != 0 {
			t.Errorf("%d leases are held", held.Leases)
		}
	})
}

func TestLease_TTLIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.observe("s", "double", "v1", 1000*time.Hour)
		time.Sleep(2 * time.Minute)
		w.wantFollows(w1, "s", 1, false)
	})
}

// A takeover loses the old owner's leases. The new owner calls the roll, so that watchers need not wait for
// their next renewal.
func TestLease_TheRollCallOfANewOwnerBringsDemandBack(t *testing.T) {
	for name, wrap := range map[string]func(*membus.Bus) port.Bus{
		"at once":                        nil,
		"with a late lease subscription": func(b *membus.Bus) port.Bus { return lateEars{b} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w1 := w.worker("w1")
				v := w.watch("s", "double")
				w.Send("s", "add", "e1")
				time.Sleep(time.Second)
				if v.last() != "2" {
					t.Fatalf("the watcher sees %s, want 2", v.last())
				}
				w1.Crash()
				time.Sleep(1010 * time.Millisecond) // just after a renewal, which comes every 2 s
				w.process(worker.Config{ID: "w2"}, wrap)
				w.Send("s", "add", "e2")
				time.Sleep(1200 * time.Millisecond)
				if v.last() != "4" {
					t.Errorf("1.2 s later the watcher sees %s, want 4", v.last())
				}
			})
		})
	}
}

// lateEars subscribes to leases a moment late.
type lateEars struct{ *membus.Bus }

func (b lateEars) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	t := time.NewTimer(10 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return b.Bus.FollowLeases(ctx, partition, deliver)
}

// A watch across a takeover delivers every value in order and continues by itself.
func TestWatch_ContinuesInOrderAcrossATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		v, plain := w.watch("s", "double"), w.watch("s", "n")
		synctest.Wait()
		for i := range 20 {
			if i%5 == 4 {
				w1.Crash()
				w1 = w.worker(fmt.Sprintf("w%d", i))
			}
			w.Send("s", "add", fmt.Sprintf("e%d", i+1))
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if v.last() != "40" || plain.last() != "20" {
			t.Errorf("the watchers see %s and %s, want 40 and 20", v.last(), plain.last())
		}
		if values, _ := plain.seen(); len(values) != 21 || values[0] != "absent" {
			t.Errorf("saw %v, want every value once", values)
		}
		if _, revisions := v.seen(); !slices.IsSorted(revisions) {
			t.Errorf("revisions %v are not ascending", revisions)
		}
	})
}

// hasty is a bus that still delivers entries after a subscription has ended.
type hasty struct{ *membus.Bus }

func (b hasty) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	entries, err := b.ReadLog(ctx, space, after, 100)
	if err != nil {
		return err
	}
	for _, e := range entries {
		deliver(e)
	}
	<-ctx.Done()
	return ctx.Err()
}

// Nothing after a commit that cannot be decoded is delivered: it could be a value that the document never
// had.
func TestWatch_NothingIsDeliveredAfterAnUndecodableCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		late := make(chan struct{})
		watch := history.Watch{Bus: blind{hasty{w.Client}, late}, Space: "s", Doc: "n", Watcher: "x"}
		var values []string
		done := make(chan error, 1)
		go func() { // ends with the watch
			done <- watch.Changes(t.Context(), func(c history.Change) { values = append(values, c.Value.String()) })
		}()
		writes := func(n int64) {
			w.Append(&model.Commit{Space: "s", Runtime: "w", Txs: []model.Tx{{N: uint64(n), By: "test", Writes: []model.Write{{Doc: "n", Value: model.Int(n)}}}}})
		}
		writes(1)
		if _, err := w.Server.Append(model.Append{Space: "s", ID: "future", Expect: 1, Data: []byte(`{"v":99}`)}); err != nil {
			t.Fatal(err)
		}
		writes(3)
		close(late)
		if err := <-done; err == nil {
			t.Error("the watch ended without an error")
		}
		if fmt.Sprint(values) != "[absent 1]" {
			t.Errorf("delivered %v, want absent and 1", values)
		}
	})
}

// blind is a bus that shows a log only to subscribers, and late.
type blind struct {
	hasty
	late chan struct{}
}

func (b blind) Head(context.Context, string) (uint64, error) { return 0, nil }

func (b blind) ReadLog(context.Context, string, uint64, int) ([]model.LogEntry, error) {
	return nil, nil
}

func (b blind) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	<-b.late
	return b.hasty.FollowSpace(ctx, space, after, deliver)
}

func TestWatch_AnUndecodableCommitEndsItWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if _, err := w.Server.Append(model.Append{Space: "s", ID: "future", Data: []byte(`{"v":99}`)}); err != nil {
			t.Fatal(err)
		}
		watch := history.Watch{Bus: w.Client, Space: "s", Doc: "n", Watcher: "x"}
		if err := watch.Changes(t.Context(), func(history.Change) {}); err == nil || t.Context().Err() != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
}

// lateRoll is a bus on which a roll call arrives when the observer is about to end.
type lateRoll struct {
	*membus.Bus
	mu   sync.Mutex
	ttls []time.Duration // of the leases, in order
}

func (b *lateRoll) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	<-ctx.Done()
	_ = pause.For(context.WithoutCancel(ctx), time.Millisecond) // while the lease is delivered
	deliver(0)
	return ctx.Err()
}

func (b *lateRoll) Observe(l model.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ttls = append(b.ttls, l.TTL)
	return b.Bus.Observe(l)
}

// Otherwise the owner would compute without an observer until the lease runs out.
func TestLease_ARollCallAtTheEndDoesNotRenewIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &lateRoll{Bus: w.Client}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		watch := history.Watch{Bus: b, Space: "s", Doc: "double", Watcher: "me"}
		_ = watch.Changes(ctx, func(history.Change) {})
		if want := []time.Duration{model.LeaseTTL, model.LeaseTTL, 0}; !slices.Equal(b.ttls, want) {
			t.Errorf("leases of %v, want %v", b.ttls, want)
		}
	})
}
