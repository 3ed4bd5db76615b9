package space

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
)

// cost is the work of a step, as counted by the space.
type cost struct{ runs, visits, matched, indexWrites uint64 }

func (h *host) cost(step func()) cost {
	was := h.core.Stats()
	step()
	is := h.core.Stats()
	return cost{is.Runs - was.Runs, is.Visits - was.Visits, is.Matched - was.Matched, is.IndexWrites - was.IndexWrites}
}

// given applies writes of another runtime, and runs until nothing is left to do.
func (h *host) given(writes ...model.Write) {
	h.t.Helper()
	h.w.put(home, writes...)
	h.integrate()
	h.run()
}

// same fails unless a step costs the same in a small and in a large world.
func same(t *testing.T, of func(n int) cost) {
	t.Helper()
	small, large := of(10), of(10_000)
	if small.runs == 0 {
		t.Error("nothing ran")
	}
	if small != large {
		t.Errorf("with 10: %+v; with 10,000: %+v", small, large)
	}
}

// The cost of an update depends on the nodes that it concerns (docs/adr/0005): it does not grow with unobserved
// nodes, nor with observers whose values stay the same.
func TestAnUpdateCostsWhatItConcerns(t *testing.T) {
	change := func(h *host) cost {
		return h.cost(func() {
			h.given(model.Write{Doc: "in", Path: model.Path{"x"}, Value: model.Int(7)})
		})
	}
	world := func(t *testing.T, p program, also func(h *host)) *host {
		p = p.compute("mine", func(tx *Tx) any { return num(tx.Get("in", "x")) + 1 })
		h := newWorld(t).owner("w1", p.Program)
		h.observe("mine")
		if also != nil {
			also(h)
		}
		h.given(put("in", map[string]any{"x": 1, "y": 1}))
		return h
	}
	t.Run("nodes that never ran", func(t *testing.T) {
		same(t, func(n int) cost {
			p := newProgram(t)
			for i := range n {
				p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any { return tx.Get("in") })
			}
			return change(world(t, p, nil))
		})
	})
	t.Run("dormant nodes that have read something else of the document", func(t *testing.T) {
		same(t, func(n int) cost {
			n += manyReaders // below that, testing them all is faster than an index
			p := newProgram(t)
			for i := range n {
				p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any { return tx.Get("in", "y") })
			}
			return change(world(t, p, func(h *host) {
				for i := range n {
					h.observe(fmt.Sprint("c", i))
				}
				h.run()
				for i := range n {
					h.core.Unobserve(fmt.Sprint("c", i))
				}
			}))
		})
	})
	t.Run("dormant nodes that are invalid", func(t *testing.T) {
		same(t, func(n int) cost {
			p := newProgram(t)
			for i := range n {
				p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any { return tx.Get("other") })
			}
			return change(world(t, p, func(h *host) {
				for i := range n {
					h.observe(fmt.Sprint("c", i))
				}
				h.run()
				for i := range n {
					h.core.Unobserve(fmt.Sprint("c", i))
				}
				h.given(put("other", 2))
			}))
		})
	})
	t.Run("clean observers of an output that stays the same", func(t *testing.T) {
		same(t, func(n int) cost {
			p := newProgram(t).compute("sign", func(tx *Tx) any { return num(tx.Get("in", "x")) > 0 })
			for i := range n {
				p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any { return tx.Get("sign") })
			}
			return change(world(t, p, func(h *host) {
				for i := range n {
					h.observe(fmt.Sprint("c", i))
				}
			}))
		})
	})
}

// A link of a chain costs the same wherever it is, and a chain takes one sweep.
func TestAChainCostsItsLength(t *testing.T) {
	of := func(n int) cost {
		p := newProgram(t)
		last := "in"
		for i := range n {
			input := last
			last = fmt.Sprint("c", i)
			p = p.compute(last, func(tx *Tx) any { return num(tx.Get(input)) + 1 })
		}
		h := newWorld(t).owner("w1", p.Program)
		h.observe(last)
		h.run()
		return h.cost(func() { h.given(put("in", 5)) })
	}
	small, large := of(10), of(1000)
	if small.visits > 11 || large.visits > 1001 || large.runs != 1001 {
		t.Errorf("10 links: %+v; 1000 links: %+v; want a visit per node", small, large)
	}
}

// Demand is maintained along the edges that change: one more or one fewer observer costs the same regardless
// of how many there are, and of the depth of what they observe.
func TestDemandCostsTheEdgesThatChange(t *testing.T) {
	t.Run("observers", func(t *testing.T) {
		same(t, func(n int) cost {
			p := newProgram(t).compute("hub", func(tx *Tx) any { return tx.Get("in") })
			for i := range n + 1 {
				p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any { return tx.Get("hub") })
			}
			h := newWorld(t).owner("w1", p.Program)
			for i := range n {
				h.observe(fmt.Sprint("c", i))
			}
			h.run()
			return h.cost(func() {
				h.observe(fmt.Sprint("c", n))
				h.run()
				h.core.Unobserve(fmt.Sprint("c", n))
				h.run()
			})
		})
	})
	t.Run("depth", func(t *testing.T) {
		same(t, func(n int) cost {
			p := newProgram(t)
			last := "in"
			for i := range min(n, 500) { // what is pulled link by link nests on the stack
				input := last
				last = fmt.Sprint("c", i)
				p = p.compute(last, func(tx *Tx) any { return tx.Get(input) })
			}
			p = p.compute("one", func(tx *Tx) any { return tx.Get(last) })
			p = p.compute("two", func(tx *Tx) any { return tx.Get(last) })
			h := newWorld(t).owner("w1", p.Program)
			h.observe("one")
			h.run()
			return h.cost(func() { h.observe("two"); h.run() })
		})
	})
}
