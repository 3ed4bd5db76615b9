package space

import "slices"

// A node is live while an effect observes its output, directly or through other live nodes. Each surface
// counts its live readers. The counts change only when edges or nodes are added or removed, never when data
// changes.

// liveness maintains which nodes are live.
type liveness struct {
	documents *documents
	heights   *heights
	queue     *queue
	gates     *gates
	marks     *marks
	failures  *failures
	stats     *Stats
	fresh     []*node // with provisional demand
}

// countRead counts a live read, and makes the nodes that it needs live.
func (l *liveness) countRead(d *dep) {
	for work := l.passOn(d, true, nil); len(work) > 0; {
		work = l.updateLive(work, true)
	}
}

// uncountRead undoes countRead.
func (l *liveness) uncountRead(d *dep) {
	for work := l.passOn(d, false, nil); len(work) > 0; {
		work = l.updateLive(work, false)
	}
}

// passOn adjusts the counts that a read contributes to, and adds to work the nodes whose liveness may change.
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
			work = append(work, s.node) // the remaining readers may form a circle
		}
	})
	return work
}

// reconsider updates n.live, and that of everything upstream. It is not recursive, since chains may have any
// length.
func (l *liveness) reconsider(n *node) {
	to := !n.live
	for work := []*node{n}; len(work) > 0; {
		work = l.updateLive(work, to)
	}
}

// updateLive processes the last node of work, which may only change toward to: when a circle ends, counts
// that are not updated yet would revive nodes that have just become dormant, without end.
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
	if n.failed() {
		l.failures.keep(n)
	}
	for _, d := range n.deps {
		if d.indexed {
			work = l.passOn(d, to, work)
		}
	}
	return work
}

// wanted is the definition of live.
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

// isObserved reports whether n has a live reader.
func (n *node) isObserved() bool {
	return n.own.refs > 0 || n.more != nil && slices.ContainsFunc(n.more.outputs, func(s *surface) bool { return s.refs > 0 })
}

// rooted reports whether n is needed by anything other than a circle of computations that keep each other
// live. It follows live readers only, one at a time: of thousands, the first usually leads to a root. A node
// that is being removed may still have edges, but needs nothing.
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

// isRoot reports whether a node is live regardless of readers.
func (n *node) isRoot() bool { return n.kind == Effect || n.materializer() || n.demand > 0 }

// next advances to the next edge to a reader of the node's writes, envelopes excluded, and returns the
// reader, nil after the last one.
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

// demandRun keeps n live until the demand is released, for instance while an event waits for n's output.
func (l *liveness) demandRun(n *node) {
	n.demand++
	l.reconsider(n)
}

func (l *liveness) releaseRun(n *node) {
	n.demand--
	l.reconsider(n)
}

// provide gives provisional demand to a node that a live run registered: its maker is evidence that something
// live is being built.
func (l *liveness) provide(n *node) {
	n.ext().provisional = true
	l.fresh = append(l.fresh, n)
	l.demandRun(n)
}

// expireProvisional ends provisional demand at the end of a pass, for the nodes that have run. A node that
// was held back keeps it until it has run.
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
