package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// slowBook is the program book with slow, which takes that long, and hang, which does not end before the
// test.
func slowBook(t *testing.T, takes time.Duration) (p *space.Program, hang chan struct{}) {
	t.Helper()
	p, hang = book(t), make(chan struct{})
	handlers := map[string]func(){"slow": func() { _ = pause.For(t.Context(), takes) }, "hang": func() { <-hang }}
	for stream, wait := range handlers { // any order: they are independent
		if err := p.Handle(stream, func(tx *space.Tx, _ *model.Event) (model.Value, error) {
			wait()
			tx.Set("n", 1)
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return p, hang
}

// floodBound is how long an event may wait while other spaces of its partition are flooded: the credit of the
// lane reader, and some time for its own commit.
const floodBound = 200 * time.Millisecond

// Forty thousand events arrive for a space that handles them slowly. An event for another space of the
// partition is always handled within the bound.
func TestFlood_OthersOfThePartitionWaitNoLongerThanTheBound(t *testing.T) {
	for _, spaces := range []int{3, 1}[:raced.Fewer(2, 2)] {
		t.Run(fmt.Sprintf("%d flooded", spaces), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				p, _ := slowBook(t, 90*time.Microsecond)
				w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
				const n = 40_000
				for i := range spaces {
					w.flood(fmt.Sprintf("flooded%d", i), "slow", 1, n/spaces)
				}
				longest := time.Duration(0)
				for i := range 30 {
					w.Send("other", "add", fmt.Sprintf("e%d", i+1))
					began := time.Now()
					w.EventuallyEnded("other", i+1)
					longest = max(longest, time.Since(began))
					time.Sleep(20 * time.Millisecond)
				}
				if longest > floodBound {
					t.Errorf("an event of another space waited for %v, more than %v", longest, floodBound)
				}
				if w1.Counts().Receipts > n {
					t.Fatal("the flood is over, and the test needs it to last")
				}
				t.Logf("the longest wait is %v", longest)
				time.Sleep(10 * time.Second)
				for i := range spaces {
					w.wantHandled(fmt.Sprintf("flooded%d", i), worldtest.Numbered(n/spaces)...)
				}
			})
		})
	}
}

// A handler that never returns blocks only its own space, and its backlog is bounded.
func TestFlood_AHungHandlerDelaysNoOtherSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p, hang := slowBook(t, 0)
		defer close(hang)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.flood("stuck", "hang", 1, 10_000)
		for i := range 50 {
			w.Send("other", "add", fmt.Sprintf("e%d", i+1))
			w.flood("stuck", "hang", 10_001+i*20, 20)
			began := time.Now()
			w.EventuallyEnded("other", i+1)
			if took := time.Since(began); took > floodBound {
				t.Fatalf("event %d of another space waited for %v", i+1, took)
			}
		}
		if held := w1.Held().Inbox; held > inbox {
			t.Errorf("%d events in the inbox", held)
		}
	})
}

// Events with large payloads are bounded by their bytes: in one space, over all spaces of the worker, and
// when they are read again.
func TestFlood_LargePayloadsAreBoundedByTheirBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, spaces, each, limit = 256 << 10, 4, 60, 6 << 20
		w := newWorld(t, 1)
		p, hang := slowBook(t, time.Millisecond)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p), Options: worker.Options{BacklogBytes: limit}}, nil)
		payload := `"` + strings.Repeat("x", size) + `"`
		most := int64(0)
		for i := range spaces {
			name := fmt.Sprintf("s%d", i)
			w.Send(name, "hang", "e0", payload)
			for j := range each {
				w.Send(name, "slow", fmt.Sprintf("e%d", j+1), payload)
				synctest.Wait()
				most = max(most, w1.Backlog())
			}
		}
		w.Send("small", "add", "e1")
		w.EventuallyEnded("small", 1)
		time.Sleep(5 * time.Second)
		// Each space may exceed its room by one event, or by one page.
		if bound := int64(limit + spaces*2*(size+1000)); most > bound || w1.Backlog() > bound {
			t.Errorf("%d bytes of events were held at most, %d are held, want up to %d", most, w1.Backlog(), bound)
		}
		close(hang)
		for i := range spaces {
			name := fmt.Sprintf("s%d", i)
			w.EventuallyEnded(name, each+1)
			w.wantHandled(name, append([]string{"e0"}, worldtest.Numbered(each)...)...)
		}
		time.Sleep(3 * time.Second)
		if left := w1.Backlog(); left != 0 {
			t.Errorf("%d bytes are held after all events were handled", left)
		}
		t.Logf("of %d bytes, at most %d were held", spaces*each*size, most)
	})
}

// The backlog of a former owner is read in pages that are bounded in bytes.
func TestFlood_TheBacklogOfAFormerOwnerIsReadInSmallPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, n = 256 << 10, 100
		w := newWorld(t, 1)
		p, hang := slowBook(t, 10*time.Millisecond)
		close(hang)
		payload := `"` + strings.Repeat("x", size) + `"`
		for i := range n {
			w.Send("s", "slow", fmt.Sprintf("e%d", i+1), payload)
		}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		most := int64(0)
		for len(w.Receipts("s")) < n {
			most = max(most, w1.Backlog())
			time.Sleep(5 * time.Millisecond)
		}
		if bound := int64(3 * 4 << 20); most > bound {
			t.Errorf("%d bytes were held, more than %d", most, bound)
		}
		w.wantHandled("s", worldtest.Numbered(n)...)
	})
}
