package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// refuseAgain refuses the append under way, and settles once.
func (h *host) refuseAgain() Ready {
	h.t.Helper()
	h.refuse(put("other", h.w.seq))
	return h.settle()
}

// The pauses after conflicts: none after the first, then 25 ms doubled up to 1 s, shortened by up to a
// quarter. They are the same in a repetition of the same story, and different in another runtime.
func TestThePausesAfterConflictsGrowAndDifferBetweenRuntimes(t *testing.T) {
	pauses := func(runtime, event string) []time.Duration {
		w := newWorld(t)
		h := w.owner(runtime, counter(t).Program, func(c *Config) { c.ConflictWindow = time.Hour })
		w.send(home, "add", event, 1)
		h.deliver()
		h.settle()
		if r := h.refuseAgain(); r.Append == nil {
			t.Fatal("the event is not retried at once after the first conflict")
		}
		var out []time.Duration
		for range 12 {
			r := h.refuseAgain()
			if r.Append != nil || r.More || r.Wake <= h.now {
				t.Fatalf("no pause: %+v", r)
			}
			out = append(out, r.Wake-h.now)
			h.now = r.Wake - 1
			if early := h.settle(); early.Append != nil || early.Wake != r.Wake {
				t.Fatalf("the event is retried too early: %+v", early)
			}
			h.now = r.Wake
			if h.settle().Append == nil {
				t.Fatal("the event is not retried in time")
			}
		}
		h.decide()
		wantValue(t, h, "count", "1")
		if got := w.receipts(home); !slices.Equal(got, []string{event + " handled"}) {
			t.Errorf("receipts %v", got)
		}
		if st := h.core.Stats(); st.Attempts != 14 || st.Unconverged != 0 {
			t.Errorf("%d attempts, %d events did not converge", st.Attempts, st.Unconverged)
		}
		return out
	}
	got := pauses("w1", "e1")
	for i, pause := range got {
		full := min(time.Second, 25*time.Millisecond<<i)
		if pause > full || pause <= full*3/4 {
			t.Errorf("pause %d is %s, want %s less a quarter at most", i+1, pause, full)
		}
	}
	if again := pauses("w1", "e1"); !slices.Equal(again, got) {
		t.Errorf("the same story had different pauses: %v, %v", got, again)
	}
	if other := pauses("w2", "e1"); slices.Equal(other, got) {
		t.Error("another runtime has the same pauses, so the two would conflict again")
	}
}

// The first event pauses after conflicts, or waits for a computation, when a commit of another runtime
// arrives that contains its receipt, without taking the space over. Then the event is neither handled nor
// retried, and does not delay the next one.
func TestAnEventHandledElsewhereDoesNotDelayTheNext(t *testing.T) {
	for _, way := range []string{"pauses", "transient", "parked"} {
		t.Run(way, func(t *testing.T) {
			handled := map[string]int{}
			p := counter(t).sum("slow", "count").handle("head", func(tx *Tx, ev *model.Event) any {
				handled[ev.ID]++
				switch way {
				case "transient":
					return Transient(errors.New("busy"))
				case "parked":
					tx.Get("slow")
				}
				tx.Set("x", handled[ev.ID])
				return nil
			})
			w := newWorld(t)
			h := w.owner("w1", p.Program)
			w.put(home, put("count", 1))
			h.integrate()
			h.observe("slow")
			h.settle()
			if err := h.core.SetDebounce("slow", time.Hour); err != nil {
				t.Fatal(err)
			}
			h.run()
			w.put(home, put("count", 5))
			h.integrate()
			w.send(home, "head", "e1", nil)
			w.send(home, "add", "e2", 10)
			h.deliver()
			h.settle()
			for n := 0; way == "pauses" && h.inFlight != nil; n++ {
				if n == 100 {
					t.Fatal("after a hundred conflicts there is still no pause")
				}
				h.refuseAgain()
			}
			if got := w.receipts(home); len(got) > 0 {
				t.Fatalf("e1 was handled: %v", got)
			}
			attempts := handled["e1"]

			r := w.replica(home)
			ev := w.lanes[home][0]
			c := &model.Commit{
				Version: model.CommitVersion, Space: home, Runtime: "elsewhere", Epoch: r.Epoch, Attempt: 99,
				Txs:    []model.Tx{{N: 1000, By: receipts.By("head"), Receipt: receipts.Handled(&ev, model.Int(7))}},
				Cursor: model.Cursor{Floor: ev.Lane},
			}
			if h.inFlight != nil || w.append(home, &Append{Expect: w.head(home), Commit: c, Data: model.AppendCommit(nil, c, nil)}) == 0 {
				t.Fatal("the receipt does not get into the log")
			}
			h.integrate()
			h.settle()
			if h.inFlight == nil {
				t.Fatal("e2 waits for the pause of e1")
			}
			h.run()
			if got, want := w.receipts(home), []string{"e1 handled", "e2 handled"}; !slices.Equal(got, want) {
				t.Errorf("receipts %v, want %v", got, want)
			}
			if handled["e1"] != attempts {
				t.Errorf("e1 was attempted %d times, %d of them after its receipt was known", handled["e1"], handled["e1"]-attempts)
			}
			wantValue(t, h, "count", "15")
			if h.core.handling.needs.nodes != nil || h.core.graph.byID["slow"].demand != 0 {
				t.Error("the demand of e1 is still there")
			}
		})
	}
}

// Whatever happens to the first event (conflicts, transient errors, parking, or a receipt by another
// runtime), the space always waits for something: an answer, a time, a document. Without further disturbance
// all events are handled, in order. Two runtimes of the same name do the same with the same inputs.
func TestALaneNeverStalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		story := func(draw func(label string, n int) int) string {
			p := NewProgram("moody")
			must := func(err error) {
				if err != nil {
					t.Fatalf("%v", err)
				}
			}
			must(p.Add(NodeSpec{ID: "slow", Kind: Computation, Output: "slow", Gate: GateSpec{Debounce: 40 * time.Millisecond}, Run: func(tx *Tx) (model.Value, error) {
				return model.Int(num(tx.Get("count")) + num(tx.GetFrom("shop", "price"))), nil
			}}))
			must(p.Handle("add", func(tx *Tx, ev *model.Event) (model.Value, error) {
				switch draw("mood", 8) {
				case 0:
					return model.Value{}, Transient(errors.New("busy"))
				case 1:
					return model.Value{}, errors.New("no")
				case 2:
					tx.Set("seen", tx.Get("slow"))
				case 3:
					tx.Send(home, "add", 1)
				}
				tx.Set("count", num(tx.Get("count"))+1)
				return model.Value{}, nil
			}))
			w := newWorld(t)
			h := w.owner("w1", p, func(c *Config) { c.MaxGroup = 3; c.ConflictWindow = 200 * time.Millisecond })
			var log []string
			for i := range 40 {
				switch draw("step", 6) {
				case 0:
					w.send(home, "add", fmt.Sprint("e", i), 1)
					h.deliver()
				case 1:
					if h.inFlight != nil {
						h.refuse(put("other", i))
					}
				case 2:
					h.decide()
				case 3:
					h.mirror()
				case 4:
					if h.last.Wake > h.now {
						h.now = h.last.Wake
					}
				case 5:
					h.now += time.Duration(draw("time", 50)) * time.Millisecond
				}
				r := h.settle()
				log = append(log, fmt.Sprintf("%v %v %v %v", r.Wake, r.More, r.Append != nil, h.core.Stats().Attempts))
				waits := r.More || r.Wake > h.now || h.inFlight != nil || h.core.graph.pending > 0
				if h.core.ledger.Lane().Peek() != nil && !waits {
					t.Fatalf("the first event waits for nothing: %+v", h.core.handling.needs)
				}
			}
			for range 200 {
				h.run()
				if h.core.ledger.Lane().Done() {
					break
				}
				if h.last.Wake <= h.now {
					t.Fatalf("events are left, and nothing to wait for: %+v", h.core.handling.needs)
				}
				h.now = h.last.Wake
			}
			if !h.core.ledger.Lane().Done() {
				t.Fatalf("events are left after 200 pauses")
			}
			var lane, handled []string
			for _, ev := range w.lanes[home] {
				lane = append(lane, ev.ID)
			}
			for _, rc := range w.allReceipts(home) {
				if rc.Lane != 0 {
					handled = append(handled, rc.Event)
				}
			}
			if !slices.Equal(lane, handled) {
				t.Fatalf("handled %v, want %v", handled, lane)
			}
			return strings.Join(append(log, w.receipts(home)...), "\n")
		}
		var drawn []int
		first := story(func(label string, n int) int {
			k := rapid.IntRange(0, n-1).Draw(t, label)
			if len(drawn) > 2000 {
				k = n - 1 // the disturbance ends at some point
			}
			drawn = append(drawn, k)
			return k
		})
		second := story(func(_ string, _ int) int {
			k := drawn[0]
			drawn = drawn[1:]
			return k
		})
		if first != second {
			t.Fatalf("two runtimes with the same inputs differ:\n%s\n\n%s", first, second)
		}
	})
}

// A hook that panics is skipped for that call; the event gets its receipt, the next one is handled, and the
// other hooks are called.
func TestL12_AHookThatPanicsIsContained(t *testing.T) {
	p := counter(t).handle("bad", func(*Tx, *model.Event) any { return errors.New("no such item") })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	var told []string
	h.core.OnError(func(ErrorInfo) { panic("the hook is broken") })
	h.core.OnError(func(i ErrorInfo) { told = append(told, fmt.Sprintf("%s: %v", i.Event, i.Err)) })
	w.send(home, "bad", "e1", nil)
	w.send(home, "add", "e2", 1)
	w.send(home, "bad", "e3", nil)
	h.run()
	if got, want := w.receipts(home), []string{"e1 failed", "e2 handled", "e3 failed"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
	if want := []string{"e1: no such item", "e3: no such item"}; !slices.Equal(told, want) {
		t.Errorf("the other hook received %v, want %v", told, want)
	}
	wantValue(t, h, "count", "1")
}

// The history of a handler that writes forty documents lists some of them, reports their total, and reports
// that the list is cut.
func TestL18_AHistoryDoesNotNameFortyWrites(t *testing.T) {
	p := newProgram(t).handle("fill", func(tx *Tx, ev *model.Event) any {
		for i := range num(ev.Payload) {
			tx.Set(fmt.Sprintf("doc%02d", i), ev.ID)
		}
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.core.Recorder().RecordRuns(true)
	w.send(home, "fill", "e1", 40)
	w.send(home, "fill", "e2", 25)
	h.run()
	runs := h.core.Inspect().History().Runs
	if len(runs) != 2 {
		t.Fatalf("%d entries, want 2", len(runs))
	}
	if e := runs[0]; e.Wrote != 40 || len(e.Writes) != 25 || e.Writes[24] != "doc24" || !e.Cut() {
		t.Errorf("the first wrote %d documents and lists %v; cut: %v", e.Wrote, e.Writes, e.Cut())
	}
	if e := runs[1]; e.Wrote != 25 || len(e.Writes) != 25 || e.Cut() {
		t.Errorf("the second wrote %d documents and lists %v; cut: %v", e.Wrote, e.Writes, e.Cut())
	}
	wantValue(t, h, "doc39", `"e1"`)
}
