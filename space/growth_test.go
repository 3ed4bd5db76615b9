package space

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// Many paths lead up through a node that is held back. Each node is visited once, not each path: forty rungs
// have a trillion of them.
func TestAHeldNodeIsVisitedOncePerSearch(t *testing.T) {
	p := newProgram(t)
	held := func(id string, inputs ...string) {
		p = p.add(NodeSpec{
			ID: id, Kind: Computation, Output: id, Gate: GateSpec{Debounce: time.Second},
			Run: func(tx *Tx) (model.Value, error) {
				total := num(tx.Get("in"))
				for _, in := range inputs {
					total += num(tx.Get(in))
				}
				return model.Int(total % 10), nil
			},
		})
	}
	const rungs = 40
	held("n0")
	for i := range rungs {
		below := fmt.Sprint("n", i)
		held(fmt.Sprint("a", i), below)
		held(fmt.Sprint("b", i), below)
		held(fmt.Sprint("n", i+1), fmt.Sprint("a", i), fmt.Sprint("b", i))
	}
	top := fmt.Sprint("n", rungs)
	p = p.compute("view", func(tx *Tx) any {
		if num(tx.Get("switch")) == 0 {
			return 0
		}
		return tx.Get(top)
	})
	h := newWorld(t).owner("w1", p.Program)
	h.observe(top)
	h.observe("view")
	h.run()
	h.given(put("in", 1))
	h.given(put("switch", 1))
	h.advance(time.Second)
	h.run()
	if got, want := h.value("view"), h.value(top); got != want {
		t.Errorf("view is %s, want %s", got, want)
	}
}

// The log records what a node has read and why it ran if there is room, but never at the expense of its
// output.
func TestALargeReadSetDoesNotCrowdTheOutputOut(t *testing.T) {
	long := strings.Repeat("x", 90)
	p := newProgram(t).compute("count", func(tx *Tx) any {
		total := int64(0)
		for i := range 6000 {
			total += num(tx.Get("in", fmt.Sprint(long, i))) + 1
		}
		return total
	})
	h := newWorld(t).owner("w1", p.Program)
	h.observe("count")
	h.run()
	wantValue(t, h, "count", "6000")
	if got := h.w.replica(home).Doc("count").Value.String(); got != "6000" {
		t.Errorf("the log has %s", got)
	}
}

// Covering finds the same reads, however many there are.
func TestManyReadsAreCoveredAsFewAre(t *testing.T) {
	d, o := &doc{key: docKey{doc: "d"}}, &doc{key: docKey{doc: "o"}}
	var deps []*dep
	for _, doc := range []*doc{d, o} {
		for _, path := range []string{"", "/a", "/a/b", "/a~1b", "/a/b/c", "/b/c", "/b"} {
			for _, shallow := range []bool{false, true} {
				if doc == d && path == "" && !shallow {
					continue
				}
				p, err := model.ParsePath(path)
				if err != nil {
					t.Fatal(err)
				}
				deps = append(deps, &dep{doc: doc, path: p, shallow: shallow})
			}
		}
	}
	for from := range deps {
		few := deps[from:]
		padded := few
		for i := range manyReads {
			padded = append(padded[:len(padded):len(padded)], &dep{doc: &doc{}, path: model.Path{fmt.Sprint(i)}})
		}
		cover(padded)
		for _, r := range few {
			if want := coveredBy(r, few); r.covered != want {
				t.Errorf("from %d on: %s of %s is covered: %v, want %v", from, r, r.doc.key.doc, r.covered, want)
			}
		}
	}
}

// With a circle somewhere, each observer that ends triggers a search for a root of what it has read. The next
// observer is one; the others need not be visited.
func TestDemandCostsTheEdgesThatChangeWhereThereAreCircles(t *testing.T) {
	same(t, func(n int) cost {
		p := newProgram(t).compute("hub", func(tx *Tx) any { return tx.Get("in") }).
			compute("x", func(tx *Tx) any { return min(3, num(tx.Get("y"))+1) }).
			compute("y", func(tx *Tx) any { return min(3, num(tx.Get("x"))+1) })
		for i := range n + 1 {
			p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any { return tx.Get("hub") })
		}
		h := newWorld(t).owner("w1", p.Program)
		h.observe("x")
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
}
