package space

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// circle adds two computations that count each other up as long as the sum is below the document limit of the circle.
func (p program) circle(name string) program {
	return p.
		compute(name+"-ping", func(tx *Tx) any { return min(num(tx.Get(name+"-pong"))+1, num(tx.Get(name+"-limit"))) }).
		compute(name+"-pong", func(tx *Tx) any { return num(tx.Get(name+"-ping")) + 0*num(tx.Get(name+"-poke")) })
}

const endless = 1 << 40

// readsOf is a program with circles, and a handler that reads the document that the payload names.
func readsOf(t *testing.T, circles ...string) program {
	p := newProgram(t).set().handle("read", func(tx *Tx, ev *model.Event) any {
		which, _ := ev.Payload.AsString()
		return tx.Get(which)
	})
	for _, name := range circles {
		p = p.circle(name)
	}
	return p
}

// runUntil lets time pass, from wake-up to wake-up, until an event is handled.
func (h *host) runUntil(event string) (took time.Duration) {
	h.t.Helper()
	began := h.now
	for h.run(); ; h.run() {
		for _, rc := range h.w.allReceipts(home) {
			if rc.Event == event {
				return h.now - began
			}
		}
		if h.last.Wake == 0 || h.now > began+time.Hour {
			h.t.Fatalf("event %s waits, and nothing will wake it", event)
		}
		h.now = h.last.Wake
	}
}

// A circle that does not converge holds up the lane once. Later events that read it see what it comes to in a pass,
// and neither they nor those behind them wait for a time, although each of them changes what the circle reads.
func TestI6_ACircleHoldsUpTheLaneOnce(t *testing.T) {
	for _, observed := range []bool{false, true} {
		t.Run(fmt.Sprint("observed ", observed), func(t *testing.T) {
			w := newWorld(t)
			h := w.owner("w1", readsOf(t, "c").Program)
			if observed {
				h.observe("c-pong")
			}
			w.send(home, "set", "s", map[string]any{"c-limit": endless})
			w.send(home, "read", "first", "c-ping")
			if took := h.runUntil("first"); took == 0 || took > laneWait {
				t.Errorf("the first event has waited for %v, want up to %v", took, laneWait)
			}
			for i := range 10 {
				w.send(home, "set", fmt.Sprint("s", i), map[string]any{"c-poke": i})
				w.send(home, "read", fmt.Sprint("r", i), []string{"c-ping", "c-pong"}[i%2])
				w.send(home, "set", fmt.Sprint("other", i), map[string]any{"x": i})
				if took := h.runUntil(fmt.Sprint("other", i)); took != 0 {
					t.Fatalf("event %d behind the circle has waited for %v", i, took)
				}
			}
		})
	}
}

// What changes the circle so that it converges is seen: each event that reads it lets it run.
func TestI6_ACircleThatWasGivenUpIsReadCorrectlyWhenItConverges(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", readsOf(t, "c").Program)
	w.send(home, "set", "s", map[string]any{"c-limit": endless})
	w.send(home, "read", "first", "c-ping")
	h.runUntil("first")
	for i, limit := range []int{3, 5, 4} {
		w.send(home, "set", fmt.Sprint("s", i), map[string]any{"c-limit": limit})
		w.send(home, "read", fmt.Sprint("r", i), "c-ping")
		if took := h.runUntil(fmt.Sprint("r", i)); took != 0 {
			t.Errorf("limit %d: waited for %v", limit, took)
		}
		if got := w.receipt(home, fmt.Sprint("r", i)).Result.String(); got != fmt.Sprint(limit) {
			t.Errorf("limit %d: the handler saw %s", limit, got)
		}
	}
	if len(h.core.runner.budgets.patience.givenUp) != 0 || h.core.graph.byID["c-ping"].isGivenUp() {
		t.Error("a circle that has converged is still given up")
	}
	// It is waited for like any other from now on: a value that takes several passes is seen.
	h.advance(laneQuiet + laneWait)
	w.send(home, "set", "more", map[string]any{"c-limit": 40})
	w.send(home, "read", "last", "c-ping")
	h.runUntil("last")
	if got := w.receipt(home, "last").Result.String(); got != "40" {
		t.Errorf("after it has converged, a handler saw %s, want 40", got)
	}
}

// Many circles hold up the lane together no longer than one.
func TestI6_TheLaneWaitsForAllCirclesTogetherNoLongerThanForOne(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	h := w.owner("w1", readsOf(t, names...).Program)
	for _, name := range names {
		w.send(home, "set", "s"+name, map[string]any{name + "-limit": endless})
		w.send(home, "read", "r"+name, name+"-ping")
	}
	if took := h.runUntil("rf"); took > laneWait+time.Second {
		t.Errorf("six circles have held up the lane for %v, want %v", took, laneWait)
	}
	// After a minute of quiet, a wave that takes a few passes is waited for.
	h.advance(laneQuiet + time.Second)
	w.send(home, "set", "slow", map[string]any{"a-limit": 0, "b-limit": 0, "c-limit": 0, "d-limit": 0, "e-limit": 0, "f-limit": 0})
	w.send(home, "read", "rest", "x")
	h.runUntil("rest")
	if h.core.runner.budgets.patience.spent() {
		t.Error("the patience of the lane is still spent")
	}
}
