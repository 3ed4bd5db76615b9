package space

import (
	"testing"

	"github.com/settlehq/settle/model"
)

func watches(id string, docs ...string) NodeSpec {
	return NodeSpec{ID: id, Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		for _, d := range docs {
			tx.Get(d)
		}
		return model.Value{}, nil
	}}
}

func (h *host) register(spec NodeSpec) {
	h.t.Helper()
	if err := h.core.Register(spec); err != nil {
		h.t.Fatalf("%v", err)
	}
}

// An effect that is being removed still has some of its reads. If there is a circle anywhere, so that the
// counts alone do not determine liveness, the effect must not count as the only root of nodes that others
// need, too.
func TestI2_ARemovedEffectEndsOnlyItsOwnDemand(t *testing.T) {
	p := newProgram(t).sum("a", "in").sum("b", "a").
		compute("x", func(tx *Tx) any { return min(3, num(tx.Get("y"))+1) }).
		compute("y", func(tx *Tx) any { return min(3, num(tx.Get("x"))+1) }).
		add(watches("stays", "b")).add(watches("circle", "x"))
	h := newWorld(t).owner("w1", p.Program)
	h.run()
	h.register(watches("goes", "a", "b"))
	h.run()
	h.core.Remove("goes")
	checkGraph(t, h.core.graph)
	h.given(put("in", 7))
	wantValue(t, h, "b", "7")
}

// A value that is only in memory is removed with the node that would compute it again.
func TestI7_AVolatileOutputGoesWithItsNode(t *testing.T) {
	h := newWorld(t).owner("w1", newProgram(t).Program)
	volatile := NodeSpec{
		ID: "n", Kind: Computation, Output: "o", Volatile: true,
		Run: func(*Tx) (model.Value, error) { return model.Int(1), nil },
	}
	h.w.put(home, put("o", 0))
	h.integrate()
	h.register(volatile)
	h.observe("o")
	h.run()
	wantValue(t, h, "o", "1")
	h.core.Remove("n")
	h.run()
	wantValue(t, h, "o", "0")
}

// A node is registered completely or not at all.
func TestANodeThatIsRefusedLeavesNothingBehind(t *testing.T) {
	h := newWorld(t).owner("w1", newProgram(t).Program)
	spec := NodeSpec{
		ID: "n", Kind: Computation, Output: "o", DeclaredReads: []Address{{Doc: "in"}, {Space: "no name", Doc: "x"}},
		Run: func(*Tx) (model.Value, error) { return model.Int(1), nil },
	}
	if err := h.core.Register(spec); err == nil {
		t.Error("a space with that name can be read")
	}
	spec.DeclaredReads = nil
	h.register(spec)
	h.observe("o")
	h.run()
	wantValue(t, h, "o", "1")
}

// At most one append is under way.
func TestAnOwnerHasNothingToTakeOver(t *testing.T) {
	h := newWorld(t).owner("w1", newProgram(t).set().Program)
	h.w.send(home, "set", "e1", map[string]any{"a": 1})
	h.deliver()
	h.settle()
	h.core.TakeOver()
	h.settle()
	h.run()
	wantValue(t, h, "a", "1")
	wantStory(t, h.w.receipts(home), "e1 handled")
}

// Nor is a takeover requested twice.
func TestATakeoverThatIsUnderWayIsNotAskedForAgain(t *testing.T) {
	h := newWorld(t).host("w1", newProgram(t).Program)
	for range 2 {
		h.core.TakeOver()
		h.settle()
	}
	if !h.decide() || h.settle().Append != nil {
		t.Error("there is another takeover")
	}
}

// A circle ends at several places, one after the other. Nodes that have become dormant must not become live
// again because other counts are not updated yet.
func TestI2_ACircleThatEndsStaysDormant(t *testing.T) {
	p := newProgram(t).
		compute("x", func(tx *Tx) any { return min(3, num(tx.Get("y"))+1) }).
		compute("z", func(tx *Tx) any { return min(3, num(tx.Get("beside"))+1) }).
		add(NodeSpec{
			ID: "y", Kind: Computation, Output: "y", Writes: []Address{{Doc: "beside"}},
			Run: func(tx *Tx) (model.Value, error) {
				v := min(3, num(tx.Get("x"))+num(tx.Get("z")))
				tx.Set("beside", v)
				return model.Int(v), nil
			},
		})
	h := newWorld(t).owner("w1", p.Program)
	h.observe("y")
	h.run()
	h.core.Unobserve("y")
	checkGraph(t, h.core.graph)
	for _, n := range h.core.Nodes() {
		if n.Live {
			t.Errorf("%s is live, and nothing observes it", n.ID)
		}
	}
}
