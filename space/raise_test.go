package space

import (
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// alarm returns a program with an effect that raises an event when a derived document is large, once for each such value, and
// a handler that counts them.
func alarm(t *testing.T) program {
	p := newProgram(t).set().sum("sum", "a", "b").handle("high", func(tx *Tx, ev *model.Event) any {
		n, _ := tx.Get("alarms").AsInt()
		tx.Set("alarms", n+1)
		tx.Set("last", ev.Payload)
		return nil
	})
	return p.add(NodeSpec{ID: "alarm", Kind: Effect, Writes: []Address{{Doc: "raised"}}, Run: func(tx *Tx) (model.Value, error) {
		if v := tx.Get("sum"); num(v) > 10 && !model.Equal(v, tx.Peek("raised")) {
			tx.Set("raised", v)
			tx.Raise("high", v)
		}
		return model.Value{}, nil
	}})
}

// The event of an effect is handled after it, in the same commit, and exists if and only if the run's transaction does.
func TestI10_AnEffectRaisesAnEventWithItsTransaction(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", alarm(t).Program)
	h.run()
	before := len(w.logs[home])
	w.send(home, "set", "e1", map[string]any{"a": 20})
	h.run()
	wantValue(t, h, "alarms", "1")
	wantValue(t, h, "last", "20")
	if n := len(w.logs[home]) - before; n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
	w.send(home, "set", "e2", map[string]any{"a": 30})
	h.deliver()
	h.settle() // under way, with the alarm
	wantValue(t, h, "alarms", "2")
	h.refuse(put("b", 5))
	wantValue(t, h, "alarms", "1")
	h.run()
	wantValue(t, h, "alarms", "2")
	wantValue(t, h, "last", "35")
	got := w.receipts(home)
	if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.HasPrefix(s, "e") })); n != 2 {
		t.Errorf("receipts %v, want two of raised events", got)
	}
	again := w.owner("w2", alarm(t).Program)
	again.run()
	wantValue(t, again, "alarms", "2")
}

// Only effects raise events, and only to streams that a space can send to.
func TestRaise_IsForEffects(t *testing.T) {
	for name, add := range map[string]func(p program) program{
		"a computation": func(p program) program {
			return p.compute("out", func(tx *Tx) any { tx.Raise("set", 1); return 1 })
		},
		"no stream": func(p program) program {
			return p.add(NodeSpec{ID: "out", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
				tx.Raise("no stream", 1)
				return model.Value{}, nil
			}})
		},
	} {
		w := newWorld(t)
		h := w.owner("w1", add(newProgram(t).set()).Program)
		h.observe("out")
		h.run()
		if n := h.core.Stats().NodeErrors; n == 0 {
			t.Errorf("%s: there is no error", name)
		}
	}
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).handle("go", func(tx *Tx, _ *model.Event) any { tx.Raise("go", 1); return nil }).Program)
	w.send(home, "go", "e1", nil)
	h.run()
	if got := w.receipts(home); !slices.Equal(got, []string{"e1 failed"}) {
		t.Errorf("a handler: %v", got)
	}
}
