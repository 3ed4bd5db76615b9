//go:build !invariants && !race

package space

import (
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Neither with the race detector nor with invariants, because both allocate.

// A run that makes the same reads as before allocates nothing, not even for the paths: they are slices that
// the caller makes, and do not escape.
func TestARepeatedReadAllocatesNothing(t *testing.T) {
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
		h.core.runner.runNode(n)
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// An event costs its handler's writes and its record in the log: features for tests and tools
// (Config.CheckIdempotency, Trace) cost nothing unless they are enabled.
func TestAnEventAllocatesNoMoreThanItMust(t *testing.T) {
	const group, most = 256, 8
	p := NewProgram("test")
	if err := p.Handle("inc", increment); err != nil {
		t.Fatal(err)
	}
	core, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home))
	if err != nil {
		t.Fatal(err)
	}
	h, ids := &bench{core: core}, eventIDs(group)
	core.TakeOver()
	h.settle()
	if got := testing.AllocsPerRun(20, func() {
		for _, id := range ids {
			h.offer("inc", id, model.Int(1))
		}
		h.settle()
	}) / group; got > most+0.5 {
		t.Errorf("%v allocations", got)
	}
}
