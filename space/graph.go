package space

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// graph holds documents and nodes and the edges between them. Nodes read
// documents, a computation writes one document; node-to-node edges are derived
// from the two and never stored.
//
// Everything here is the hot state of a pass; the structure tables follow at its
// end.
type graph struct {
	docs  map[docKey]*doc
	nodes []*node // by handle; nil once removed
	byID  map[string]*node
	// ready are the nodes that are live and not clean: what a pass looks at. A
	// dormant node is never in here, so it costs a pass nothing.
	ready []*node
	// dirty are the handles whose structure changed since the last flush.
	dirty map[uint32]bool
	// follows are the foreign documents whose being needed may have changed, foreign
	// is how many there are.
	follows []*doc
	foreign int
	// free are the handles of nodes that were removed.
	free  []uint32
	stamp int // for visited marks
	trace *Trace
}

func newGraph() *graph {
	return &graph{docs: map[docKey]*doc{}, byID: map[string]*node{}, dirty: map[uint32]bool{}, trace: &Trace{}}
}

// local is the record of an own document, or nil.
func (g *graph) local(id string) *doc { return g.docs[docKey{doc: id}] }

// ensureDoc returns the record of a document and makes it if need be. This is
// where names that code makes up are checked, once each.
func (g *graph) ensureDoc(key docKey) (*doc, error) {
	if d := g.docs[key]; d != nil {
		return d, nil
	}
	if key.space != "" {
		if err := model.CheckName("space", key.space); err != nil {
			return nil, err
		}
	}
	if err := model.CheckName("document", key.doc); err != nil {
		return nil, err
	}
	d := &doc{key: key, loaded: key.space == ""}
	g.docs[key] = d
	if key.space != "" {
		g.foreign++
	}
	return d, nil
}

// forget drops the record of a foreign document that nothing mentions any more.
func (g *graph) forget(d *doc) {
	delete(g.docs, d.key)
	g.foreign--
}

// applyReads makes reads the registered read set of n, as a difference to the one
// it has (P6). It reports whether anything changed; the common case, the same
// reads as last time, changes nothing and allocates nothing.
func (g *graph) applyReads(n *node, reads []read) bool {
	if sameReads(n.deps, reads) {
		return false
	}
	fresh := groupReads(n, reads)
	for _, old := range n.deps {
		if !slices.ContainsFunc(fresh, func(d *dep) bool { return d.doc == old.doc }) {
			g.removeDep(old)
		}
	}
	for i, d := range fresh {
		fresh[i] = g.adoptDep(n, d)
	}
	n.deps = fresh
	g.dirty[n.handle] = true
	return true
}

// adoptDep keeps the existing edge for a document that was read before, with the
// new paths, and inserts the edge otherwise.
func (g *graph) adoptDep(n *node, d *dep) *dep {
	i := slices.IndexFunc(n.deps, func(o *dep) bool { return o.doc == d.doc })
	if i >= 0 {
		n.deps[i].paths = d.paths
		return n.deps[i]
	}
	d.doc.readers = append(d.doc.readers, d)
	if n.live {
		g.addRef(d.doc)
	}
	return d
}

func (g *graph) removeDep(d *dep) {
	i := slices.Index(d.doc.readers, d)
	d.doc.readers = slices.Delete(d.doc.readers, i, i+1)
	if d.node.live {
		g.dropRef(d.doc)
	}
}

// sameReads reports whether reads, in the order they were made, are those of deps.
func sameReads(deps []*dep, reads []read) bool {
	if repeats(deps, reads) {
		return true
	}
	seen := 0
	for _, d := range deps {
		seen += len(d.paths)
	}
	for _, r := range reads {
		i := slices.IndexFunc(deps, func(d *dep) bool { return d.doc == r.doc })
		if i < 0 || !covered(deps[i].paths, r.path) {
			return false
		}
	}
	return seen == 0 || coversAll(deps, reads)
}

// repeats reports whether reads are the registered ones, one for one: what most runs
// do, and the only comparison whose cost is no more than that of making the reads.
func repeats(deps []*dep, reads []read) bool {
	for _, d := range deps {
		if len(reads) < len(d.paths) {
			return false
		}
		for i, p := range d.paths {
			if reads[i].doc != d.doc || !slices.Equal(reads[i].path, p) {
				return false
			}
		}
		reads = reads[len(d.paths):]
	}
	return len(reads) == 0
}

// coversAll reports whether every registered path is among the reads.
func coversAll(deps []*dep, reads []read) bool {
	for _, d := range deps {
		for _, p := range d.paths {
			if !slices.ContainsFunc(reads, func(r read) bool { return r.doc == d.doc && slices.Equal(r.path, p) }) {
				return false
			}
		}
	}
	return true
}

// covered reports whether one of paths is path or an ancestor of it: a deep read
// covers everything below.
func covered(paths []model.Path, path model.Path) bool {
	return slices.ContainsFunc(paths, func(p model.Path) bool { return path.HasPrefix(p) })
}

// groupReads makes one edge per document, its paths without those that another
// covers.
func groupReads(n *node, reads []read) []*dep {
	var deps []*dep
	for _, r := range reads {
		i := slices.IndexFunc(deps, func(d *dep) bool { return d.doc == r.doc })
		if i < 0 {
			deps = append(deps, &dep{node: n, doc: r.doc})
			i = len(deps) - 1
		}
		d := deps[i]
		if covered(d.paths, r.path) {
			continue
		}
		d.paths = slices.DeleteFunc(d.paths, func(p model.Path) bool { return p.HasPrefix(r.path) })
		d.paths = append(d.paths, r.path)
	}
	return deps
}

// readNames lists the read set for people and for the log.
func (n *node) readNames() []string {
	var names []string
	for _, d := range n.deps {
		for _, p := range d.paths {
			names = append(names, d.doc.key.String()+p.String())
		}
	}
	return names
}

// staleUpstream returns the writer of d if d may not be up to date: if the writer
// or anything upstream of it is yet to run (I4), and nil otherwise.
func (g *graph) staleUpstream(d *doc) *node {
	if d.writer.live && len(g.ready) == 0 && g.foreign == 0 {
		return nil // what is live is clean, and liveness covers all upstream
	}
	g.stamp++
	if g.anyStale(d.writer) {
		return d.writer
	}
	return nil
}

// patience is the number of exhausted passes in a row after which an event no longer
// waits for a node that does not converge: there is no value to wait for, and the
// lane must not stand still for ever (I6). With the default backoff that is after
// about four seconds.
const patience = 5

func (g *graph) anyStale(n *node) bool {
	work := []*node{n}
	n.mark = g.stamp
	for len(work) > 0 {
		n, work = work[len(work)-1], work[:len(work)-1]
		if n.status != Clean && n.streak < patience {
			return true
		}
		for _, d := range n.deps {
			if !d.doc.loaded {
				return true // it may have changed since it was last here
			}
			if w := d.doc.writer; w != nil && w.mark != g.stamp {
				w.mark = g.stamp
				work = append(work, w)
			}
		}
	}
	return false
}
