package space

import (
	"fmt"
	"slices"
)

// Register adds a node to this space, beside those of its program: something that the
// application observes, or derives for itself. It lasts until Remove, and no longer than
// the space is hosted here. Nothing runs before the next Settle.
func (s *Space) Register(spec NodeSpec) error {
	defer s.runner.inv.step(s)
	if err := spec.check(); err != nil {
		return fmt.Errorf("node %q: %w", spec.ID, err)
	}
	_, err := s.graph.register(spec.clone(), nil)
	return err
}

// Remove takes a node out that Register has added, with all that it has made. Its demand
// ends; what it has written stays, but for a volatile output. It reports whether there was
// such a node. A node of the program would be missing for good; a child comes again with its
// parent's next run.
func (s *Space) Remove(id string) bool {
	defer s.runner.inv.step(s)
	n := s.graph.byID[id]
	if n == nil {
		return false
	}
	s.graph.remove(n)
	return true
}

// register adds a node. Nothing runs because of it and no data is read: an effect
// is live and will run in the next pass, a computation waits until something
// reads its output (P3).
func (g *graph) register(spec *NodeSpec, parent *node) (*node, error) {
	if g.byID[spec.ID] != nil {
		return nil, fmt.Errorf("node %s is registered already; remove it first, or use another id", spec.ID)
	}
	if d := g.local(spec.Output); d != nil && d.writer != nil {
		return nil, fmt.Errorf("node %s: document %s is written by node %s already", spec.ID, spec.Output, d.writer.node.id())
	}
	n := g.newNode()
	n.spec, n.kind, n.ordinal = spec, spec.Kind, g.ordinals.of(spec.ID)
	if parent != nil {
		n.ext().parent = parent
		parent.ext().children = append(parent.more.children, n)
	}
	if err := g.wire(n); err != nil {
		return nil, err
	}
	g.descend(n)
	g.times.take(n)
	g.place(n)
	g.byID[spec.ID] = n
	g.reshaped(n.handle)
	if g.arrival != nil {
		g.arrival(n)
	}
	g.reconsider(n)
	if n.due() {
		g.armGate(n)
	}
	return n, nil
}

// wire lays the node's surfaces and the reads that it declares. Whoever reads those
// places already is connected by that.
func (g *graph) wire(n *node) error {
	spec := n.spec
	if spec.Gate != (GateSpec{}) {
		n.ext().gate.apply(spec.Gate)
	}
	if spec.Output != "" {
		d, err := g.ensureDoc(docKey{doc: spec.Output})
		if err != nil {
			return err
		}
		n.own = surface{node: n, doc: d}
		d.writer = &n.own
		g.surfaceAdded(&n.own)
	}
	for _, a := range slices.Concat(spec.Writes, spec.Envelope) {
		if err := g.addSurface(n, a); err != nil {
			return err
		}
	}
	for _, a := range spec.DeclaredReads {
		d, err := g.ensureDoc(docKey{a.Space, a.Doc})
		if err != nil {
			return err
		}
		declared := &dep{node: n, doc: d, path: a.Path, declared: true}
		n.deps = append(n.deps, declared)
		g.index(declared)
	}
	return nil
}

func (g *graph) addSurface(n *node, a Address) error {
	d, err := g.ensureDoc(docKey{doc: a.Doc})
	if err != nil {
		return err
	}
	s := &surface{node: n, doc: d, path: a.Path}
	d.others = append(d.others, s)
	if n.materializer() {
		n.ext().envelope = append(n.more.envelope, s)
	} else {
		n.ext().outputs = append(n.more.outputs, s)
	}
	g.surfaceAdded(s)
	return nil
}

// surfaceAdded connects a surface to the readers that are there.
func (g *graph) surfaceAdded(s *surface) {
	counted := !s.isEnvelope()
	for _, d := range s.doc.readers {
		if d.node == s.node || !s.overlaps(d) {
			continue
		}
		g.orderEdge(s, d)
		if counted && d.node.live {
			s.refs++
		}
	}
	g.keepStale(s.node)
}

// remove takes a node out, with all that it has made. Its demand ends; its output
// stays as it is.
func (g *graph) remove(n *node) {
	if n.removed {
		return
	}
	if n.running {
		n.doomed = true
		return
	}
	if n.more != nil {
		g.leaveParent(n)
		children := n.more.children
		n.more.children = nil
		g.removeAll(children)
	}
	if g.removing != nil {
		g.removing(n)
	}
	g.letGo(n)
	g.setErr(n, nil)
	was := n.due()
	n.removed = true
	g.recount(n, was)
	for _, d := range n.deps {
		if d.indexed {
			g.unindex(d)
		}
	}
	n.live, n.deps = false, nil
	g.keepStale(n)
	n.eachSurface(true, g.dropSurface)
	g.nodes[n.handle] = nil
	g.free = append(g.free, n.handle)
	g.ordinals.retire(n)
	g.times.put(n)
	delete(g.byID, n.id())
	g.reshaped(n.handle)
}

// retire ends what the space knows of a node that goes. What it has come to goes with it if
// that is not in the log: nobody would compute it again after a restart.
func (r *runner) retire(n *node) {
	r.echoes.retire(n)
	if n.saved {
		r.observations.forgotten = append(r.observations.forgotten, n.id())
	}
	if d := n.own.doc; d != nil && n.spec.Volatile {
		r.graph.change(d, r.ledger.Value(d.key.doc), origin{node: n})
	}
}

// removeAll takes children out whose parent does not list them any more.
func (g *graph) removeAll(children []*node) {
	for _, c := range children {
		c.more.parent = nil
		g.remove(c)
	}
}

func (g *graph) dropSurface(s *surface) {
	g.mayForget(s.doc)
	g.edgeGone()
	if s.doc.writer == s {
		s.doc.writer = nil
	} else {
		// Not in place: a run may be going through them, and have pulled the node that does this.
		s.doc.others = slices.DeleteFunc(slices.Clone(s.doc.others), func(o *surface) bool { return o == s })
	}
	for _, d := range s.doc.readers {
		if d.back && s.overlaps(d) {
			g.setBack(d, false)
			g.orderDep(d)
		}
	}
}

func (g *graph) leaveParent(n *node) {
	if p := n.more.parent; p != nil {
		p.more.children = slices.DeleteFunc(p.more.children, func(c *node) bool { return c == n })
		n.more.parent = nil
	}
}
