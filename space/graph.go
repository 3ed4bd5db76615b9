package space

import (
	"fmt"
	"slices"
)

// graph holds documents, nodes and the edges between them. Nodes read addresses and write surfaces;
// node-to-node edges follow from where the two overlap, and are never stored.
//
// It is the hot state of a pass, in parts that depend only on those before them. The graph itself adds and
// removes nodes and edges, and notifies each part.
type graph struct {
	documents
	nodeTable
	marks
	heights
	queue
	gates
	liveness
	staleness
	changes
	failures

	trace *Trace
	stats *Stats
	// removing is called with each node that is removed.
	removing func(*node)
	// arrival is called with each new node, before wire.
	arrival func(*node)
}

func newGraph(trace *Trace, stats *Stats) *graph {
	g := &graph{trace: trace, stats: stats}
	g.docs, g.far, g.byID = map[string]*doc{}, map[docKey]*doc{}, map[string]*node{}
	g.heights = heights{table: &g.nodeTable, marks: &g.marks, stats: stats}
	g.gates = gates{queue: &g.queue, wall: func() int64 { return 0 }, changed: func(*node) {}}
	g.liveness = liveness{documents: &g.documents, heights: &g.heights, queue: &g.queue, gates: &g.gates, marks: &g.marks, failures: &g.failures, stats: stats}
	g.staleness = staleness{documents: &g.documents, queue: &g.queue, marks: &g.marks, stats: stats}
	g.changes = changes{documents: &g.documents, queue: &g.queue, gates: &g.gates, staleness: &g.staleness, trace: trace, stats: stats}
	return g
}

// expect allocates nodes and documents in bulk: many single records would cost more than their contents.
func (g *graph) expect(nodes, docs int) {
	g.docs = make(map[string]*doc, nodes+docs)
	g.byID = make(map[string]*node, nodes)
	g.nodes = make([]*node, 0, nodes)
	g.spareNodes = make([]node, nodes)
	g.spareDocs = make([]doc, nodes+docs)
}

// index adds a dep to the readers of its document: from now on it triggers, orders and demands.
func (g *graph) index(d *dep) {
	d.indexed = true
	d.slot = int32(len(d.doc.readers))
	d.doc.readers = append(d.doc.readers, d)
	d.doc.pathAdded(d)
	g.stats.IndexWrites++
	g.keepAway(d.doc)
	g.orderDep(d)
	d.eachWriter(true, func(s *surface) { g.keepStale(s.node) })
	if d.node.live {
		g.countRead(d)
	}
}

// unindex removes a dep from the readers of its document.
func (g *graph) unindex(d *dep) {
	readers := d.doc.readers
	last := len(readers) - 1
	readers[d.slot] = readers[last]
	readers[d.slot].slot = d.slot
	readers[last] = nil
	d.doc.readers = readers[:last]
	if last == 0 {
		g.mayForget(d.doc)
	}
	d.doc.pathRemoved(d)
	d.indexed = false
	if len(g.comparing) > 0 {
		delete(g.comparing, d)
	}
	g.stats.IndexWrites++
	g.keepAway(d.doc)
	g.setBack(d, false)
	g.edgeGone()
	if d.node.live {
		g.uncountRead(d)
	}
	d.eachWriter(true, func(s *surface) { g.keepStale(s.node) })
}

// register adds a node. Nothing runs and no data is read because of it: an effect is live and will run in the
// next pass, a computation waits until something reads its output (P3).
func (g *graph) register(spec *declaration, parent *node) (*node, error) {
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
	if g.arrival != nil {
		g.arrival(n)
	}
	g.reconsider(n)
	if n.due() {
		g.armGate(n)
	}
	return n, nil
}

// setKind changes the kind of a node: an effect is live by itself.
func (g *graph) setKind(n *node, kind NodeKind) {
	if n.kind != kind {
		n.kind = kind
		g.reconsider(n)
	}
}

// wire adds the node's surfaces and declared reads, and connects the nodes that read those places already.
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
		g.rewritten(d)
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
	g.rewritten(d)
	return nil
}

// surfaceAdded connects a surface to its readers.
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

// remove removes a node and all of its children. Its demand ends; its output stays.
func (g *graph) remove(n *node) {
	if n.removed {
		return
	}
	if n.running {
		n.removedMeanwhile = true
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
}

// removeAll removes children that their parent no longer registers.
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
		// Not in place: a run may be iterating over them, having pulled the node that causes this removal.
		s.doc.others = slices.DeleteFunc(slices.Clone(s.doc.others), func(o *surface) bool { return o == s })
	}
	for _, d := range s.doc.readers {
		if d.back && s.overlaps(d) {
			g.setBack(d, false)
			g.orderDep(d)
		}
	}
	g.rewritten(s.doc)
}

func (g *graph) leaveParent(n *node) {
	if p := n.more.parent; p != nil {
		p.more.children = slices.DeleteFunc(p.more.children, func(c *node) bool { return c == n })
		n.more.parent = nil
	}
}

// applyReads makes the reads of a run the read set of its node, applying only the difference from the
// previous read set, and reports whether there was one.
func (g *graph) applyReads(l *readLog) bool {
	n := l.node
	if l.unchanged() {
		return false
	}
	if !l.diverged {
		l.diverge()
	}
	old := n.deps
	n.deps = l.hand()
	cover(n.deps)
	changed := false
	for _, d := range n.deps {
		if !d.covered && !d.indexed {
			g.index(d)
			changed = true
		}
	}
	for _, d := range old {
		if d.indexed && (d.seen != l.run || d.covered) {
			g.unindex(d)
			changed = true
		}
	}
	l.list = old[:0]
	return changed
}

// inSync reports whether all foreign documents that n reads have arrived.
func (g *graph) inSync(n *node) bool {
	return !slices.ContainsFunc(n.deps, func(d *dep) bool { return !d.doc.loaded })
}

// renewNode resets the search marks of a node, but keeps its causes in order.
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
