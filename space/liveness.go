package space

// Demand (seed 001 section 5): a node is live while an effect observes its output,
// directly or through other live nodes. Liveness is kept as a count per document
// of its live readers, and changes only when an edge does or a node comes or
// goes, never when data changes.

// addRef counts one more live reader of d, and wakes what d needs.
func (g *graph) addRef(d *doc) {
	d.refs++
	if d.refs == 1 {
		g.needed(d)
	}
}

// dropRef counts one less.
func (g *graph) dropRef(d *doc) {
	d.refs--
	if d.refs == 0 {
		g.needed(d)
	} else if d.writer != nil {
		g.updateLive(d.writer) // what is left may be a circle
	}
}

// needed reacts to a document having gained its first live reader or lost its
// last one.
func (g *graph) needed(d *doc) {
	if d.key.space != "" {
		g.follows = append(g.follows, d)
	}
	if d.writer != nil {
		g.updateLive(d.writer)
	}
}

// updateLive brings n.live in line with its demand, and passes the change on to
// everything upstream. It does not recurse: chains may be as long as they like.
func (g *graph) updateLive(n *node) {
	work := []*node{n}
	for len(work) > 0 {
		n, work = work[len(work)-1], work[:len(work)-1]
		want := n.kind == Effect || n.demand > 0 || n.output.refs > 0 && (!n.live || g.rooted(n))
		if want == n.live {
			continue
		}
		n.live = want
		if want {
			g.enqueue(n)
		}
		for _, dep := range n.deps {
			work = g.passOn(dep.doc, want, work)
		}
	}
}

// rooted reports whether an effect, or an event that waits, is what keeps n live, and
// not a circle of computations that keep each other. Every live node off a circle is
// rooted, so the search goes straight down and seldom turns back.
func (g *graph) rooted(n *node) bool {
	g.stamp++
	work := []*node{n}
	next := []int{0} // the reader to look at next, for each of work
	n.mark = g.stamp
	for len(work) > 0 {
		top := len(work) - 1
		n := work[top]
		if n.kind == Effect || n.demand > 0 {
			return true
		}
		if next[top] == len(n.output.readers) {
			work, next = work[:top], next[:top]
			continue
		}
		r := n.output.readers[next[top]].node
		next[top]++
		if r.live && r.mark != g.stamp {
			r.mark = g.stamp
			work, next = append(work, r), append(next, 0)
		}
	}
	return false
}

func (g *graph) passOn(d *doc, live bool, work []*node) []*node {
	edge := 0 // the count at which the document's being needed flips
	if live {
		d.refs++
		edge = 1
	} else {
		d.refs--
	}
	if d.refs != edge {
		if !live && d.writer != nil && d.writer.live {
			work = append(work, d.writer) // what is left may be a circle
		}
		return work
	}
	if d.key.space != "" {
		g.follows = append(g.follows, d)
	}
	if d.writer != nil {
		work = append(work, d.writer)
	}
	return work
}

// demandRun keeps n live until the demand is taken back, as for an event that
// waits for n's output.
func (g *graph) demandRun(n *node) {
	n.demand++
	g.updateLive(n)
}

func (g *graph) releaseRun(n *node) {
	n.demand--
	g.updateLive(n)
}

// enqueue puts a node that is live and not clean into the ready list.
func (g *graph) enqueue(n *node) {
	if n.live && n.status != Clean && !n.queued {
		n.queued = true
		g.ready = append(g.ready, n)
	}
}
