package space

import (
	"cmp"
	"slices"
)

// Order within a pass (I9). Every node has a height, above that of all nodes whose
// output it reads. A pass goes through what is invalid from low to high, so a node
// comes after everything that may invalidate it, however long the chain, and no clean
// node has to be looked at to find that out (docs/adr/0005).
//
// Heights change only when an edge is made that they do not agree with, and only
// upward; when they have become much higher than they need be, they are all given anew.
// An edge that closes a circle is left out of account: somewhere a circle must be
// entered. It is looked at again when an edge has gone, which may have opened the circle.
//
// A node also comes after the one that made it, unless data says otherwise.

// orderEdge makes the reader of d come after the writer s.
func (g *graph) orderEdge(s *surface, d *dep) {
	n, w := d.node, s.node
	if n.height > w.height || d.back {
		return
	}
	if g.reaches(n, w) {
		g.setBack(d, true)
		return
	}
	g.raise(n, w.height+1)
}

// orderDep makes the reader of d come after all that write there. Whether one of them is
// downstream of it is asked of all before anything is raised: d is among the readers of
// each already, and raising would go round for ever.
func (g *graph) orderDep(d *dep) {
	n := d.node
	height := n.height
	d.eachWriter(true, func(s *surface) {
		switch w := s.node; {
		case d.back || n.height > w.height:
		case g.reaches(n, w):
			g.setBack(d, true)
		default:
			height = max(height, w.height+1)
		}
	})
	if !d.back {
		g.raise(n, height)
	}
}

// reaches reports whether to is downstream of from. Heights grow along edges, so what
// is above to cannot lead there.
func (g *graph) reaches(from, to *node) bool {
	stamp := g.nextStamp()
	from.mark = stamp
	work := []*node{from}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if n == to {
			return true
		}
		g.stats.Visits++
		n.eachReader(true, func(d *dep) {
			if r := d.node; !d.back && r.mark != stamp && r.height <= to.height {
				r.mark = stamp
				work = append(work, r)
			}
		})
	}
	return false
}

// raise gives n at least this height, and what is downstream of it what follows. Nothing
// can be further up than by the number of nodes, unless a circle was not found to be one:
// its last edge is left out of account then, as any that closes one, instead of going round
// for ever.
func (g *graph) raise(n *node, height int32) {
	if n.height >= height {
		return
	}
	n.height = height
	g.top = max(g.top, height)
	ceiling := height + int32(len(g.nodes))
	work := []*node{n}
	for len(work) > 0 {
		n, work = work[len(work)-1], work[:len(work)-1]
		g.stats.Visits++
		n.eachReader(true, func(d *dep) {
			if r := d.node; !d.back && r.height <= n.height {
				if n.height == ceiling {
					g.setBack(d, true)
					return
				}
				r.height = n.height + 1
				g.top = max(g.top, r.height)
				work = append(work, r)
			}
		})
	}
}

// setBack notes that an edge closes a circle, or does not any more.
func (g *graph) setBack(d *dep, back bool) {
	switch {
	case d.back == back:
		return
	case !back:
		g.backEdges--
	default:
		g.backEdges++
		if !d.listed {
			d.listed = true
			g.backs = append(g.backs, d)
		}
	}
	d.back = back
}

// edgeGone notes that circles may have been opened.
func (g *graph) edgeGone() { g.loose = len(g.backs) }

// maxLoosened bounds how many edges are looked at again per pass.
const maxLoosened = 16

// loosen looks at edges that have closed a circle again, in turn, after others have gone.
// Without this the reader would come before its writer for good. Those that close none any
// more are only dropped, and do not count: else they could come faster than they go.
func (g *graph) loosen() {
	if g.loose == 0 {
		return
	}
	n, again := 0, []*dep(nil)
	for ; n < g.loose && len(again) < maxLoosened; n++ {
		d := g.backs[n]
		d.listed = false
		if d.back {
			again = append(again, d)
		}
	}
	g.loose -= n
	g.backs = slices.Delete(g.backs, 0, n)
	for _, d := range again {
		g.setBack(d, false)
		g.orderDep(d)
	}
}

// descend makes a node come after the one that made it, which may be about to remove it
// (seed 001 section 7.4, rule 2). Data outweighs that: a parent that reads what its child
// makes comes after it. Only what is known now counts; see also Space.parentFirst.
func (g *graph) descend(n *node) {
	if p := n.parent(); p != nil && n.height <= p.height && !g.reaches(n, p) {
		g.raise(n, p.height+1)
	}
}

// lower gives all nodes the least heights when the highest has become twice what was
// needed last time. Edges that come and go push each other up, and would without end.
func (g *graph) lower() {
	if g.top <= g.roof {
		return
	}
	var nodes []*node
	for _, n := range g.nodes {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(a.height, b.height) })
	done := g.nextStamp()
	g.top = 0
	for _, n := range nodes {
		n.height = n.leastHeight(done)
		n.mark = done
		g.top = max(g.top, n.height)
	}
	g.roof = 2*g.top + 64 + int32(len(nodes)/16)
	g.queue.relevel()
}

// leastHeight is the height that n needs, given those of all that comes before it.
func (n *node) leastHeight(done int32) (height int32) {
	if p := n.parent(); p != nil && p.mark == done {
		height = p.height + 1
	}
	for _, d := range n.deps {
		if d.indexed && !d.back {
			d.eachWriter(true, func(s *surface) { height = max(height, s.node.height+1) })
		}
	}
	return height
}
