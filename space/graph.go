package space

// graph holds documents and nodes and the edges between them. Nodes read addresses
// and write surfaces; node-to-node edges are derived from the two where they overlap,
// and never stored.
//
// It is the hot state of a pass, in parts that know only those before them; the structure tables
// follow at the end of the pass. What it does itself is to bring nodes and edges in and out, of
// which each part has to take note.
type graph struct {
	documents
	nodeTable
	marks
	order
	queue
	gates
	liveness
	staleness
	changes

	// failing counts the nodes whose last run ended in an error.
	failing int
	trace   *Trace
	stats   *Stats
	// removing is called with each node that goes.
	removing func(*node)
	// arrival is called with each node that comes, before anything is made of it.
	arrival func(*node)
}

func newGraph(trace *Trace, stats *Stats) *graph {
	g := &graph{trace: trace, stats: stats}
	g.docs, g.far, g.byID = map[string]*doc{}, map[docKey]*doc{}, map[string]*node{}
	g.order = order{table: &g.nodeTable, marks: &g.marks, stats: stats}
	g.gates = gates{queue: &g.queue}
	g.liveness = liveness{documents: &g.documents, order: &g.order, queue: &g.queue, gates: &g.gates, marks: &g.marks, stats: stats}
	g.staleness = staleness{documents: &g.documents, queue: &g.queue, marks: &g.marks, stats: stats}
	g.changes = changes{documents: &g.documents, queue: &g.queue, gates: &g.gates, staleness: &g.staleness, trace: trace, stats: stats}
	return g
}

// expect makes room for so many nodes with their documents at once: that many small
// records would cost more than what is in them.
func (g *graph) expect(nodes, docs int) {
	g.docs = make(map[string]*doc, nodes+docs)
	g.byID = make(map[string]*node, nodes)
	g.nodes = make([]*node, 0, nodes)
	g.spareNodes = make([]node, nodes)
	g.spareDocs = make([]doc, nodes+docs)
}

// index inserts a dep among the readers of its document: from here on it triggers,
// orders and demands.
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

// unindex takes a dep out.
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

// readNames lists the read set for people and for the log: document, then a JSON
// pointer; a shallow read ends in "#".
func (n *node) readNames() []string {
	var names []string
	for _, d := range n.deps {
		if !d.covered && !d.declared {
			names = append(names, d.String())
		}
	}
	return names
}

// String names the address, as in a cause.
func (d *dep) String() string {
	name := d.doc.key.String() + d.path.String()
	if d.shallow {
		name += "#"
	}
	return name
}
