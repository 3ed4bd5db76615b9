package space

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// hub returns a program with n computations w0, w1, ... of documents a0, a1, ..., and one that adds them up,
// which the handler look reads.
func hub(t *testing.T, n int) program {
	p := newProgram(t).set()
	var writers []string
	for i := range n {
		w := fmt.Sprint("w", i)
		p = p.sum(w, fmt.Sprint("a", i))
		writers = append(writers, w)
	}
	return p.sum("hub", writers...).handle("look", func(tx *Tx, _ *model.Event) any {
		tx.Set("seen", tx.Get("hub"))
		return nil
	})
}

// visits returns the cost of a search.
func (h *host) visits(search func() bool) (found bool, visits uint64) {
	before := h.core.stats.Visits
	found = search()
	return found, h.core.stats.Visits - before
}

func (h *host) isStale(node string) (bool, uint64) {
	return h.visits(func() bool { return h.core.graph.isStale(h.core.graph.byID[node]) })
}

// look makes the handler read the hub, and returns the total cost of the event.
func (h *host) look(id string) uint64 {
	h.t.Helper()
	_, visits := h.visits(func() bool {
		h.w.send(home, "look", id, nil)
		h.run()
		return true
	})
	return visits
}

// One of 200 writers is invalid, and the handler reads a node downstream of them. The invalid one is found
// without visiting the others, with or without other readers of the hub.
func TestM10_OneStaleWriterOfManyIsFoundAtOnce(t *testing.T) {
	for _, observed := range []bool{true, false} {
		t.Run(fmt.Sprintf("observed %v", observed), func(t *testing.T) {
			w := newWorld(t)
			h := w.owner("w1", hub(t, 200).Program)
			if observed {
				h.observe("hub")
			}
			h.look("e0")
			for _, i := range []int{0, 99, 199} {
				w.put(home, put(fmt.Sprint("a", i), i+1))
				h.integrate()
				if found, visits := h.isStale("hub"); !found || visits >= 20 {
					t.Errorf("writer %d: found %v, visited %d", i, found, visits)
				}
				total := h.look(fmt.Sprint("e", i+1))
				if observed && total >= 20 {
					t.Errorf("writer %d: the event visited %d", i, total)
				}
				if found, visits := h.isStale("hub"); found || visits >= 20 {
					t.Errorf("writer %d, up to date: found %v, visited %d", i, found, visits)
				}
			}
			wantValue(t, h, "seen", "301")
			if h.runs["hub"] != 4 || h.runs["w0"] != 2 || h.runs["w1"] != 1 {
				t.Errorf("hub ran %d times, w0 %d, w1 %d", h.runs["hub"], h.runs["w0"], h.runs["w1"])
			}
		})
	}
}

// The same holds if 200 nodes write into the document itself.
func TestM10_OneStaleSideWriterOfManyIsFoundAtOnce(t *testing.T) {
	p := newProgram(t)
	for i := range 200 {
		in, key := fmt.Sprint("a", i), fmt.Sprint("w", i)
		p = p.add(NodeSpec{ID: key, Kind: Computation, Writes: []Address{{Doc: "hub", Path: model.Path{key}}}, Run: func(tx *Tx) (model.Value, error) {
			tx.Set("hub", num(tx.Get(in)), key)
			return model.Value{}, nil
		}})
	}
	p = p.handle("look", func(tx *Tx, _ *model.Event) any {
		tx.Set("seen", tx.Get("hub").Len())
		return nil
	}).handle("one", func(tx *Tx, _ *model.Event) any {
		tx.Set("seen", tx.Get("hub", "w7"))
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "one", "e0", nil)
	h.run()
	if h.runs["w7"] != 1 || len(h.runs) != 1 {
		t.Errorf("nodes ran that do not write there: %v", h.runs)
	}
	h.look("e1")
	wantValue(t, h, "seen", "200")
	read := &dep{doc: h.core.graph.local("hub")}
	for _, i := range []int{0, 150} {
		w.put(home, put(fmt.Sprint("a", i), i+1))
		h.integrate()
		var found *node
		_, visits := h.visits(func() bool { found = h.core.graph.staleWriter(read); return true })
		if want := fmt.Sprint("w", i); found == nil || found.id() != want || visits >= 20 {
			t.Errorf("found %v, want %s, visited %d", found, want, visits)
		}
		h.look(fmt.Sprint("e", i+2))
	}
}

// The cost of an event does not depend on the number of unneeded stale nodes that it does not depend on, nor
// on the number of absent documents of other spaces that these have read.
func TestUnrelatedStaleNodesCostAnEventNothing(t *testing.T) {
	cost := func(strangers int, observed bool) uint64 {
		p := hub(t, 4).sum("tail", "hub")
		for i := range strangers {
			p = p.compute(fmt.Sprint("x", i), func(tx *Tx) any {
				return num(tx.Get("other")) + num(tx.GetFrom("shop", fmt.Sprint("price", i%100)))
			})
		}
		p = p.handle("lookAtTail", func(tx *Tx, _ *model.Event) any { tx.Set("seen", tx.Get("tail")); return nil })
		w := newWorld(t)
		h := w.owner("w1", p.Program)
		for i := range strangers { // each runs once, and is unobserved again
			h.observe(fmt.Sprint("x", i))
		}
		h.run()
		for i := range strangers {
			h.core.Unobserve(fmt.Sprint("x", i))
		}
		if observed {
			h.observe("tail")
		}
		w.put(home, put("other", 1))
		w.send(home, "lookAtTail", "e0", nil)
		h.run()
		if n := len(h.core.graph.stale); n != strangers {
			t.Fatalf("%d nodes are stale, want %d", n, strangers)
		}
		_, visits := h.visits(func() bool {
			w.send(home, "set", "e1", map[string]int{"a1": 7})
			w.send(home, "lookAtTail", "e2", nil)
			w.send(home, "lookAtTail", "e3", nil)
			h.run()
			return true
		})
		wantValue(t, h, "seen", "7")
		return visits
	}
	for _, observed := range []bool{true, false} {
		few, many := cost(200, observed), cost(2000, observed)
		if many != few || many > 100 {
			t.Errorf("observed %v: %d visits with 2000 unrelated stale nodes, %d with 200", observed, many, few)
		}
	}
}

// With ten thousand unrelated stale nodes and a wide clean closure, walking the closure is cheaper.
// Conversely, a clean closure of any width costs nothing if nothing is stale.
func TestTheShorterSideOfTheSearchDecides(t *testing.T) {
	const width, strangers = 512, 10000
	p := hub(t, width)
	for i := range strangers {
		p = p.sum(fmt.Sprint("x", i), "other")
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.look("e1") // the closure is dormant and clean
	if found, visits := h.isStale("hub"); found || visits > 10 {
		t.Errorf("nothing is stale: found %v, visited %d", found, visits)
	}
	g := h.core.graph
	for i := range strangers {
		g.setStatus(g.byID[fmt.Sprint("x", i)], Invalid)
	}
	if found, visits := h.isStale("hub"); found || visits > 10*width {
		t.Errorf("unrelated nodes are stale: found %v, visited %d", found, visits)
	}
	if found, visits := h.isStale("w3"); found || visits > 10 {
		t.Errorf("one writer alone: found %v, visited %d", found, visits)
	}
	h.observe("hub")
	h.run()
	if found, visits := h.isStale("hub"); found || visits > 0 {
		t.Errorf("the closure is observed, so no search is needed: found %v, visited %d", found, visits)
	}
}

// staleByWalking is isStale without regard to cost.
func staleByWalking(n *node, seen map[*node]bool) bool {
	if n.worthWaitingFor() {
		return true
	}
	seen[n] = true
	stale := false
	for _, d := range n.deps {
		if d.indexed {
			stale = stale || !d.doc.loaded
			d.eachWriter(true, func(s *surface) {
				stale = stale || !seen[s.node] && staleByWalking(s.node, seen)
			})
		}
	}
	return stale
}

// The search from both ends finds the same as a plain walk, however nodes are connected: for primary outputs,
// side-writes and envelopes, for nodes that never ran, and with documents of other spaces that have not
// arrived; and it never visits more edges than both ends have.
func TestPreflightAgreesWithAPlainWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewProgram("wired")
		docs := []string{"in", "out0", "out1", "out2", "out3", "out4", "out5", "out6", "out7", "shared"}
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		for i := range n {
			spec := NodeSpec{ID: fmt.Sprint("n", i), Kind: Computation, Run: func(*Tx) (model.Value, error) { return model.Value{}, nil }}
			if rapid.IntRange(0, 3).Draw(t, "output") > 0 {
				spec.Output = fmt.Sprint("out", i)
			}
			if spec.Output == "" || rapid.Bool().Draw(t, "writes") {
				a := Address{Doc: "shared", Path: model.Path{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "at")}}
				if rapid.IntRange(0, 3).Draw(t, "envelope") == 0 {
					spec.Envelope = []Address{a}
				} else {
					spec.Writes = []Address{a}
				}
			}
			if err := p.Add(spec); err != nil {
				t.Fatal(err)
			}
		}
		h := newWorld(t).owner("w1", p)
		g := h.core.graph
		for _, nd := range g.nodes { // as if it had run and made that read
			log := readLog{node: nd, run: 1}
			for range rapid.IntRange(0, 3).Draw(t, "reads") {
				key := docKey{doc: rapid.SampledFrom(docs).Draw(t, "doc")}
				if rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
					key = docKey{space: "shop", doc: "price"}
				}
				d, err := g.ensureDoc(key)
				if err != nil {
					t.Fatal(err)
				}
				path := rapid.SampledFrom([]model.Path{nil, {"x"}, {"y"}}).Draw(t, "path")
				log.add(d, path, rapid.Bool().Draw(t, "shallow"))
			}
			g.applyReads(&log)
			g.setStatus(nd, rapid.SampledFrom([]Status{Clean, Clean, Clean, Invalid, NeverRan}).Draw(t, "status"))
			if rapid.IntRange(0, 5).Draw(t, "demand") == 0 {
				g.demandRun(nd)
			}
		}
		edges := uint64(4)
		for _, nd := range g.nodes {
			edges += 4
			for _, d := range nd.deps {
				edges += 2 + uint64(len(d.doc.others))
			}
			nd.eachSurface(true, func(s *surface) { edges += 2 + uint64(len(s.doc.readers)) })
		}
		for _, nd := range g.nodes {
			want := staleByWalking(nd, map[*node]bool{})
			if got, visits := h.isStale(nd.id()); got != want || visits > 2*edges {
				t.Fatalf("%s: stale %v, a walk says %v; %d visits, %d edges", nd.id(), got, want, visits, edges)
			}
		}
		for _, id := range docs {
			for _, path := range []model.Path{nil, {"x"}, {"z"}} {
				checkStaleWriter(t, g, &dep{doc: g.local(id), path: path, shallow: rapid.Bool().Draw(t, "shallow")})
			}
		}
	})
}

func checkStaleWriter(t *rapid.T, g *graph, read *dep) {
	if read.doc == nil || !read.doc.isWritten() {
		return
	}
	want := map[*node]bool{}
	read.eachWriter(true, func(s *surface) {
		if staleByWalking(s.node, map[*node]bool{}) {
			want[s.node] = true
		}
	})
	got := g.staleWriter(read)
	if got == nil && len(want) > 0 || got != nil && !want[got] {
		t.Fatalf("a read of %s%s finds %v of %d stale writers", read.doc.key, read.path, got, len(want))
	}
}
