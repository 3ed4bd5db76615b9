package space

import (
	"cmp"
	"slices"
)

// queue holds the nodes that are due, by height. A sweep takes them from low to high; nodes that become due
// above its position join it, those below, as in a circle, wait for the next one.
type queue struct {
	sweep, next levels
	sweeping    bool
	at          int32 // the height of the sweep
	// idle are the materializers that are due: they run when no other node is due.
	idle []*node
	// dueCount counts the nodes that are live and not clean.
	dueCount int
}

// levels are nodes by height. Within one height they are sorted by ordinal when their turn comes.
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

// lowest returns the lowest height with a node; there must be one.
func (l *levels) lowest() int32 {
	for len(l.byHeight[l.low]) == 0 {
		l.low++
	}
	return l.low
}

// take empties the lowest level and returns its nodes in order of registration. The slice is valid until the
// next push to that level.
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

// relevel re-sorts the waiting nodes after heights have changed.
func (q *queue) relevel() {
	old := q.next
	q.sweep, q.next = levels{}, levels{}
	for _, nodes := range old.byHeight {
		for _, n := range nodes {
			q.next.push(n)
		}
	}
}

// push adds a due node where the sweep will find it.
func (q *queue) push(n *node) {
	if q.sweeping && n.height > q.at {
		q.sweep.push(n)
		return
	}
	q.next.push(n)
}

// postpone moves the rest of the sweep to the next one.
func (q *queue) postpone() {
	for q.sweep.n > 0 {
		for _, n := range q.sweep.take() {
			q.next.push(n)
		}
	}
}

// len returns the number of waiting nodes, not counting idle materializers.
func (q *queue) len() int { return q.sweep.n + q.next.n }

// waits reports whether any node waits for its turn.
func (q *queue) waits() bool { return q.len()+len(q.idle) > 0 }

// enqueue adds a due node to the queue, unless it is there already, or something that will enqueue it later
// holds it back.
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

// promote moves an idle materializer into the queue, because a node is about to read a place in its envelope.
func (q *queue) promote(n *node) {
	i := slices.Index(q.idle, n)
	q.idle = slices.Delete(q.idle, i, i+1)
	q.push(n)
}

// recount updates dueCount after a change of n; was reports whether n was due before.
func (q *queue) recount(n *node, was bool) {
	switch is := n.due(); {
	case is && !was:
		q.dueCount++
	case was && !is:
		q.dueCount--
	}
}
