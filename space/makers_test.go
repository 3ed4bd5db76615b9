package space

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// Two makers each read the output of the other's child: no order puts all of them behind their inputs, and
// they must not wait for each other forever.
func TestI6_MakersThatReadEachOthersChildrenComeToRest(t *testing.T) {
	maker := func(id, child, makes, reads string) NodeSpec {
		made := NodeSpec{ID: child, Kind: Computation, Output: makes}
		made.Run = func(tx *Tx) (model.Value, error) { return model.Int(num(tx.Get("src")) + 1), nil }
		return NodeSpec{ID: id, Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			tx.Get("src")
			tx.Node(made)
			return tx.Get(reads), nil
		}}
	}
	p := newProgram(t).add(maker("p1", "n1", "a", "b")).add(maker("p2", "n2", "b", "a"))
	h := newWorld(t).owner("w1", p.Program)
	h.run()
	for v := range 5 {
		h.given(put("src", v))
	}
	wantValue(t, h, "a", "5")
	wantValue(t, h, "b", "5")
}

// A node that registers its own maker gets an error: otherwise the order of makers would be circular.
func TestI6_NoNodeMakesItsOwnMaker(t *testing.T) {
	var upper, lower, middle NodeSpec
	makes := func(id string, child *NodeSpec) NodeSpec {
		return NodeSpec{ID: id, Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			tx.Get("src")
			tx.Node(*child)
			return model.Value{}, nil
		}}
	}
	upper, middle = makes("upper", &middle), makes("middle", &lower)
	lower = NodeSpec{ID: "lower", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		if num(tx.Get("src")) == 1 {
			tx.Node(upper)
		}
		return model.Value{}, nil
	}}
	h := newWorld(t).owner("w1", newProgram(t).add(makes("root", &upper)).Program)
	h.run()
	var errs []string
	h.core.OnError(func(e ErrorInfo) { errs = append(errs, e.Node+": "+e.Err.Error()) })
	h.given(put("src", 1))
	want := `lower: register node "upper": it has made this node, directly or indirectly; no node can be its own maker`
	if len(errs) != 1 || errs[0] != want {
		t.Errorf("errors %q, want %q", errs, want)
	}
	h.given(put("src", 2))
	if len(errs) != 1 || len(h.core.Nodes()) != 4 {
		t.Errorf("errors %q, %d nodes", errs, len(h.core.Nodes()))
	}
}
