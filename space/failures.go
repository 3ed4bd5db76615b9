package space

import "slices"

// failures are the nodes whose last run ended in an error. Those of them that are live are listed: their outputs are needed, and are not what the
// documents that they read call for.
type failures struct {
	// all counts the nodes that have failed, dormant ones included.
	all  int
	live []*node
	// changes counts the changes of live, and of the errors of its nodes.
	changes uint64
}

// setErr records the error of a node's last run.
func (f *failures) setErr(n *node, err error) {
	if err == nil && !n.failed() {
		return
	}
	if n.failed() {
		f.all--
	}
	n.ext().lastErr = err
	if err != nil {
		f.all++
	}
	f.keep(n)
}

// keep lists a node, or removes it from the list, after its error has changed, or whether it is live.
func (f *failures) keep(n *node) {
	listed, failing := n.more.failedAt != 0, n.live && n.failed()
	if !listed && !failing {
		return
	}
	f.changes++
	switch {
	case failing && !listed:
		f.live = append(f.live, n)
		n.more.failedAt = int32(len(f.live)) //nolint:gosec // a space has far fewer nodes
	case !failing:
		last := len(f.live) - 1
		moved := f.live[last]
		f.live[n.more.failedAt-1], moved.more.failedAt = moved, n.more.failedAt
		f.live[last], n.more.failedAt = nil, 0
		f.live = f.live[:last]
	}
}

// maxDownstream is how many nodes are visited to find the observed documents that follow from failing ones.
const maxDownstream = 10_000

// downstream visits nodes and the direct and indirect readers of what they write, once each, the nearest first.
func (g *graph) downstream(from []*node, visit func(*node)) {
	seen, list := map[*node]bool{}, slices.Clone(from)
	for _, n := range list {
		seen[n] = true
	}
	for i := 0; i < len(list) && i < maxDownstream; i++ {
		visit(list[i])
		list[i].eachReader(false, func(d *dep) {
			if !seen[d.node] {
				seen[d.node] = true
				list = append(list, d.node)
			}
		})
	}
}
