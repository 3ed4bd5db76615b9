package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// bury stores n letters about events of streams and spaces in turn, which ended a minute apart.
func (w *world) bury(n int, begun time.Time) {
	w.Helper()
	for i := range n {
		d := &model.DeadLetter{
			Version: model.DeadVersion, Space: fmt.Sprint("s", i%4), Stream: fmt.Sprint("t", i%2), Event: fmt.Sprint("e", i), Outcome: model.Failed,
			Error: fmt.Sprintf("no room in Shelf %d", i%3), Ended: begun.Add(time.Duration(i) * time.Minute),
		}
		if err := w.Client.StoreDead(w.Context(), d); err != nil {
			w.Fatal(err)
		}
	}
}

// counting counts the requests of a client by label.
func counting(b *membus.Bus) (counts func() map[string]int) {
	var mu sync.Mutex
	n := map[string]int{}
	b.Inject(func(op membus.Op) membus.Fate {
		mu.Lock()
		defer mu.Unlock()
		n[op.Label]++
		return membus.Deliver
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		got := n
		n = map[string]int{}
		return got
	}
}

// The cost does not depend on the number of letters: counting is one request, a page is two, and an action on
// each letter costs only that action.
func TestDead_ManyLettersTakeFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const n = 2000
		w.bury(n, time.Now())
		asked := counting(w.Client)
		counts, err := history.CountDead(t.Context(), w.Client, "")
		if want := (history.DeadCounts{Letters: n, Open: n}); err != nil || counts != want {
			t.Errorf("counted %+v, %v", counts, err)
		}
		if got := fmt.Sprint(asked()); got != "map[list-dead:1]" {
			t.Errorf("counting took %s", got)
		}
		listed := 0
		for after := uint64(0); ; {
			page, err := history.DeadLetters(t.Context(), w.Client, "", after, 100)
			if err != nil {
				t.Fatal(err)
			}
			if listed += len(page); len(page) < 100 {
				break
			}
			after = page[len(page)-1].Seq
		}
		if got := asked(); listed != n || got["read-dead"] > n/100+2 || got["get-dead"] > n/100+2 || len(got) != 2 {
			t.Errorf("listing %d took %v", listed, got)
		}
		listed = 0
		err = history.EachDead(t.Context(), w.Client, "", func(history.Dead) error { listed++; return nil })
		if got := fmt.Sprint(asked()); err != nil || listed != n || got != fmt.Sprintf("map[list-dead:1 read-dead:%d]", n/512+1) {
			t.Errorf("iterating over %d took %s, %v", listed, got, err)
		}
		open, err := history.SelectDead(t.Context(), w.Client, history.DeadFilter{Stream: "t0"})
		if err != nil || open.Count != n/2 {
			t.Fatalf("%d are selected, %v", open.Count, err)
		}
		if err := open.Redrive(t.Context(), history.Pace{}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(asked()); got != fmt.Sprintf("map[bury:%d find-event:1 list-dead:1 read-dead:%d send:%d]", n/2, n/512+1, n/2) {
			t.Errorf("redriving %d took %s", n/2, got)
		}
	})
}

// A filter applies at the time of its selection.
func TestDead_Filters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begun := time.Now()
		w.bury(12, begun)
		for _, c := range []struct {
			f    history.DeadFilter
			want string
		}{
			{history.DeadFilter{}, "e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 e10 e11"},
			{history.DeadFilter{Space: "s1"}, "e1 e5 e9"},
			{history.DeadFilter{Stream: "t1", Reason: "shelf 0"}, "e3 e9"},
			{history.DeadFilter{Since: begun.Add(3 * time.Minute), Before: begun.Add(6 * time.Minute)}, "e3 e4 e5"},
			{history.DeadFilter{Space: "s9"}, ""},
			{history.DeadFilter{Reason: "flood"}, ""},
		} {
			open, err := history.SelectDead(t.Context(), w.Client, c.f)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := open.List(t.Context(), func(d history.Dead) error { got = append(got, d.Event); return nil }); err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, " ") != c.want || open.Count != len(got) {
				t.Errorf("%+v: %v of %d, want %s", c.f, got, open.Count, c.want)
			}
		}
		open, err := history.SelectDead(t.Context(), w.Client, history.DeadFilter{Space: "s2"})
		if err != nil {
			t.Fatal(err)
		}
		late := &model.DeadLetter{Version: model.DeadVersion, Space: "s2", Stream: "t0", Event: "late", Outcome: model.Failed}
		if err := w.Client.StoreDead(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		var told []string
		if err := open.Dismiss(t.Context(), "known", history.Pace{Done: func(d history.DeadDone) { told = append(told, d.Of.Event) }}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(told)
		if fmt.Sprint(told) != "[e10 e2 e6]" {
			t.Errorf("dismissed were %v", told)
		}
		counts, err := history.CountDead(t.Context(), w.Client, "s2")
		if want := (history.DeadCounts{Letters: 4, Open: 1, Dismissed: 3}); err != nil || counts != want {
			t.Errorf("counted %+v, %v", counts, err)
		}
	})
}

// The work of a client that is killed counts: the next client continues in order, and nothing is done twice.
func TestDead_AClientContinuesTheWorkOfAKilledOne(t *testing.T) {
	for _, kind := range []string{"send", "bury"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				const n = 1000
				w.bury(n, time.Now())
				lives := 0
				for ; lives < 50; lives++ {
					c := w.Server.Connect(fmt.Sprint("operator", lives))
					ctx, cancel := context.WithCancel(t.Context())
					left := 150
					var mu sync.Mutex
					c.Inject(func(op membus.Op) membus.Fate {
						mu.Lock()
						defer mu.Unlock()
						if op.Label == kind {
							left--
							switch {
							case left == 0:
								go func() { c.Kill(); cancel() }() // ends at once
								return membus.DropAck
							case left < 0:
								return membus.DropRequest
							}
						}
						return membus.Deliver
					})
					open, err := history.SelectDead(ctx, c, history.DeadFilter{})
					if err != nil {
						t.Fatal(err)
					}
					if open.Count == 0 {
						cancel()
						c.Close()
						break
					}
					if err := open.Redrive(ctx, history.Pace{}); err == nil && open.Count > 150 {
						t.Error("the killed client returned no error")
					}
					cancel()
					c.Kill()
				}
				if lives < 2 || lives == 50 {
					t.Errorf("the job took %d clients", lives)
				}
				events := map[string]int{}
				for i := range 4 {
					for _, m := range w.Server.ReadLane(fmt.Sprint("s", i), 0, 2*n) {
						events[m.ID]++
					}
				}
				for i := range n {
					if id := fmt.Sprintf("e%d:r1", i); events[id] != 1 {
						t.Errorf("%s was sent %d times", id, events[id])
					}
				}
				if len(events) != n {
					t.Errorf("%d events were sent", len(events))
				}
			})
		})
	}
}

// A rate limits the letters per second, without a burst.
func TestDead_ARateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.bury(40, time.Now())
		open, err := history.SelectDead(t.Context(), w.Client, history.DeadFilter{})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := open.Redrive(t.Context(), history.Pace{Rate: 10}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 3900*time.Millisecond || took > 5*time.Second {
			t.Errorf("40 at 10 a second took %v", took)
		}
	})
}
