package space

// patience is the number of exhausted passes in a row after which an event no longer
// waits for a node that does not converge: there is no value to wait for, and the
// lane must not stand still for ever (I6). With the default backoff that is after
// about four seconds.
const patience = 5

// lacking reports whether the node is not up to date by itself, in a way that is worth
// waiting for.
func (n *node) lacking() bool {
	return n.status != Clean && (n.more == nil || n.more.gate.streak < patience)
}

// upToDate is the quick answer of many cases: nothing that the node depends on is to
// run. Liveness covers all that is upstream, and a sweep goes upward.
func (g *graph) upToDate(n *node) bool {
	return n.live && n.status == Clean && (g.dueCount == 0 || g.queue.sweeping && n.height <= g.queue.at)
}

// staleWriter returns a writer of what d reads that is not up to date, or has anything
// upstream of it that is not (I4), and nil if there is none.
func (g *graph) staleWriter(d *dep) *node {
	var stale *node
	d.eachWriter(true, func(s *surface) {
		if stale == nil && g.isStale(s.node) {
			stale = s.node
		}
	})
	return stale
}

// isStale reports whether n or anything upstream of it has yet to run. It searches from
// both ends, step by step: up from n, and down from all that is stale. Whichever is
// done first decides, so neither a wide closure of which one node is stale nor a space
// full of stale nodes that are none of n's business makes an event expensive.
func (g *graph) isStale(n *node) bool {
	if n.live && g.dueCount == 0 && g.pending == 0 {
		return false
	}
	up := search{g: g, stamp: g.nextStamp()}
	up.reach(n)
	down := search{g: g, stamp: g.nextStamp(), onlyIf: n}
	next := 0 // of g.stale
	for {
		switch {
		case up.found:
			return true
		case len(up.work) == 0:
			return false
		}
		up.stepUp()
		if g.absent > 0 {
			continue // a document that is not here may be stale too
		}
		for len(down.work) == 0 && next < len(g.stale) {
			if s := g.stale[next]; s.lacking() {
				down.begin(s)
				next++
				break
			}
			next++
			g.stats.Visits++
		}
		if down.found {
			return true
		}
		if len(down.work) == 0 {
			return false // nothing stale leads to n
		}
		down.stepDown()
		if down.found {
			return true
		}
	}
}

// search is one direction of isStale. The two have marks of their own.
type search struct {
	g      *graph
	stamp  int32
	work   []*node
	found  bool
	onlyIf *node // what a search downward looks for
}

func (s *search) reach(n *node) {
	if n.mark != s.stamp {
		n.mark = s.stamp
		s.work = append(s.work, n)
		s.found = s.found || n.lacking()
	}
}

func (s *search) begin(n *node) {
	if n.markDown == s.stamp {
		return
	}
	n.markDown = s.stamp
	s.work = append(s.work, n)
	s.found = s.found || n == s.onlyIf
}

func (s *search) pop() *node {
	s.g.stats.Visits++
	n := s.work[len(s.work)-1]
	s.work = s.work[:len(s.work)-1]
	return n
}

func (s *search) stepUp() {
	for _, d := range s.pop().deps {
		if !d.indexed {
			continue
		}
		if !d.doc.loaded {
			s.found = true // it may have changed since it was last here
		}
		d.eachWriter(true, func(w *surface) { s.reach(w.node) })
	}
}

func (s *search) stepDown() {
	s.pop().eachReader(true, func(d *dep) { s.begin(d.node) })
}
