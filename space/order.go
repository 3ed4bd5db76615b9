package space

import (
	"container/heap"
	"slices"
)

// workSet is what one iteration of a pass looks at: the ready nodes, and the live
// nodes downstream of them. The latter are there only so that they come after
// what may invalidate them; they run only if that has happened (I3, I9).
func (g *graph) workSet(ready []*node) []*node {
	g.stamp++
	set := slices.Clone(ready)
	for _, n := range set {
		n.mark = g.stamp
	}
	for i := 0; i < len(set); i++ {
		for _, r := range readersOf(set[i]) {
			if r.node.live && r.node.mark != g.stamp {
				r.node.mark = g.stamp
				set = append(set, r.node)
			}
		}
	}
	return set
}

func readersOf(n *node) []*dep {
	if n.output == nil {
		return nil
	}
	return n.output.readers
}

// order sorts a work set so that writers come before their readers, by Kahn's
// algorithm. Ties, and the choice of where to enter a cycle, go by registration,
// so that the order is the same on every runtime.
func (g *graph) order(set []*node) []*node {
	g.stamp++
	for _, n := range set {
		n.mark, n.blockers = g.stamp, 0
	}
	for _, n := range set {
		g.eachReader(n, func(r *node) { r.blockers++ })
	}
	var free byHandle
	for _, n := range set {
		if n.blockers == 0 {
			free = append(free, n)
		}
	}
	heap.Init(&free)
	return g.drain(set, &free)
}

// drain takes the free nodes in order of registration and frees their readers.
// When none is free and some are left, they are in a cycle: the first registered
// one with the fewest blockers goes ahead.
func (g *graph) drain(set []*node, free *byHandle) []*node {
	sorted := make([]*node, 0, len(set))
	placed := g.stamp + 1
	g.stamp++
	for len(sorted) < len(set) {
		if free.Len() == 0 {
			heap.Push(free, leastBlocked(set, placed))
		}
		n := heap.Pop(free).(*node)
		if n.mark == placed {
			continue
		}
		n.mark = placed
		sorted = append(sorted, n)
		for _, d := range readersOf(n) {
			r := d.node
			if r.mark != placed-1 || r == n {
				continue
			}
			if r.blockers--; r.blockers == 0 {
				heap.Push(free, r)
			}
		}
	}
	return sorted
}

func (g *graph) eachReader(n *node, f func(*node)) {
	for _, d := range readersOf(n) {
		if d.node.mark == g.stamp && d.node != n {
			f(d.node)
		}
	}
}

func leastBlocked(set []*node, placed int) *node {
	var best *node
	for _, n := range set {
		if n.mark == placed {
			continue
		}
		if best == nil || n.blockers < best.blockers || n.blockers == best.blockers && n.handle < best.handle {
			best = n
		}
	}
	return best
}

// byHandle is a heap of nodes in order of registration.
type byHandle []*node

func (h byHandle) Len() int           { return len(h) }
func (h byHandle) Less(i, j int) bool { return h[i].handle < h[j].handle }
func (h byHandle) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byHandle) Push(x any)        { *h = append(*h, x.(*node)) }
func (h *byHandle) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}
