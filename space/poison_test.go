package space

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// deadly returns a handler that ends its process at some events, and otherwise counts.
func deadly(t *testing.T, deaths map[string]int) program {
	return counter(t).handle("kill", func(_ *Tx, ev *model.Event) any {
		deaths[ev.ID]++
		runtime.Goexit() // nothing after this runs, as after os.Exit
		return nil
	})
}

// live does everything that can be done until the process has nothing left to do or ends, and reports whether
// it survived.
func (h *host) live() (survived bool) {
	done := make(chan struct{})
	go func() { // ends when the process does
		defer close(done)
		for range 50 {
			h.run()
			h.now = max(h.now, h.last.Wake)
		}
		survived = true
	}()
	<-done
	return survived
}

// lives starts one process after the other, each of which takes the space over, until one survives. It
// returns the number that died.
func (w *world) lives(p *Program, limit int, change ...func(*Config)) (deaths int, last *host) {
	w.t.Helper()
	for n := range limit {
		h := w.owner(fmt.Sprint("w", n+1), p, change...)
		if h.live() {
			return n, h
		}
		if n == 0 {
			h.checkpoint()
		}
	}
	w.t.Fatalf("%d processes died, and the next one would", limit)
	return 0, nil
}

func TestAHandlerThatKillsItsProcessIsGivenUp(t *testing.T) {
	w := newWorld(t)
	deaths := map[string]int{}
	p := deadly(t, deaths)
	w.send(home, "add", "e1", 1)
	w.send(home, "kill", "poison", nil)
	w.send(home, "add", "e2", 10)
	dead, last := w.lives(p.Program, 20)
	if got, want := w.receipts(home), []string{"e1 handled", "poison failed", "e2 handled"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
	if rc := w.receipt(home, "poison"); rc.Attempts != 3 || !strings.Contains(rc.Error, "never came back") {
		t.Errorf("receipt %+v", rc)
	}
	if rc := w.receipt(home, "e2"); rc.Attempts != 0 {
		t.Errorf("receipt %+v for an event that was handled at once", rc)
	}
	// The first process died together with e1; the next committed e1, recorded its attempt at the other event
	// and died; two more did the same, recording attempts although their predecessor had produced a receipt.
	if dead != deaths["poison"] || dead != 4 {
		t.Errorf("%d processes died; deaths by event %v", dead, deaths)
	}
	wantValue(t, last, "count", "11")
}

// If the incarnation that first meets the event has made a receipt before, the next one does not record
// attempts either, and the handler runs once more, as docs/rejections.md describes.
func TestAHandlerThatKillsAProcessWithReceiptsRunsFiveTimes(t *testing.T) {
	w := newWorld(t)
	deaths := map[string]int{}
	p := deadly(t, deaths)
	w.send(home, "add", "e1", 1)
	if first := w.owner("w0", p.Program); !first.live() {
		t.Fatal("it died of a harmless event")
	} else {
		w.send(home, "kill", "poison", nil)
		if first.live() {
			t.Fatal("the process survived")
		}
	}
	w.lives(p.Program, 20)
	if deaths["poison"] != 5 {
		t.Errorf("%d processes died, want 5", deaths["poison"])
	}
	if rc := w.receipt(home, "poison"); rc.Attempts != 3 {
		t.Errorf("receipt %+v", rc)
	}
}

// The first incarnation, and one that follows an incarnation with receipts, record no attempts in the log.
func TestNoAttemptRecordsAfterAnIncarnationWithReceipts(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		h := w.owner(fmt.Sprint("w", n+1), counter(t).Program)
		for i := range 3 {
			w.send(home, "add", fmt.Sprint("e", n, i), 1)
		}
		h.run()
		if got := h.core.Stats().Refused; got > 0 {
			t.Errorf("%d refusals", got)
		}
	}
	if got := len(w.logs[home]); got != 6 {
		t.Errorf("%d commits; three takeovers and three of events are enough", got)
	}
}

// After an incarnation without receipts, the events that are waiting are handled one by one, each after an
// attempt record. Later events are handled as usual.
func TestAfterAnIncarnationWithoutReceiptsEventsAreHandledOneByOne(t *testing.T) {
	w := newWorld(t)
	w.owner("w1", counter(t).Program)
	for i := range 3 {
		w.send(home, "add", fmt.Sprint("e", i), 1)
	}
	h := w.owner("w2", counter(t).Program)
	h.run()
	var marks []string
	for _, e := range w.logs[home] {
		c := w.commit(e)
		if c.Trying != nil {
			marks = append(marks, fmt.Sprint(c.Trying.Event, " ", c.Trying.Tries))
		}
		if len(c.Txs) > 1 {
			t.Errorf("commit %d has %d transactions", e.Seq, len(c.Txs))
		}
	}
	if want := []string{"e0 1", "e1 1", "e2 1"}; !slices.Equal(marks, want) {
		t.Errorf("marks %v, want %v", marks, want)
	}
	commits := len(w.logs[home])
	for i := range 3 {
		w.send(home, "add", fmt.Sprint("f", i), 1)
	}
	h.run()
	if got := len(w.logs[home]) - commits; got != 1 || commits != 6 {
		t.Errorf("%d commits, and %d for later events; want two takeovers, and an attempt record and a commit for each event", commits, got)
	}
	wantValue(t, h, "count", "6")
}

// Processes come and go while the head waits, for a computation that is held or after a transient error: its
// handler returns each time, so none of these attempts counts as lost.
func TestAnEventWhoseHandlerReturnsIsNotGivenUp(t *testing.T) {
	for _, way := range []string{"waits", "transient"} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			tries := 0
			p := func() *Program {
				return counter(t).set().sum("slow", "base").handle("head", func(tx *Tx, _ *model.Event) any {
					tries++
					if way == "transient" && tries < 12 {
						return Transient(fmt.Errorf("busy"))
					}
					if way == "waits" && tries < 12 {
						tx.GetFrom("shop", "price")
					}
					return tries
				}).Program
			}
			w.send(home, "head", "e1", nil)
			for n := range 10 {
				h := w.owner(fmt.Sprint("w", n+1), p())
				h.deaf = true
				h.run()
				if n%2 == 0 {
					h.core.Hold()
					h.run()
					if !h.core.Settled() {
						t.Fatal("the event is never handled")
					}
				}
				if n == 4 {
					h.checkpoint()
				}
				if got := w.receipts(home); len(got) > 0 {
					t.Fatalf("after %d lives: %v, %s", n+1, got, w.receipt(home, "e1").Error)
				}
			}
			if trying := w.replica(home).Trying; trying == nil || trying.Tries != 0 || !trying.Back {
				t.Errorf("the log says %+v", trying)
			}
			tries = 100
			h := w.owner("last", p())
			h.run()
			if got := w.receipts(home); !slices.Equal(got, []string{"e1 handled"}) {
				t.Errorf("receipts %v", got)
			}
		})
	}
}

// A process that is stopped while the attempt record is on its way makes no attempt, and removes the record.
func TestTheRecordOfAnAttemptThatIsNotMadeIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 1)
	h := w.owner("w2", counter(t).Program)
	h.deliver()
	h.settle()
	if c := h.inFlight; c == nil || c.Commit.Trying == nil {
		t.Fatal("no attempt record is on its way")
	}
	h.core.Hold()
	h.run()
	if got := w.replica(home).Trying; got == nil || !got.Back || got.Tries != 0 || h.core.Stats().Attempts != 0 {
		t.Errorf("the log says %+v after %d attempts", got, h.core.Stats().Attempts)
	}
	if !h.core.Settled() {
		t.Error("something is left to do")
	}
}

// Conflicts undo the attempt record, the attempt, or the commit: an event may meet any number of them while
// the runtime records attempts.
func TestConflictsDoNotCountAsLostAttempts(t *testing.T) {
	w := newWorld(t)
	w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 1)
	h := w.owner("w2", counter(t).Program)
	h.deliver()
	for n := range 40 {
		h.settle()
		if h.inFlight != nil && n%3 != 2 {
			h.refuse(put("other", n))
		}
		h.decide()
		h.now = max(h.now, h.last.Wake)
	}
	h.run()
	if got := w.receipts(home); !slices.Equal(got, []string{"e1 handled"}) {
		t.Errorf("receipts %v", got)
	}
	if rc := w.receipt(home, "e1"); rc.Attempts != 0 {
		t.Errorf("receipt %+v", rc)
	}
}

// The receipt of an attempt that succeeds after lost ones contains their number. The checkpoint contains the
// count, too.
func TestAReceiptContainsTheNumberOfAttempts(t *testing.T) {
	w := newWorld(t)
	left := 3
	p := counter(t).handle("moody", func(*Tx, *model.Event) any {
		if left--; left >= 0 {
			runtime.Goexit()
		}
		return "at last"
	})
	w.send(home, "moody", "e1", nil)
	for n := 0; len(w.receipts(home)) == 0; n++ {
		h := w.owner(fmt.Sprint("w", n), p.Program, func(c *Config) { c.LostAttempts = 5 })
		h.live()
		w.host("look", p.Program).checkpoint()
		w.logs[home] = w.logs[home][len(w.logs[home])-1:] // the log before it is purged
		if n > 10 {
			t.Fatal("the event never succeeds")
		}
	}
	// The first incarnation records no attempts.
	if rc := w.receipt(home, "e1"); rc.Attempts != 3 || rc.Outcome != model.Handled {
		t.Errorf("receipt %+v", rc)
	}

	left = 2
	q := counter(t).handle("busy", func(*Tx, *model.Event) any {
		if left--; left >= 0 {
			return Transient(fmt.Errorf("busy"))
		}
		return nil
	})
	w = newWorld(t)
	w.send(home, "busy", "e1", nil)
	w.send(home, "add", "e2", 1)
	w.owner("w1", q.Program).live()
	if a, b := w.receipt(home, "e1").Attempts, w.receipt(home, "e2").Attempts; a != 3 || b != 0 {
		t.Errorf("%d attempts at an event that failed transiently twice, %d at one that did not", a, b)
	}
}

// Of two spaces in one process, one kills the process at each start. The event of the other space is not
// given up for that, although an attempt at it was under way each time.
func TestAnEventIsTriedAtAMomentOfItsOwnAfterItsProcessHasDied(t *testing.T) {
	w := newWorld(t)
	waits := map[time.Duration]bool{}
	for n := range 3 {
		h := w.owner(fmt.Sprint("w", n), counter(t).Program)
		if n == 0 {
			w.owner("before", counter(t).Program)
			w.send(home, "add", "e1", 1)
			continue
		}
		h.deliver()
		h.settle()
		if n > 1 {
			if h.inFlight != nil || h.last.Wake == 0 {
				t.Fatalf("incarnation %d records the next attempt at once", n)
			}
			waits[h.last.Wake] = true
			h.now = h.last.Wake
			h.settle()
		}
		if h.inFlight == nil || h.inFlight.Commit.Trying == nil {
			t.Fatalf("incarnation %d does not record the attempt: %+v", n, h.last)
		}
		h.w.append(home, h.inFlight) // it dies before it gets the answer
	}
	if len(waits) == 0 {
		t.Error("there was no wait")
	}
}

func TestWithANegativeLimitNoAttemptIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 1)
	h := w.owner("w2", counter(t).Program, func(c *Config) { c.LostAttempts = -1 })
	h.run()
	if got := len(w.logs[home]); got != 3 {
		t.Errorf("%d commits", got)
	}
	wantValue(t, h, "count", "1")
}

// An attached runtime records no attempts, and counts none: others may be handling the same event.
func TestAnAttachedRuntimeCountsNoLostAttempts(t *testing.T) {
	w := newWorld(t)
	w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 1)
	owner := w.owner("w2", counter(t).Program)
	owner.deliver()
	owner.settle()
	owner.decide() // the attempt is recorded and under way
	for n := range 5 {
		app := w.attached(fmt.Sprint("a", n), counter(t).Program)
		app.deliver()
		if app.settle(); app.inFlight == nil || app.inFlight.Commit.Trying != nil {
			t.Fatalf("application %d waits, or records an attempt", n+1)
		}
	}
	owner.run()
	if got := w.receipts(home); !slices.Equal(got, []string{"e1 handled"}) {
		t.Errorf("receipts %v", got)
	}
}

// An incarnation that is informed of an attempt which did not return counts it, records the next ones, and
// ends the event after enough of them; another event is not affected.
func TestAnAttemptThatDidNotReturnCountsAsLost(t *testing.T) {
	w := newWorld(t)
	deaths := map[string]int{}
	p := deadly(t, deaths)
	w.send(home, "kill", "poison", nil)
	w.send(home, "add", "e1", 1)
	dead := 0
	for n := range 10 {
		h := w.host(fmt.Sprint("w", n+1), p.Program)
		if dead > 0 {
			h.core.Overran(Overrun{Stream: "kill", Event: "poison", Limit: time.Minute})
		}
		h.core.TakeOver()
		if h.live() {
			break
		}
		dead++
	}
	if got, want := w.receipts(home), []string{"poison failed", "e1 handled"}; !slices.Equal(got, want) || dead != 3 {
		t.Errorf("receipts %v, want %v; %d did not return", got, want, dead)
	}
	const want = "event poison: the handler of stream kill has not returned within 1m0s in any of 3 attempts."
	if rc := w.receipt(home, "poison"); rc.Attempts != 3 || !strings.HasPrefix(rc.Error, want) {
		t.Errorf("receipt %+v", rc)
	}
}

// An attempt that did not return and has a record in the log is counted once, even if another runtime has
// withdrawn a later attempt of its own since.
func TestAnAttemptThatDidNotReturnIsCountedOnce(t *testing.T) {
	w := newWorld(t)
	deaths, soft, called := 0, false, 0
	p := counter(t).handle("kill", func(*Tx, *model.Event) any {
		if called++; soft {
			return Transient(errors.New("later"))
		}
		deaths++
		runtime.Goexit() // it does not return
		return nil
	})
	w.send(home, "kill", "poison", nil)
	overran, recorded := false, false
	life := func(name string, told bool) *host {
		h := w.host(name, p.Program)
		if told && overran {
			h.core.Overran(Overrun{Stream: "kill", Event: "poison", Limit: time.Minute, Recorded: recorded})
		}
		h.core.TakeOver()
		return h
	}
	for n := range 2 {
		h := life(fmt.Sprint("a", n+1), true)
		if h.live() {
			t.Fatalf("incarnation %d survived", n+1)
		}
		overran, recorded = true, h.core.AttemptRecorded("kill", "poison")
	}
	if !recorded {
		t.Fatal("the second attempt has no record")
	}
	soft, called = true, 0
	other := life("b1", false)
	for called == 0 {
		other.run()
		other.now = max(other.now, other.last.Wake)
	}
	soft = false
	for n := range 5 {
		h := life(fmt.Sprint("a", n+3), true)
		if h.live() {
			break
		}
		recorded = h.core.AttemptRecorded("kill", "poison")
	}
	if got := w.receipts(home); !slices.Equal(got, []string{"poison failed"}) || deaths != 3 {
		t.Errorf("receipts %v; %d attempts did not return, want 3", got, deaths)
	}
}

// A node that did not return is held until a time, wherever it is registered, and is reported as failed; an
// event that reads its output gets the present value.
func TestANodeThatDidNotReturnIsHeld(t *testing.T) {
	w := newWorld(t)
	runs := 0
	p := counter(t)
	if err := p.Add(NodeSpec{ID: "stuck", Kind: Computation, Output: "stuck", Run: func(*Tx) (model.Value, error) { runs++; return model.Int(7), nil }}); err != nil {
		t.Fatal(err)
	}
	if err := p.Handle("glimpse", func(tx *Tx, _ *model.Event) (model.Value, error) { return tx.Get("stuck"), nil }); err != nil {
		t.Fatal(err)
	}
	h := w.host("w1", p.Program)
	var told []ErrorInfo
	h.core.OnError(func(i ErrorInfo) { told = append(told, i) })
	h.core.Overran(Overrun{Node: "stuck", Limit: time.Second, Until: time.Minute})
	h.core.TakeOver()
	w.send(home, "glimpse", "g1", nil)
	h.run()
	if rc := w.receipt(home, "g1"); rc.Outcome != model.Handled || !rc.Result.IsAbsent() || runs != 0 {
		t.Errorf("receipt %+v after %d runs", rc, runs)
	}
	if len(told) != 1 || told[0].Node != "stuck" || !strings.Contains(told[0].Err.Error(), "given up") {
		t.Errorf("told were %+v", told)
	}
	h.now = time.Minute
	w.send(home, "glimpse", "g2", nil)
	h.run()
	if rc := w.receipt(home, "g2"); rc.Result.String() != "7" || runs != 1 {
		t.Errorf("receipt %+v after %d runs, when the node was no longer held", rc, runs)
	}
}
