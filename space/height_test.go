package space

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// A node begins to read a document that two others write. One of them has to come before
// it, the other reads what it makes: that closes a circle, and no height would be high
// enough.
func TestI9_AReaderOfTwoWritersOneOfWhichItFeedsGetsAPlace(t *testing.T) {
	at := func(key string) []Address { return []Address{{Doc: "shared", Path: model.Path{key}}} }
	p := newProgram(t).set().sum("up").compute("n", func(tx *Tx) any {
		if num(tx.Get("open")) == 1 {
			tx.Get("shared")
		}
		return 1
	})
	p.add(NodeSpec{ID: "before", Kind: Computation, Writes: at("a"), Run: func(tx *Tx) (model.Value, error) {
		tx.Set("shared", tx.Get("up"), "a")
		return model.Value{}, nil
	}})
	p.add(NodeSpec{ID: "behind", Kind: Computation, Writes: at("b"), Run: func(tx *Tx) (model.Value, error) {
		tx.Set("shared", tx.Get("n"), "b")
		return model.Value{}, nil
	}})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("shared")
	h.run()
	w.send(home, "set", "e1", map[string]any{"open": 1})
	h.run()
	wantValue(t, h, "shared", `{"a":0,"b":1}`)
	if h.core.graph.backEdges != 1 {
		t.Errorf("%d edges close a circle, want 1", h.core.graph.backEdges)
	}

	// Without the one that closes it, the reader comes behind the other.
	h.core.Remove("behind")
	checkGraph(t, h.core.graph)
	if g := h.core.graph; g.backEdges != 0 || g.byID["n"].height <= g.byID["before"].height {
		t.Errorf("%d edges close a circle; n at height %d, before at %d", g.backEdges, g.byID["n"].height, g.byID["before"].height)
	}
}
