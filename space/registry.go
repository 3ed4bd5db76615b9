package space

import "fmt"

// register adds a node. Nothing runs because of it and no data is read: an effect
// is live and will run in the next pass, a computation waits until something
// reads its output (P3).
func (g *graph) register(spec *NodeSpec) (*node, error) {
	if g.byID[spec.ID] != nil {
		return nil, fmt.Errorf("node %s is registered already", spec.ID)
	}
	n := &node{id: spec.ID, kind: spec.Kind, run: spec.Run}
	if spec.Kind == Computation {
		d, err := g.ensureDoc(docKey{doc: spec.Output})
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", spec.ID, err)
		}
		if d.writer != nil {
			return nil, fmt.Errorf("node %s: document %s is written by node %s already", spec.ID, spec.Output, d.writer.id)
		}
		n.output, d.writer = d, n
	}
	g.place(n)
	g.byID[n.id] = n
	g.dirty[n.handle] = true
	g.updateLive(n)
	return n, nil
}

// place gives n a handle: one that was freed, so that observations which come and go
// take no more room than there are at a time, or the next.
func (g *graph) place(n *node) {
	if last := len(g.free) - 1; last >= 0 {
		n.handle, g.free = g.free[last], g.free[:last]
		g.nodes[n.handle] = n
		return
	}
	n.handle = uint32(len(g.nodes))
	g.nodes = append(g.nodes, n)
}

// remove takes a node out. Its demand ends; its output stays as it is.
func (g *graph) remove(n *node) {
	for _, d := range n.deps {
		g.removeDep(d)
	}
	n.deps, n.live, n.status = nil, false, Clean
	if n.output != nil {
		n.output.writer = nil
	}
	g.nodes[n.handle] = nil
	g.free = append(g.free, n.handle)
	delete(g.byID, n.id)
	g.dirty[n.handle] = true
}
