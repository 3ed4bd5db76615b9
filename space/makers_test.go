package space

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// Two makers that each read what the other's child makes: there is no order in which all
// of them come behind what they wait for, and they must not wait for each other for ever.
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
