package space

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// wired returns a program whose nodes read what the document wires lists, and return 0 or 1, so that circles
// converge. Every third node writes to places in a shared document, instead of a document of its own.
func wired(t tester, nodes int) *Program {
	p := NewProgram("wired")
	for i := range nodes {
		own := fmt.Sprint("out", i)
		spec := NodeSpec{ID: fmt.Sprint("n", i), Kind: Computation, Output: own}
		side := i%3 == 2
		if side {
			spec.Output, spec.Writes = "", []Address{{Doc: "shared", Path: model.Path{own}}}
		}
		spec.Run = func(tx *Tx) (model.Value, error) {
			total := num(tx.Get("base"))
			for e := range tx.Get("wires", fmt.Sprint(i)).Elements() {
				doc, _ := e.AsString()
				if at, ok := sharedPlace(doc); ok {
					total += num(tx.Get("shared", at))
				} else {
					total += num(tx.Get(doc))
				}
			}
			v := model.Int(min(total, 1))
			if side {
				tx.Set("shared", v, own)
			}
			return v, nil
		}
		if err := p.Add(spec); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return p
}

func sharedPlace(doc string) (string, bool) {
	var i int
	_, err := fmt.Sscanf(doc, "out%d", &i)
	return doc, err == nil && i%3 == 2
}

// edges are the edges between all nodes, computed naively: for each handle, the handles of its readers as bits.
type edges [64]uint64

func (e *edges) add(g *graph) {
	for _, n := range g.nodes {
		if n == nil {
			continue
		}
		for _, d := range n.deps {
			if d.indexed {
				d.eachWriter(true, func(s *surface) { e[s.node.handle] |= 1 << n.handle })
			}
		}
	}
}

// closure returns the transitive edges.
func (e edges) closure() *edges {
	for via := range e {
		for from := range e {
			if e[from]>>via&1 == 1 {
				e[from] |= e[via]
			}
		}
	}
	return &e
}

// closes reports whether anything that d reads depends on its reader.
func (e *edges) closes(d *dep) bool {
	circle := false
	d.eachWriter(true, func(s *surface) { circle = circle || e[d.node.handle]>>s.node.handle&1 == 1 })
	return circle
}

// early returns a node upstream of n that has yet to run in this sweep; it does not follow reads that close a
// circle.
func (e *edges) early(g *graph, n *node) string {
	var waiting []*node
	for _, level := range g.queue.sweep.byHeight {
		waiting = append(waiting, level...)
	}
	seen := map[*node]bool{n: true}
	for work := []*node{n}; len(work) > 0; {
		at := work[0]
		work = work[1:]
		for _, d := range at.deps {
			if !d.indexed || e.closes(d) {
				continue
			}
			d.eachWriter(true, func(s *surface) {
				if !seen[s.node] {
					seen[s.node] = true
					work = append(work, s.node)
				}
			})
		}
		if at != n && at.due() && !at.running && slices.Contains(waiting, at) {
			return at.id()
		}
	}
	return ""
}

// However edges change, no node runs while a node that it depends on has yet to run in the same sweep.
// Circles are excepted: present ones, and those that existed at the beginning of the pass. Heights are
// sometimes recomputed in between.
func TestI9_NoNodeRunsBeforeAWriterOfWhatItReads(t *testing.T) {
	const nodes = 8
	docs := []string{"base"}
	for i := range nodes {
		docs = append(docs, fmt.Sprint("out", i))
	}
	rapid.Check(t, func(t *rapid.T) {
		var h *host
		before := edges{}
		p := wired(t, nodes)
		w := newWorld(t)
		h = w.owner("w1", p)
		h.core.cfg.Trace.RunStart = func(i RunInfo) {
			if h.core.runner.nested > 0 {
				return // it was pulled, and its upstream nodes before it
			}
			now := before
			now.add(h.core.graph)
			if m := now.closure().early(h.core.graph, h.core.graph.byID[i.Node]); m != "" {
				t.Fatalf("%s runs before %s, which is due", i.Node, m)
			}
		}
		settle := func() {
			for more := true; more; {
				h.core.graph.recheckBackEdges()
				before = edges{}
				before.add(h.core.graph)
				if rapid.IntRange(0, 3).Draw(t, "anew") == 0 {
					h.core.graph.rebuildHeight = -1
				}
				more = h.settle().More || h.decide()
			}
		}
		for _, i := range []int{3, 5, 7} {
			h.observe(fmt.Sprint("out", i))
			h.observe("shared")
		}
		for range 40 {
			var writes []model.Write
			for range rapid.IntRange(1, 3).Draw(t, "writes") {
				i := rapid.IntRange(-1, nodes-1).Draw(t, "node")
				if i < 0 {
					writes = append(writes, put("base", rapid.IntRange(0, 1).Draw(t, "base")))
					continue
				}
				reads := rapid.SliceOfNDistinct(rapid.SampledFrom(docs), 0, 3, rapid.ID).Draw(t, "reads")
				writes = append(writes, model.Write{Doc: "wires", Path: model.Path{fmt.Sprint(i)}, Value: model.MustOf(reads)})
			}
			w.put(home, writes...)
			h.integrate()
			settle()
		}
	})
}

// write makes a write by the application, and runs everything that follows from it.
func (h *host) write(doc string, v any) {
	h.t.Helper()
	_, err := h.core.Transact("test", func(tx *Tx) error {
		tx.Set(doc, v)
		return nil
	})
	if err != nil {
		h.t.Fatalf("write: %v", err)
	}
	h.run()
}

func highest(g *graph) (top int32) {
	for _, n := range g.nodes {
		if n != nil {
			top = max(top, n.height)
		}
	}
	return top
}

// Two nodes read each other by turns, and each time the new reader must come after the other: both are
// raised, one after the other. The raising must end.
func TestHeightsDoNotGrowWithTheEdgesThatComeAndGo(t *testing.T) {
	p := newProgram(t)
	for i, doc := range []string{"a", "b"} {
		other := []string{"b", "a"}[i]
		p = p.compute(doc, func(tx *Tx) any {
			if num(tx.Get("turn"))%2 == int64(i) {
				return num(tx.Get(other)) % 2
			}
			return num(tx.Get("turn"))
		})
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("a")
	h.observe("b")
	for i := range 2000 {
		h.write("turn", i)
	}
	if top := highest(h.core.graph); top > 200 {
		t.Errorf("four nodes, and the highest is at %d", top)
	}
	if n := len(h.core.graph.queue.next.byHeight); n > 200 {
		t.Errorf("%d levels for four nodes", n)
	}
}

// A node that makes one more child each time and reads it is raised above that child, and the next child
// above the node.
func TestHeightsDoNotGrowWithTheChildrenThatComeAndGo(t *testing.T) {
	p := newProgram(t).compute("total", func(tx *Tx) any {
		total, from := int64(0), num(tx.Get("from"))
		for i := from; i < from+5; i++ {
			id := fmt.Sprint("row", i)
			tx.Node(NodeSpec{ID: id, Kind: Computation, Output: id, Run: func(*Tx) (model.Value, error) { return model.Int(i), nil }})
			total += num(tx.Get(id))
		}
		return total
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("total")
	for i := range 1000 {
		h.write("from", i)
		wantValue(t, h, "total", fmt.Sprint(5*i+10))
	}
	if top := highest(h.core.graph); top > 200 {
		t.Errorf("seven nodes, and the highest is at %d", top)
	}
}

// When heights are recomputed, the nodes in the queue move to their new places.
func TestHeightsAreRecomputedWhileNodesAreQueued(t *testing.T) {
	var q queue
	high := &node{ordinal: 1, height: 900}
	low := &node{ordinal: 2, height: 700}
	q.push(high)
	q.push(low)
	low.height, high.height = 0, 1
	q.relevel()
	if got := q.next.take(); q.len() != 1 || got[0] != low || q.next.take()[0] != high {
		t.Errorf("the queue is not in order of the new heights")
	}
	if n := len(q.next.byHeight); n != 2 {
		t.Errorf("%d levels are kept for two heights", n)
	}
}

// A node begins to read a document that two others write. One writer must come before the node; the other
// reads the node's output, which closes a circle, and no height would be high enough.
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

	// Without the edge that closes the circle, the reader comes after the other node.
	h.core.Remove("behind")
	checkGraph(t, h.core.graph)
	if g := h.core.graph; g.backEdges != 0 || g.byID["n"].height <= g.byID["before"].height {
		t.Errorf("%d edges close a circle; n at height %d, before at %d", g.backEdges, g.byID["n"].height, g.byID["before"].height)
	}
}

// More edges close circles and disappear again in a pass than are rechecked in one.
func TestEdgesThatHaveGoneAreNotKept(t *testing.T) {
	p := newProgram(t).set().compute("hub", func(tx *Tx) any {
		round := num(tx.Get("round"))
		for i := range 50 {
			tx.Get(fmt.Sprint("spoke", i), fmt.Sprint(round)) // a different place each time
		}
		return 1
	})
	for i := range 50 {
		p.sum(fmt.Sprint("spoke", i), "hub")
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for i := range 50 {
		h.observe(fmt.Sprint("spoke", i))
	}
	most := 0
	for round := range 40 {
		w.send(home, "set", fmt.Sprint("e", round), map[string]any{"round": round})
		h.run()
		most = max(most, len(h.core.graph.backs))
	}
	checkGraph(t, h.core.graph)
	if most > 200 {
		t.Errorf("%d edges that close a circle, or did, are listed", most)
	}
}
