//go:build !invariants && !race

package space

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// Neither with the race detector nor with invariants, both of which do more.

// A run that reads what it read before allocates nothing, not even for the paths that it
// reads: they are slices that the callers make, and stay with them.
func TestAReadOfWhatWasReadBeforeAllocatesNothing(t *testing.T) {
	p := newProgram(t).add(NodeSpec{ID: "same", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		tx.Get("doc", "a", "b")
		tx.GetShallow("doc", "a")
		tx.Peek("doc", "c")
		tx.GetFrom("other", "doc", "a", "b")
		return model.Value{}, nil
	}})
	h := newWorld(t).owner("w1", p.Program)
	h.w.put(home, put("doc", map[string]any{"a": map[string]any{"b": 1}, "c": 1}))
	h.integrate()
	h.run()
	n := h.core.graph.byID["same"]
	h.core.cfg.Trace = Trace{}
	if n.status != Clean {
		t.Fatalf("it is %s", n.status)
	}
	if got := testing.AllocsPerRun(100, func() {
		n.passRuns = 0
		h.core.runNode(n)
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
