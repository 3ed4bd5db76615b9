package space

import "slices"

// Demand (seed 001 section 5): a node is live while an effect observes what it writes,
// directly or through other live nodes. Liveness is kept as a count per surface of its
// live readers, and changes only when an edge does or a node comes or goes, never when
// data changes.

// countRead counts a live read, and wakes what it needs.
func (g *graph) countRead(d *dep) {
	for work := g.passOn(d, true, nil); len(work) > 0; {
		work = g.updateLive(work, true)
	}
}

// uncountRead counts one less.
func (g *graph) uncountRead(d *dep) {
	for work := g.passOn(d, false, nil); len(work) > 0; {
		work = g.updateLive(work, false)
	}
}

// passOn adjusts the counts that a read contributes to, and adds to work the nodes for
// which that may make a difference.
func (g *graph) passOn(d *dep, live bool, work []*node) []*node {
	g.needDoc(d.doc, live)
	d.eachWriter(false, func(s *surface) {
		g.stats.Visits++
		if live {
			if s.refs++; s.refs == 1 {
				work = append(work, s.node)
			}
			return
		}
		if s.refs--; s.refs == 0 || s.node.live && g.backEdges > 0 {
			work = append(work, s.node) // what is left may be a circle
		}
	})
	return work
}

// needDoc counts a reason to have a document here.
func (g *graph) needDoc(d *doc, more bool) {
	edge := int32(0) // the count at which the document's being needed flips
	if more {
		d.refs++
		edge = 1
	} else {
		d.refs--
	}
	if d.refs != edge || d.key.space == "" {
		return
	}
	g.follows = append(g.follows, d)
	switch {
	case d.loaded:
	case more:
		g.pending++
	default:
		g.pending--
	}
}

// reconsider brings n.live in line with its demand, and passes the change on to
// everything upstream. It does not recurse: chains may be as long as they like.
func (g *graph) reconsider(n *node) {
	to := !n.live
	for work := []*node{n}; len(work) > 0; {
		work = g.updateLive(work, to)
	}
}

// updateLive takes the last node of work, which may become what to says and not the
// contrary: in the middle of a circle that ends, counts that are still to be taken back
// would bring to life again what has just ceased to be, and so on for ever.
func (g *graph) updateLive(work []*node, to bool) []*node {
	n := work[len(work)-1]
	work = work[:len(work)-1]
	g.stats.Visits++
	if n.live == to || g.wanted(n) != to {
		return work
	}
	was := n.due()
	n.live = to
	g.recount(n, was)
	if to {
		g.enqueue(n)
	} else if n.more != nil {
		n.more.gate.holds = 0
		g.letGo(n)
	}
	for _, d := range n.deps {
		if d.indexed {
			work = g.passOn(d, to, work)
		}
	}
	return work
}

// wanted is the definition of live (seed 001 section 5.1).
func (g *graph) wanted(n *node) bool {
	switch {
	case n.removed:
		return false
	case n.isRoot():
		return true
	case !n.isObserved():
		return false
	}
	return !n.live || g.backEdges == 0 || g.rooted(n)
}

// isObserved reports whether there is any live reader of what n writes.
func (n *node) isObserved() bool {
	return n.own.refs > 0 || n.more != nil && slices.ContainsFunc(n.more.outputs, func(s *surface) bool { return s.refs > 0 })
}

// rooted reports whether something other than a circle of computations that keep each
// other live needs n. It goes through live readers only, one at a time: of thousands, the
// first mostly leads to somebody. One that is being removed may still have edges, and
// needs nothing any more.
func (g *graph) rooted(n *node) bool {
	stamp := g.nextStamp()
	way := []descent{{n: n}}
	for r := n; ; r = way[len(way)-1].next() {
		switch {
		case r == nil:
			if way = way[:len(way)-1]; len(way) == 0 {
				return false
			}
		case r.mark == stamp || !r.live || r.removed:
		case r.isRoot():
			return true
		default:
			g.stats.Visits++
			if r.mark = stamp; r != n {
				way = append(way, descent{n: r})
			}
		}
	}
}

// isRoot reports whether a node is live by itself.
func (n *node) isRoot() bool { return n.kind == Effect || n.materializer() || n.demand > 0 }

// next goes on to the next edge to whoever reads what the node writes outside of an
// envelope, and returns the reader, nil if there are none left.
func (c *descent) next() *node {
	for s := c.n.surface(c.surface); s != nil; s = c.n.surface(c.surface) {
		for ; c.at < len(s.doc.readers) && !s.isEnvelope(); c.at++ {
			if d := s.doc.readers[c.at]; d.node != c.n && s.overlaps(d) {
				c.at++
				return d.node
			}
		}
		c.surface, c.at = c.surface+1, 0
	}
	return nil
}

// demandRun keeps n live until the demand is taken back, as for an event that
// waits for n's output.
func (g *graph) demandRun(n *node) {
	n.demand++
	g.reconsider(n)
}

func (g *graph) releaseRun(n *node) {
	n.demand--
	g.reconsider(n)
}

// provide gives a node that a live run has made its provisional demand (seed 001
// section 5.3): whoever made it shows that something live is being built here.
func (g *graph) provide(n *node) {
	n.ext().provisional = true
	g.fresh = append(g.fresh, n)
	g.demandRun(n)
}

// expireProvisional takes provisional demand back at the end of a pass, from the nodes
// that have run. One that was held past the pass that made it keeps it until it has.
func (g *graph) expireProvisional() {
	if len(g.fresh) == 0 {
		return
	}
	fresh := g.fresh
	g.fresh = nil
	for _, n := range fresh {
		switch {
		case n.removed:
		case n.status == NeverRan || n.waiting || n.more.renewing:
			g.fresh = append(g.fresh, n)
		default:
			n.more.provisional = false
			g.releaseRun(n)
		}
	}
}
