package space

import "slices"

// Demand (seed 001 section 5): a node is live while an effect observes what it writes,
// directly or through other live nodes. Liveness is kept as a count per surface of its
// live readers, and changes only when an edge does or a node comes or goes, never when
// data changes.

// liveness keeps which nodes are live.
type liveness struct {
	documents *documents
	heights   *heights
	queue     *queue
	gates     *gates
	marks     *marks
	stats     *Stats
	fresh     []*node // under provisional demand
}

// countRead counts a live read, and wakes what it needs.
func (l *liveness) countRead(d *dep) {
	for work := l.passOn(d, true, nil); len(work) > 0; {
		work = l.updateLive(work, true)
	}
}

// uncountRead counts one less.
func (l *liveness) uncountRead(d *dep) {
	for work := l.passOn(d, false, nil); len(work) > 0; {
		work = l.updateLive(work, false)
	}
}

// passOn adjusts the counts that a read contributes to, and adds to work the nodes for
// which that may make a difference.
func (l *liveness) passOn(d *dep, live bool, work []*node) []*node {
	l.documents.needDoc(d.doc, live)
	d.eachWriter(false, func(s *surface) {
		l.stats.Visits++
		if live {
			if s.refs++; s.refs == 1 {
				work = append(work, s.node)
			}
			return
		}
		if s.refs--; s.refs == 0 || s.node.live && l.heights.backEdges > 0 {
			work = append(work, s.node) // what is left may be a circle
		}
	})
	return work
}

// reconsider brings n.live in line with its demand, and passes the change on to
// everything upstream. It does not recurse: chains may be as long as they like.
func (l *liveness) reconsider(n *node) {
	to := !n.live
	for work := []*node{n}; len(work) > 0; {
		work = l.updateLive(work, to)
	}
}

// updateLive takes the last node of work, which may become what to says and not the
// contrary: in the middle of a circle that ends, counts that are still to be taken back
// would bring to life again what has just ceased to be, and so on for ever.
func (l *liveness) updateLive(work []*node, to bool) []*node {
	n := work[len(work)-1]
	work = work[:len(work)-1]
	l.stats.Visits++
	if n.live == to || l.wanted(n) != to {
		return work
	}
	was := n.due()
	n.live = to
	l.queue.recount(n, was)
	if to {
		l.queue.enqueue(n)
	} else if n.more != nil {
		n.more.gate.holds = 0
		l.gates.letGo(n)
	}
	for _, d := range n.deps {
		if d.indexed {
			work = l.passOn(d, to, work)
		}
	}
	return work
}

// wanted is the definition of live (seed 001 section 5.1).
func (l *liveness) wanted(n *node) bool {
	switch {
	case n.removed:
		return false
	case n.isRoot():
		return true
	case !n.isObserved():
		return false
	}
	return !n.live || l.heights.backEdges == 0 || l.rooted(n)
}

// isObserved reports whether there is any live reader of what n writes.
func (n *node) isObserved() bool {
	return n.own.refs > 0 || n.more != nil && slices.ContainsFunc(n.more.outputs, func(s *surface) bool { return s.refs > 0 })
}

// rooted reports whether something other than a circle of computations that keep each
// other live needs n. It goes through live readers only, one at a time: of thousands, the
// first mostly leads to a root. One that is being removed may still have edges, and
// needs nothing any more.
func (l *liveness) rooted(n *node) bool {
	stamp := l.marks.next()
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
			l.stats.Visits++
			if r.mark = stamp; r != n {
				way = append(way, descent{n: r})
			}
		}
	}
}

// isRoot reports whether a node is live by itself.
func (n *node) isRoot() bool { return n.kind == Effect || n.materializer() || n.demand > 0 }

// next goes on to the next edge to a reader of what the node writes outside of an
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
func (l *liveness) demandRun(n *node) {
	n.demand++
	l.reconsider(n)
}

func (l *liveness) releaseRun(n *node) {
	n.demand--
	l.reconsider(n)
}

// provide gives a node that a live run has made its provisional demand (seed 001
// section 5.3): the maker shows that something live is being built here.
func (l *liveness) provide(n *node) {
	n.ext().provisional = true
	l.fresh = append(l.fresh, n)
	l.demandRun(n)
}

// expireProvisional takes provisional demand back at the end of a pass, from the nodes
// that have run. One that was held past the pass that made it keeps it until it has.
func (l *liveness) expireProvisional() {
	if len(l.fresh) == 0 {
		return
	}
	fresh := l.fresh
	l.fresh = nil
	for _, n := range fresh {
		switch {
		case n.removed:
		case n.status == NeverRan || n.waiting || n.more.renewing:
			l.fresh = append(l.fresh, n)
		default:
			n.more.provisional = false
			l.releaseRun(n)
		}
	}
}
