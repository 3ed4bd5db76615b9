package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// graph holds documents and nodes and the edges between them. Nodes read addresses
// and write surfaces; node-to-node edges are derived from the two where they overlap,
// and never stored.
//
// Everything here is the hot state of a pass; the structure tables follow at its
// end.
type graph struct {
	docs  map[string]*doc // of the own space
	far   map[docKey]*doc // of others
	nodes []*node         // by handle; nil once removed
	byID  map[string]*node
	queue queue
	// spareNodes and spareDocs are records that are not used yet.
	spareNodes []node
	spareDocs  []doc
	// stale are the nodes that a search for what is not up to date begins with,
	// dormant ones included.
	stale []*node
	// backs are the edges that close a circle, and some that did, in the order in which
	// they are looked at again; loose is how many are to be.
	backs []*dep
	loose int
	// top is the greatest height, roof the one from which on all are given anew.
	top, roof int32
	// dueCount is how many nodes are live and not clean.
	dueCount int
	// failing counts the nodes whose last run ended in an error.
	failing int
	// backEdges counts the edges that close a circle; without one, no node can keep
	// itself live.
	backEdges int
	// dirty has a bit for each handle whose structure changed since the last flush, by
	// page, and dirtyPages are the pages that have any.
	dirty      []uint64
	dirtyPages []uint32
	// follows are the foreign documents whose being needed may have changed. Of those
	// that are not here, away are the ones that somebody reads, and pending counts the
	// ones that somebody needs.
	follows []*doc
	away    []*doc
	pending int
	// comparing are the reads of resumed nodes of documents that were not here, and what
	// the nodes have seen there.
	comparing map[*dep]uint64
	leaving   []*doc // see dropUnused
	gated     gated
	free      []uint32 // the handles of nodes that were removed
	ordinals  ordinals
	times     pastTimes
	fresh     []*node // under provisional demand
	now       time.Duration
	// arming are the nodes whose debounce begins when the time is next known.
	arming []*node
	ticked bool  // whether now is known
	stamp  int32 // for visited marks
	// shots numbers the causes, from is where the change that is being told comes from.
	shots uint32
	from  origin
	// undoing is the node whose writes are being undone, if it is not to hear of that.
	undoing *node
	up      []climb // buffers of seek
	down    []descent
	trace   *Trace
	stats   *Stats
	// watch records what happens for those who asked for it, nil if nobody did.
	watch *recorder
	// removing is told of each node that goes.
	removing func(*node)
	// arrival is told of each node that comes, before anything is made of it.
	arrival func(*node)
}

func newGraph(trace *Trace, stats *Stats) *graph {
	return &graph{
		docs: map[string]*doc{}, far: map[docKey]*doc{}, byID: map[string]*node{},
		trace: trace, stats: stats,
	}
}

// local is the record of an own document, or nil.
func (g *graph) local(id string) *doc { return g.docs[id] }

// known is the record of an own document that there was, made again if it was forgotten.
func (g *graph) known(id string) *doc {
	d := g.docs[id]
	if d == nil {
		d = &doc{key: docKey{doc: id}, loaded: true}
		g.docs[id] = d
		g.mayForget(d)
	}
	return d
}

// lookup is the record of a document, or nil.
func (g *graph) lookup(key docKey) *doc {
	if key.space == "" {
		return g.docs[key.doc]
	}
	return g.far[key]
}

// ensureDoc returns the record of a document and makes it if need be. This is
// where names that code makes up are checked, once each.
func (g *graph) ensureDoc(key docKey) (*doc, error) {
	if d := g.lookup(key); d != nil {
		return d, nil
	}
	if err := model.CheckName("document", key.doc); err != nil {
		return nil, err
	}
	d := g.newDoc()
	d.key, d.loaded = key, key.space == ""
	g.mayForget(d)
	if d.loaded {
		g.docs[key.doc] = d
		return d, nil
	}
	if err := model.CheckName("space", key.space); err != nil {
		return nil, err
	}
	g.far[key] = d
	return d, nil
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

func (g *graph) newNode() *node {
	if len(g.spareNodes) == 0 {
		return &node{}
	}
	n := &g.spareNodes[0]
	g.spareNodes = g.spareNodes[1:]
	return n
}

func (g *graph) newDoc() *doc {
	if len(g.spareDocs) == 0 {
		return &doc{}
	}
	d := &g.spareDocs[0]
	g.spareDocs = g.spareDocs[1:]
	return d
}

// nextStamp begins a search: no node has this mark yet.
func (g *graph) nextStamp() int32 {
	g.stamp++
	return g.stamp
}

// setStatus is the one place where a node's status changes.
func (g *graph) setStatus(n *node, to Status) {
	was := n.due()
	n.status = to
	g.recount(n, was)
	g.keepStale(n)
}

func (g *graph) recount(n *node, was bool) {
	switch is := n.due(); {
	case is && !was:
		g.dueCount++
	case was && !is:
		g.dueCount--
	}
}

// keepStale keeps invariant 5 of node.
func (g *graph) keepStale(n *node) {
	want := !n.removed && (n.status == Invalid || n.status == NeverRan && g.mayMatter(n))
	if want != (n.staleAt != 0) {
		keep(&g.stale, n, want, (*node).stalePlace)
	}
}

func (n *node) stalePlace() *int32 { return &n.staleAt }

// keep has x in a list or not. Its place there, counted from 1, is in x itself, 0 for none.
func keep[T any](list *[]*T, x *T, want bool, place func(*T) *int32) {
	switch at := place(x); {
	case want && *at == 0:
		*list = append(*list, x)
		*at = int32(len(*list))
	case !want && *at != 0:
		last := len(*list) - 1
		moved := (*list)[last]
		(*list)[*at-1] = moved
		*place(moved) = *at
		*at = 0
		(*list)[last] = nil
		*list = (*list)[:last]
	}
}

// mayMatter reports whether a handler may meet what n would write, other than as its
// output, which is looked at anyway.
func (g *graph) mayMatter(n *node) bool {
	return n.more != nil && len(n.more.outputs)+len(n.more.envelope) > 0 || g.isRead(n)
}

// isRead reports whether anybody else reads what n writes.
func (g *graph) isRead(n *node) bool {
	read := false
	n.eachSurface(true, func(s *surface) {
		read = read || slices.ContainsFunc(s.doc.readers, func(d *dep) bool { return d.node != n && s.overlaps(d) })
	})
	return read
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

// setLoaded notes that a foreign document is here, or is not followed any more.
func (g *graph) setLoaded(d *doc, loaded bool) {
	if d.loaded == loaded {
		return
	}
	by := 1
	if loaded {
		by = -1
	}
	if d.refs > 0 {
		g.pending += by
	}
	d.loaded = loaded
	g.keepAway(d)
}

// keepAway keeps graph.away.
func (g *graph) keepAway(d *doc) {
	keep(&g.away, d, !d.loaded && len(d.readers) > 0, (*doc).awayPlace)
}

func (d *doc) awayPlace() *int32 { return &d.awayAt }

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

// ordinals remembers when a node was first registered, over its being removed and
// registered again: ties are to be broken the same way then (behaviour B08). It keeps
// the latest few of those that are gone.
type ordinals struct {
	next uint32 // after 2^32 new names some would share one, and so a tie
	gone map[string]uint32
	fifo []string
}

const maxGone = 4096

func (o *ordinals) of(id string) uint32 {
	if n, ok := o.gone[id]; ok {
		return n
	}
	o.next++
	return o.next
}

func (o *ordinals) retire(n *node) {
	if o.gone == nil {
		o.gone = map[string]uint32{}
	}
	if _, ok := o.gone[n.id()]; ok {
		return
	}
	o.gone[n.id()] = n.ordinal
	if o.fifo = append(o.fifo, n.id()); len(o.fifo) > maxGone {
		delete(o.gone, o.fifo[0])
		o.fifo = o.fifo[1:]
	}
}
