package space

// Searches, runs and causes are told apart by numbers of 32 bits, which keeps nodes and
// reads small. A busy space would come round within days, and take for seen what it has
// not: so they begin again long before that.

// lastMark is where they do: between two passes, when no search or run is under way.
const lastMark = 1 << 30

// renewMarks begins the numbers again if one has become large.
func (r *runner) renewMarks() {
	g := r.graph
	if max(g.stamp, r.seek, r.txs, int32(g.shots>>1)) < lastMark {
		return
	}
	g.stamp, r.seek, r.txs, g.shots = 0, 0, 0, 0
	for _, n := range g.nodes {
		if n != nil {
			g.renewNode(n)
		}
	}
}

// renewNode forgets what a node is marked with, but for its causes and their order.
func (g *graph) renewNode(n *node) {
	n.mark, n.markDown, n.sought = 0, 0, 0
	for _, d := range n.deps {
		d.seen = 0
	}
	for i, d := range n.causes().reads {
		d.fired = uint32(i + 1)
		g.shots = max(g.shots, d.fired)
	}
}
