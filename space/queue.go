package space

import (
	"cmp"
	"slices"
)

// queue holds the nodes that are due, by height. A sweep takes them from low to high;
// what becomes due above the place where it is joins it, what becomes due below, as in
// a circle, waits for the next one.
type queue struct {
	sweep, next levels
	sweeping    bool
	at          int32 // the height that the sweep has reached
	// idle are the materializers that are due: they run when nothing else is.
	idle []*node
	// dueCount is how many nodes are live and not clean.
	dueCount int
}

// levels are nodes by height. Within one height they are sorted by ordinal when their
// turn comes.
type levels struct {
	byHeight [][]*node
	low      int32
	n        int
}

func (l *levels) push(n *node) {
	for int(n.height) >= len(l.byHeight) {
		l.byHeight = append(l.byHeight, nil)
	}
	if l.n == 0 || n.height < l.low {
		l.low = n.height
	}
	l.byHeight[n.height] = append(l.byHeight[n.height], n)
	l.n++
}

// lowest returns the lowest height at which there is a node; there is one.
func (l *levels) lowest() int32 {
	for len(l.byHeight[l.low]) == 0 {
		l.low++
	}
	return l.low
}

// take empties the lowest level and returns its nodes in order of registration. The
// slice is good until the level is pushed to again.
func (l *levels) take() []*node {
	h := l.lowest()
	nodes := l.byHeight[h]
	l.byHeight[h] = nodes[:0]
	l.n -= len(nodes)
	inOrder := func(a, b *node) int { return cmp.Compare(a.ordinal, b.ordinal) }
	if !slices.IsSortedFunc(nodes, inOrder) {
		slices.SortFunc(nodes, inOrder)
	}
	return nodes
}

// relevel puts what waits for the next sweep where it belongs after heights have changed.
func (q *queue) relevel() {
	old := q.next
	q.sweep, q.next = levels{}, levels{}
	for _, nodes := range old.byHeight {
		for _, n := range nodes {
			q.next.push(n)
		}
	}
}

// push puts a due node where the sweep will find it.
func (q *queue) push(n *node) {
	if q.sweeping && n.height > q.at {
		q.sweep.push(n)
		return
	}
	q.next.push(n)
}

// len returns how many nodes wait for their turn, without idle materializers.
func (q *queue) len() int { return q.sweep.n + q.next.n }

// waits reports whether anything is left to be looked at.
func (q *queue) waits() bool { return q.len()+len(q.idle) > 0 }

// enqueue puts a node that is due into the queue, unless it is there or is held back
// by something that will put it there.
func (q *queue) enqueue(n *node) {
	if !n.due() || n.queued || n.waiting || n.held {
		return
	}
	n.queued = true
	if n.materializer() {
		q.idle = append(q.idle, n)
		return
	}
	q.push(n)
}

// promote moves an idle materializer into the queue: a node is about to read what it
// may write (seed 001 section 4.3, rule 2).
func (q *queue) promote(n *node) {
	i := slices.Index(q.idle, n)
	q.idle = slices.Delete(q.idle, i, i+1)
	q.push(n)
}

// recount takes in that a node has changed, which was due before or was not.
func (q *queue) recount(n *node, was bool) {
	switch is := n.due(); {
	case is && !was:
		q.dueCount++
	case was && !is:
		q.dueCount--
	}
}
