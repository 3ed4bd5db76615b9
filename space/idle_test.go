package space

import (
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

func TestR07_ASubscriberThatPanicsDoesNotAffectTheOthers(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	var told []bool
	h.core.OnDurable(func(bool) { panic("a subscriber") })
	h.core.OnDurable(func(is bool) { told = append(told, is) })
	h.run()
	w.send(home, "add", "e1", 1)
	h.run()
	if want := []bool{true, false, true}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// closing returns a program in which the named node, or the handler, closes the space; the node then reads a
// document whose writer is dormant. during receives what Idle returned in the run.
func closing(t *testing.T, who string, s **Space, during *[]bool) *Program {
	run := func(name string, tx *Tx) any {
		if name == who && *s != nil {
			(*s).Close()
			*during = append(*during, (*s).Idle())
			if who != "handler" { // which would wait for it
				return tx.Get("dormant")
			}
		}
		return tx.Get("in")
	}
	p := newProgram(t).
		add(NodeSpec{ID: "held", Kind: Effect, Gate: GateSpec{Debounce: time.Second}, Run: func(tx *Tx) (model.Value, error) {
			return tx.Get("in"), nil // otherwise the space would be woken for it
		}}).
		compute("dormant", func(tx *Tx) any { return num(tx.Get("in")) + 1 }).
		compute("first", func(tx *Tx) any { return run("first", tx) }).
		compute("second", func(tx *Tx) any { return run("second", tx) }).
		handle("go", func(tx *Tx, ev *model.Event) any {
			tx.Set("in", ev.Payload)
			return run("handler", tx)
		})
	return p.Program
}

func TestR09_DisposalWaitsForTheRunAndNothingFollowsIt(t *testing.T) {
	for _, c := range []struct {
		who  string
		runs map[string]int // after the close
	}{
		{"first", map[string]int{"first": 1}},
		{"second", map[string]int{"first": 1, "second": 1}},
		{"handler", map[string]int{}},
	} {
		t.Run(c.who, func(t *testing.T) {
			w := newWorld(t)
			var s *Space
			var during []bool
			h := w.owner("w1", closing(t, c.who, &s, &during))
			h.observe("first")
			h.observe("second")
			h.run()
			h.advance(time.Second)
			h.run()
			s, h.runs = h.core, map[string]int{}
			w.send(home, "go", "e1", 1)
			w.send(home, "go", "e2", 2)
			h.core.Offer(w.lanes[home][0])
			if c.who == "handler" {
				h.core.Offer(w.lanes[home][1])
			}
			r := h.settle()
			if !slices.Equal(during, []bool{false}) {
				t.Errorf("idle in the middle of the run: %v", during)
			}
			if !h.core.Idle() {
				t.Error("not idle after the run")
			}
			if r.Append != nil || r.More || r.Wake != 0 || r.Follow != nil || r.Refill != nil {
				t.Errorf("a closed space requests %+v", r)
			}
			for _, n := range []string{"first", "second", "dormant"} {
				if h.runs[n] != c.runs[n] {
					t.Errorf("%s ran %d times after the close, want %d", n, h.runs[n], c.runs[n])
				}
			}
			if n := h.core.Stats().Attempts; n != 1 {
				t.Errorf("%d attempts at events", n)
			}
		})
	}
}
