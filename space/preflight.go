package space

import "slices"

// staleness tracks which nodes are not up to date, and finds the nodes that depend on them.
type staleness struct {
	documents *documents
	queue     *queue
	marks     *marks
	stats     *Stats
	// stale are the nodes from which a search for stale nodes starts, dormant ones included.
	stale []*node
	up    []climb // buffers of seek
	down  []descent
}

// setStatus is the only place where a node's status changes.
func (s *staleness) setStatus(n *node, to Status) {
	was := n.due()
	n.status = to
	s.queue.recount(n, was)
	s.keepStale(n)
}

// keepStale maintains invariant 5 of node.
func (s *staleness) keepStale(n *node) {
	want := !n.removed && (n.status == Invalid || n.status == NeverRan && s.mayMatter(n))
	if want != (n.staleAt != 0) {
		keep(&s.stale, n, want, (*node).stalePlace)
	}
}

func (n *node) stalePlace() *int32 { return &n.staleAt }

// mayMatter reports whether a handler may read what n would write besides its output; the output is examined
// in any case.
func (s *staleness) mayMatter(n *node) bool {
	return n.more != nil && len(n.more.outputs)+len(n.more.envelope) > 0 || s.isRead(n)
}

// isRead reports whether another node reads n's output.
func (s *staleness) isRead(n *node) bool {
	read := false
	n.eachSurface(true, func(s *surface) {
		read = read || slices.ContainsFunc(s.doc.readers, func(d *dep) bool { return d.node != n && s.overlaps(d) })
	})
	return read
}

// upToDate decides the common cases quickly: it reports that no node that n depends on has to run. Liveness
// covers everything upstream, and a sweep goes upward.
func (s *staleness) upToDate(n *node) bool {
	return n.live && n.status == Clean && (s.queue.dueCount == 0 || s.queue.sweeping && n.height <= s.queue.at)
}

// staleWriter returns a writer of what d reads that is stale or has a stale node upstream (I4), nil if there
// is none. d is a handler's read.
func (s *staleness) staleWriter(d *dep) *node {
	w := d.doc.writer
	switch {
	case w != nil && w.node.worthWaitingFor():
		return w.node
	case w == nil || len(d.doc.others) > 0:
		return s.findRoot(preflight{read: d}, climb{deps: []*dep{d}})
	case s.isStale(w.node):
		return w.node
	}
	return nil
}

// isStale reports whether n or anything upstream of it has yet to run.
func (s *staleness) isStale(n *node) bool {
	switch {
	case n.worthWaitingFor():
		return true
	case n.live && s.queue.dueCount == 0 && s.documents.pending == 0:
		return false
	}
	return s.findRoot(preflight{node: n}, climb{deps: n.deps, root: n}) != nil
}

// preflight is a search for stale nodes among its roots and upstream of them. The roots are one node, or all
// writers of what a handler reads. The search alternates between both ends, one edge at a time: up from the
// roots, and down from all stale nodes. Whichever side finishes first decides, so an event stays cheap both
// below a hub with one stale writer among a thousand, and in a space full of unrelated stale nodes.
type preflight struct {
	in   *staleness
	node *node
	read *dep
	// found is a root that is not up to date.
	found *node

	up      []climb
	upStamp int32

	down      []descent
	downStamp int32
	stale     int // entries of graph.stale whose descent has begun
	away      int // likewise of graph.away
	reader    int // and of the readers of the document there
}

// climb is the current way up from a node: to writer at of what deps[next] reads. root is where it began; nil
// if each node that it meets is a root.
type climb struct {
	deps     []*dep
	root     *node
	next, at int
}

// descent is the current way down from a node: to reader at of its surface-th surface.
type descent struct {
	n           *node
	surface, at int
}

// findRoot returns a stale root, or nil.
func (s *staleness) findRoot(p preflight, from climb) *node {
	p.in, p.upStamp, p.downStamp = s, s.marks.next(), s.marks.next()
	p.up, p.down = append(s.up[:0], from), s.down[:0]
	for p.found == nil && len(p.up) > 0 {
		p.stepUp()
		if p.found == nil && !p.stepDown() {
			break // no stale node leads to a root
		}
	}
	s.up, s.down = p.up, p.down // for the next search
	return p.found
}

func (p *preflight) stepUp() {
	p.in.stats.Visits++
	c := &p.up[len(p.up)-1]
	if c.next == len(c.deps) {
		p.up = p.up[:len(p.up)-1]
		return
	}
	d := c.deps[c.next]
	if c.root != nil && !d.indexed {
		c.next++
		return
	}
	if !d.doc.loaded {
		p.found = c.root // it may have changed since the last visit
		return
	}
	s := d.doc.surface(c.at)
	if c.at++; s == nil {
		c.next, c.at = c.next+1, 0
		return
	}
	if s.node != d.node && s.overlaps(d) {
		p.reach(s.node, c.root)
	}
}

func (p *preflight) reach(n, root *node) {
	if n.mark == p.upStamp {
		return
	}
	n.mark = p.upStamp
	if root == nil {
		root = n
	}
	if n.worthWaitingFor() {
		p.found = root
		return
	}
	p.up = append(p.up, climb{deps: n.deps, root: root})
}

// stepDown takes one step down. It returns false if the search from this end is complete.
func (p *preflight) stepDown() bool {
	if len(p.down) == 0 {
		return p.begin()
	}
	p.in.stats.Visits++
	c := &p.down[len(p.down)-1]
	s := c.n.surface(c.surface)
	switch {
	case s == nil:
		p.down = p.down[:len(p.down)-1]
	case c.at == len(s.doc.readers):
		c.surface, c.at = c.surface+1, 0
	default:
		d := s.doc.readers[c.at]
		c.at++
		if d.node != c.n && s.overlaps(d) {
			p.affect(d.node)
		}
	}
	return true
}

// begin starts the descent from the next node that is stale, or that reads an absent foreign document which
// may have changed.
func (p *preflight) begin() bool {
	p.in.stats.Visits++
	switch {
	case p.stale < len(p.in.stale):
		if n := p.in.stale[p.stale]; n.worthWaitingFor() {
			p.affect(n)
		}
		p.stale++
	case p.away < len(p.in.documents.away):
		readers := p.in.documents.away[p.away].readers
		p.affect(readers[p.reader].node)
		if p.reader++; p.reader == len(readers) {
			p.away, p.reader = p.away+1, 0
		}
	default:
		return false
	}
	return true
}

// affect records that n is stale, or has a stale node upstream.
func (p *preflight) affect(n *node) {
	if n.markDown == p.downStamp {
		return
	}
	n.markDown = p.downStamp
	if p.isRoot(n) {
		p.found = n
		return
	}
	p.down = append(p.down, descent{n: n})
}

func (p *preflight) isRoot(n *node) bool {
	if p.node != nil {
		return n == p.node
	}
	root := false
	n.eachSurface(true, func(s *surface) { root = root || s.doc == p.read.doc && s.overlaps(p.read) })
	return root
}
