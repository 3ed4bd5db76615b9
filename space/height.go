package space

import (
	"cmp"
	"slices"
)

// Order within a pass (I9). The height of every node is above that of all nodes whose output it reads. A pass
// visits invalid nodes from low to high, so a node comes after everything that may invalidate it, however
// long the chain, without a visit to clean nodes (docs/adr/0005).
//
// Heights change only when a new edge contradicts them, and only upward; when they have become much higher
// than necessary, all are recomputed. An edge that closes a circle is ignored, because the sweep must enter a
// circle somewhere. It is rechecked after an edge was removed, which may have opened the circle.
//
// A node also comes after its maker, unless its data orders them otherwise.

// heights assigns each node its height.
type heights struct {
	table *nodeTable
	marks *marks
	stats *Stats
	// backs are the edges that close a circle, and some that used to, in the order of their rechecks;
	// unchecked counts those still to be rechecked.
	backs     []*dep
	unchecked int
	// backEdges counts the edges that close a circle; if there are none, no node can keep itself live.
	backEdges int
	// top is the greatest height; at rebuildHeight all are recomputed.
	top, rebuildHeight int32
}

// orderEdge makes the reader of d come after the writer s.
func (h *heights) orderEdge(s *surface, d *dep) {
	n, w := d.node, s.node
	if n.height > w.height || d.back {
		return
	}
	if h.reaches(n, w) {
		h.setBack(d, true)
		return
	}
	h.raise(n, w.height+1)
}

// orderDep makes the reader of d come after all writers of d. It determines which of them are downstream of
// the reader before it raises any node: d is indexed at each of them already, and raising would not
// terminate.
func (h *heights) orderDep(d *dep) {
	n := d.node
	height := n.height
	d.eachWriter(true, func(s *surface) {
		switch w := s.node; {
		case d.back || n.height > w.height:
		case h.reaches(n, w):
			h.setBack(d, true)
		default:
			height = max(height, w.height+1)
		}
	})
	if !d.back {
		h.raise(n, height)
	}
}

// reaches reports whether to is downstream of from. Heights grow along edges, so nodes above to cannot lead
// there.
func (h *heights) reaches(from, to *node) bool {
	stamp := h.marks.next()
	from.mark = stamp
	work := []*node{from}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if n == to {
			return true
		}
		h.stats.Visits++
		n.eachReader(true, func(d *dep) {
			if r := d.node; !d.back && r.mark != stamp && r.height <= to.height {
				r.mark = stamp
				work = append(work, r)
			}
		})
	}
	return false
}

// raise raises n to at least this height, and nodes downstream accordingly. A height above the number of
// nodes reveals an unrecognized circle: its last edge is then treated as closing it and ignored, so that
// raising terminates.
func (h *heights) raise(n *node, height int32) {
	if n.height >= height {
		return
	}
	n.height = height
	h.top = max(h.top, height)
	ceiling := height + int32(len(h.table.nodes))
	work := []*node{n}
	for len(work) > 0 {
		n, work = work[len(work)-1], work[:len(work)-1]
		h.stats.Visits++
		n.eachReader(true, func(d *dep) {
			if r := d.node; !d.back && r.height <= n.height {
				if n.height == ceiling {
					h.setBack(d, true)
					return
				}
				r.height = n.height + 1
				h.top = max(h.top, r.height)
				work = append(work, r)
			}
		})
	}
}

// setBack records whether an edge closes a circle.
func (h *heights) setBack(d *dep, back bool) {
	switch {
	case d.back == back:
		return
	case !back:
		h.backEdges--
	default:
		h.backEdges++
		if !d.listed {
			d.listed = true
			h.backs = append(h.backs, d)
		}
	}
	d.back = back
}

// edgeGone records that circles may have been opened.
func (h *heights) edgeGone() { h.unchecked = len(h.backs) }

// maxRechecked bounds the edges that a pass rechecks.
const maxRechecked = 16

// recheckBackEdges rechecks edges that closed a circle, in turn, after other edges were removed. Otherwise
// the reader would come before its writer for good. Edges that no longer close a circle are only dropped, and
// do not count toward the bound: otherwise they could be added faster than they are dropped.
func (h *heights) recheckBackEdges() {
	if h.unchecked == 0 {
		return
	}
	n, again := 0, []*dep(nil)
	for ; n < h.unchecked && len(again) < maxRechecked; n++ {
		d := h.backs[n]
		d.listed = false
		if d.back {
			again = append(again, d)
		}
	}
	h.unchecked -= n
	h.backs = slices.Delete(h.backs, 0, n)
	for _, d := range again {
		h.setBack(d, false)
		h.orderDep(d)
	}
}

// descend makes a node come after its maker, which may be about to remove it. Data takes precedence: a parent
// that reads what its child writes comes after the child. This considers only present edges; see also
// sweeper.parentFirst.
func (h *heights) descend(n *node) {
	if p := n.parent(); p != nil && n.height <= p.height && !h.reaches(n, p) {
		h.raise(n, p.height+1)
	}
}

// lower recomputes all heights as the least possible when the highest is twice what was needed last time, and
// reports whether it did. Otherwise edges that come and go would raise each other without end.
func (h *heights) lower() (lowered bool) {
	if h.top <= h.rebuildHeight {
		return false
	}
	var nodes []*node
	for _, n := range h.table.nodes {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(a.height, b.height) })
	done := h.marks.next()
	h.top = 0
	for _, n := range nodes {
		n.height = n.leastHeight(done)
		n.mark = done
		h.top = max(h.top, n.height)
	}
	h.rebuildHeight = 2*h.top + 64 + int32(len(nodes)/16)
	return true
}

// leastHeight returns the height that n needs. The heights of all nodes before it are final.
func (n *node) leastHeight(done int32) (height int32) {
	if p := n.parent(); p != nil && p.mark == done {
		height = p.height + 1
	}
	for _, d := range n.deps {
		if d.indexed && !d.back {
			d.eachWriter(true, func(s *surface) { height = max(height, s.node.height+1) })
		}
	}
	return height
}
