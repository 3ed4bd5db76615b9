package inspect

import (
	"cmp"
	linked "container/list" // "list" is taken in the tests
	"slices"
)

// Causal circles: nodes that keep invalidating each other, found in a table of which node invalidated which.

// causalEdge records that writer wrote doc, which made reader invalid.
type causalEdge struct{ writer, doc, reader string }

// causalEdges are the most recently seen edges, latest first. The edges of a circle are seen again and again,
// and therefore stay.
type causalEdges struct {
	at     map[causalEdge]*linked.Element
	recent linked.List // of causalEdge
}

func (c *causalEdges) add(e causalEdge, limit int) {
	if at := c.at[e]; at != nil {
		c.recent.MoveToFront(at)
		return
	}
	if c.recent.Len() >= limit {
		delete(c.at, c.recent.Remove(c.recent.Back()).(causalEdge))
	}
	c.at[e] = c.recent.PushFront(e)
}

// causalGraph is a set of causal edges, with the nodes numbered by name.
type causalGraph struct {
	names []string
	next  [][]causalStep // from each node, sorted by reader; one step per reader
	part  []int          // the strongly connected component of each node
	seen  []int          // the last search that visited the node
}

type causalStep struct {
	doc string
	to  int
}

// list copies the edges.
func (c *causalEdges) list() []causalEdge {
	if c == nil {
		return nil
	}
	edges := make([]causalEdge, 0, c.recent.Len())
	for at := c.recent.Front(); at != nil; at = at.Next() {
		edges = append(edges, at.Value.(causalEdge))
	}
	return edges
}

// newCausalGraph builds a graph of edges, which it sorts.
func newCausalGraph(edges []causalEdge) *causalGraph {
	g := &causalGraph{}
	for _, e := range edges {
		g.names = append(g.names, e.writer, e.reader)
	}
	slices.Sort(g.names)
	g.names = slices.Compact(g.names)
	slices.SortFunc(edges, func(a, b causalEdge) int {
		return cmp.Or(cmp.Compare(a.writer, b.writer), cmp.Compare(a.reader, b.reader), cmp.Compare(a.doc, b.doc))
	})
	g.link(edges)
	return g
}

// link turns edges, which must be sorted, into steps. If one node leads to another through several documents,
// the first document stands for all.
func (g *causalGraph) link(edges []causalEdge) {
	g.next = make([][]causalStep, len(g.names))
	g.seen = slices.Repeat([]int{-1}, len(g.names))
	for i, e := range edges {
		if i > 0 && e.writer == edges[i-1].writer && e.reader == edges[i-1].reader {
			continue
		}
		from, to := g.number(e.writer), g.number(e.reader)
		g.next[from] = append(g.next[from], causalStep{e.doc, to})
	}
}

func (g *causalGraph) number(name string) int {
	i, _ := slices.BinarySearch(g.names, name)
	return i
}

func (g *causalGraph) circles() (circles [][]string) {
	g.part = causalComponents(g.next)
	listed := make([]bool, len(g.names))
	for n := range g.names {
		if listed[n] {
			continue
		}
		if way := g.around(n); way != nil {
			circles = append(circles, g.spell(way))
			for _, s := range way {
				listed[s.to] = true
			}
		}
	}
	return circles
}

// causalVisit is a node that a search has visited, and the step that led there.
type causalVisit struct {
	causalStep
	from int // the previous visit, -1 for the first
}

// around returns the shortest path from n back to n, nil if there is none. It searches breadth first, and
// only within the component of n.
func (g *causalGraph) around(n int) []causalStep {
	visits := []causalVisit{{causalStep{to: n}, -1}}
	for i := 0; i < len(visits); i++ {
		for _, s := range g.next[visits[i].to] {
			if s.to == n {
				return causalWay(append(visits, causalVisit{s, i}))
			}
			if g.part[s.to] == g.part[n] && g.seen[s.to] != n {
				g.seen[s.to] = n
				visits = append(visits, causalVisit{s, i})
			}
		}
	}
	return nil
}

// causalWay returns the steps that lead to the last of the visits.
func causalWay(visits []causalVisit) (way []causalStep) {
	for v := visits[len(visits)-1]; v.from >= 0; v = visits[v.from] {
		way = append(way, v.causalStep)
	}
	slices.Reverse(way)
	return way
}

// spell returns the names of the nodes and documents of a path that ends where it began.
func (g *causalGraph) spell(way []causalStep) (circle []string) {
	at := way[len(way)-1].to
	for _, s := range way {
		circle = append(circle, g.names[at], s.doc)
		at = s.to
	}
	return circle
}

// causalComponents numbers the strongly connected components of a graph, from 1, and returns
// the number of each node (Tarjan's algorithm). The recursion is as deep as the longest
// chain, which the table of edges bounds.
func causalComponents(next [][]causalStep) []int {
	n := len(next)
	t := tarjan{next: next, part: make([]int, n), order: make([]int, n), low: make([]int, n)}
	for n := range next {
		if t.order[n] == 0 {
			t.visit(n)
		}
	}
	return t.part
}

// tarjan is the state of that algorithm. A node has been visited if its order is not 0, and its component is
// complete if its part is not 0.
type tarjan struct {
	next       [][]causalStep
	part       []int
	order, low []int // when the node was visited, and the earliest node that it leads back to
	met, parts int
	open       []int // visited, and not in a complete component yet
}

func (t *tarjan) visit(n int) {
	t.met++
	t.order[n], t.low[n] = t.met, t.met
	t.open = append(t.open, n)
	for _, s := range t.next[n] {
		switch {
		case t.order[s.to] == 0:
			t.visit(s.to)
			t.low[n] = min(t.low[n], t.low[s.to])
		case t.part[s.to] == 0:
			t.low[n] = min(t.low[n], t.order[s.to])
		}
	}
	if t.low[n] == t.order[n] {
		t.complete(n)
	}
}

// complete makes a component of n and the open nodes visited after it.
func (t *tarjan) complete(n int) {
	t.parts++
	for t.part[n] == 0 {
		last := len(t.open) - 1
		t.part[t.open[last]] = t.parts
		t.open = t.open[:last]
	}
}
