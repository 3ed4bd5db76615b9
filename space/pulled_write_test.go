package space

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// A node that a run pulls may write to a document that the run has begun to write (I7).
func TestI7_WritesOfPulledNodesAreNotOverwritten(t *testing.T) {
	at := func(path string) []Address { return []Address{{Doc: "d", Path: model.Path{path}}} }
	inner := NodeSpec{ID: "inner", Kind: Computation, Output: "o", Writes: at("inner")}
	inner.Run = func(tx *Tx) (model.Value, error) {
		tx.Set("d", 1, "inner")
		return model.Int(1), nil
	}
	outer := NodeSpec{ID: "outer", Kind: Effect, Writes: at("outer")}
	outer.Run = func(tx *Tx) (model.Value, error) {
		tx.Set("d", 2, "outer")
		return tx.Get("o"), nil
	}
	h := newWorld(t).owner("w1", newProgram(t).add(inner).add(outer).Program)
	h.run()
	wantValue(t, h, "d", `{"inner":1,"outer":2}`)
	if got := h.w.replica(home).Doc("d").Value.String(); got != h.value("d") {
		t.Errorf("the log says %s", got)
	}
}

// A node that a run pulls may change something that the running node read last time but no longer reads. That
// is no reason for another run.
func TestI3_AnAddressThatIsNoLongerReadIsNoCause(t *testing.T) {
	child := NodeSpec{ID: "child", Kind: Computation, Output: "o", Writes: []Address{{Doc: "d"}}}
	child.Run = func(tx *Tx) (model.Value, error) {
		tx.Set("d", 1)
		return model.Int(1), nil
	}
	runs := 0
	chooser := NodeSpec{ID: "chooser", Kind: Effect}
	chooser.Run = func(tx *Tx) (model.Value, error) {
		runs++
		if tx.Get("which").IsAbsent() {
			return tx.Get("d"), nil
		}
		tx.Node(child)
		return tx.Get("o"), nil
	}
	h := newWorld(t).owner("w1", newProgram(t).add(chooser).Program)
	h.run()
	h.write("which", 1)
	wantValue(t, h, "d", "1")
	if runs != 2 {
		t.Errorf("%d runs, want 2: one at first, one because of which", runs)
	}
}

// A run whose side-write has no effect, because the value is there already, writes nothing. If that value is
// then undone, the node runs again: no other writer would restore it.
func TestI1_AWriteThatWasThereAlreadyIsRepeatedWhenItIsUndone(t *testing.T) {
	at := model.Path{"x"}
	side := NodeSpec{ID: "side", Kind: Computation, Writes: []Address{{Doc: "d", Path: at}}}
	side.Run = func(tx *Tx) (model.Value, error) {
		tx.Set("d", 1, at...)
		return model.Value{}, nil
	}
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).add(side).Program)
	h.run()
	if _, err := h.core.Transact("test", func(tx *Tx) error { tx.Set("d", 1, at...); return nil }); err != nil {
		t.Fatal(err)
	}
	h.observe("d")
	h.settle()
	wantValue(t, h, "d", `{"x":1}`)
	h.refuse(put("other", 1))
	h.run()
	wantValue(t, h, "d", `{"x":1}`)
	if got := w.replica(home).Doc("d").Value.String(); got != `{"x":1}` {
		t.Errorf("the log says %s", got)
	}
}
