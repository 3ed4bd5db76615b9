package space

// Order within a pass (I9). Every node has a height, above that of all nodes whose
// output it reads. A pass goes through what is invalid from low to high, so a node
// comes after everything that may invalidate it, however long the chain, and no clean
// node has to be looked at to find that out (docs/adr/0005).
//
// Heights change only when an edge is made that they do not agree with, and only
// upward. An edge that closes a circle is left out of account: somewhere a circle must
// be entered.

// orderEdge makes the reader of d come after the writer s.
func (g *graph) orderEdge(s *surface, d *dep) {
	n, w := d.node, s.node
	if n.height > w.height || d.back {
		return
	}
	if g.reaches(n, w) {
		d.back = true
		g.backEdges++
		return
	}
	g.raise(n, w.height+1)
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

// raise gives n at least this height, and what is downstream of it what follows.
func (g *graph) raise(n *node, height int32) {
	if n.height >= height {
		return
	}
	n.height = height
	work := []*node{n}
	for len(work) > 0 {
		n, work = work[len(work)-1], work[:len(work)-1]
		g.stats.Visits++
		n.eachReader(true, func(d *dep) {
			if r := d.node; !d.back && r.height <= n.height {
				r.height = n.height + 1
				work = append(work, r)
			}
		})
	}
}
