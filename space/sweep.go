package space

import "slices"

// sweeper runs the nodes that are due.
type sweeper struct {
	*runner
	sweeps uint64
}

// iterate makes one sweep, of primary nodes if any are due, otherwise of the materializers.
func (w *sweeper) iterate(info *PassInfo) (runs int) {
	q := &w.graph.queue
	if q.next.n == 0 && len(q.idle) > 0 {
		w.releaseIdle()
	}
	if q.next.n == 0 {
		return 0
	}
	info.Iterations++
	if f := w.cfg.Trace.Iteration; f != nil {
		f(info.Iterations)
	}
	return w.sweep()
}

// releaseIdle moves all idle materializers into the queue.
func (w *sweeper) releaseIdle() {
	q := &w.graph.queue
	idle := q.idle
	q.idle = nil
	for _, n := range idle {
		q.push(n)
	}
}

// sweep runs the due nodes from low to high.
func (w *sweeper) sweep() (runs int) {
	w.sweeps++
	w.abandoning = false
	g := w.graph
	q := &g.queue
	w.promoteIdle()
	q.sweep, q.next = q.next, q.sweep
	q.sweeping = true
	for q.sweep.n > 0 {
		q.at = q.sweep.lowest()
		for _, n := range q.sweep.take() {
			if w.abandoning {
				q.next.push(n)
			} else if w.runNext(n) {
				runs++
			}
		}
		if w.abandoning {
			q.postpone()
		}
	}
	q.sweeping = false
	return runs
}

// promoteIdle adds idle materializers to this sweep if one of its nodes reads inside their envelope: that
// orders the materializer before the node.
func (w *sweeper) promoteIdle() {
	g := w.graph
	for _, n := range slices.Clone(g.queue.idle) {
		wanted := false
		n.eachReader(true, func(d *dep) { wanted = wanted || d.node.queued && !d.node.materializer() })
		if wanted {
			g.promote(n)
		}
	}
}

// runNext runs the node whose turn it is, if it may run: it is needed, one of its reads has changed, no gate
// holds it, and its budget for this pass is not exhausted.
func (w *sweeper) runNext(n *node) (ran bool) {
	g := w.graph
	n.queued = false
	g.stats.Visits++
	switch {
	case !n.due():
		return false
	case w.ledger.Overflowed() || w.ledger.Closed() || n.height > g.queue.at || w.parentFirst(n):
		g.enqueue(n)
		return false
	}
	if len(g.queue.idle) > 0 {
		next := &g.queue.next
		waiting := next.n
		if w.promoteFor(n); !n.due() {
			return false // in a circle, one of those has pulled it
		}
		if w.abandoning {
			g.enqueue(n)
			return false
		}
		if next.n > waiting && next.lowest() < n.height {
			g.enqueue(n) // the nodes below that they have registered and that are due come first
			return false
		}
	}
	if !w.budgets.mayRun(n) {
		w.budgets.setAside(n)
		return false
	}
	w.runNode(n)
	return true
}

// parentFirst reports whether the node must wait for its maker, or for the maker's maker: descend has ordered
// it behind them, but they may have been raised since. It waits once per sweep: otherwise two makers that
// each read the output of the other's child would wait for each other forever.
func (w *sweeper) parentFirst(n *node) bool {
	for p := n.parent(); p != nil && n.more.waited != w.sweeps; p = p.parent() {
		if p.queued && p.height >= n.height && !p.materializer() && !w.graph.reaches(n, p) {
			n.more.waited = w.sweeps
			w.graph.raise(n, p.height+1)
			return true
		}
	}
	return false
}

// promoteFor runs the idle materializers in whose envelope n reads and which became due after the sweep
// began.
func (w *sweeper) promoteFor(n *node) {
	q := &w.graph.queue
	for i := 0; i < len(q.idle); i++ {
		m := q.idle[i]
		reads := false
		m.eachReader(true, func(d *dep) { reads = reads || d.node == n })
		if !reads {
			continue
		}
		if w.freshen(m); i >= len(q.idle) || q.idle[i] != m {
			i = -1 // it has run, and its writes may concern another one
		}
	}
}
