// Package floor is a minimal push-pull signal engine in Go: the algorithm of package alien reduced to float64
// values, recursion and bodies that never write. It shows the bare cost of the algorithm, and has no other use.
package floor

type flag uint8

const (
	source   flag = 1 << iota // can be set, is not computed
	observer                  // is an effect
	running                   // its body is being executed
	dirty                     // an input has changed
	pending                   // something further up may have changed
)

// Graph is a set of nodes and the state of an update.
type Graph struct {
	active *Node
	run    uint64 // numbers the executions of bodies
	queue  []*Node
	batch  int
	free   *edge // by nextDep
}

// Node is a source, a computed or an effect.
type Node struct {
	g              *Graph
	value, next    float64 // next is what was set on a source
	body           func() float64
	deps, lastDep  *edge
	readers, lastR *edge
	run            uint64 // the number of this node's last execution
	flags          flag
}

// edge records that reader has read dep. It is in two lists: the inputs of the reader, in the order of its
// reads, and the readers of dep.
type edge struct {
	dep, reader            *Node
	nextDep                *edge
	prevReader, nextReader *edge
	run                    uint64
}

// Source returns a new source.
func (g *Graph) Source(v float64) *Node { return &Node{g: g, value: v, next: v, flags: source} }

// Computed returns a node that runs when it is read.
func (g *Graph) Computed(body func() float64) *Node { return &Node{g: g, body: body, flags: dirty} }

// Effect adds a node that runs now and whenever an input has changed.
func (g *Graph) Effect(body func()) {
	n := &Node{g: g, flags: observer | dirty, body: func() float64 { body(); return 0 }}
	n.execute()
}

// Batch makes one update of all sets in fn.
func (g *Graph) Batch(fn func()) {
	g.batch++
	fn()
	g.batch--
	if g.batch == 0 {
		g.flush()
	}
}

// Set writes a source.
func (n *Node) Set(v float64) {
	if n.next == v {
		return
	}
	n.next = v
	n.flags |= dirty
	n.g.mark(n.readers)
	if n.g.batch == 0 {
		n.g.flush()
	}
}

// Get reads a node, and makes it an input of the running body.
func (n *Node) Get() float64 {
	if n.flags&(dirty|pending) != 0 && n.refresh() {
		confirm(n.readers)
	}
	if r := n.g.active; r != nil {
		n.g.link(n, r)
	}
	return n.value
}

// mark marks everything downstream as possibly changed.
func (g *Graph) mark(e *edge) {
	for ; e != nil; e = e.nextReader {
		r := e.reader
		if r.flags&(dirty|pending|running) != 0 {
			continue
		}
		r.flags |= pending
		if r.flags&observer != 0 {
			g.queue = append(g.queue, r)
		} else {
			g.mark(r.readers)
		}
	}
}

// confirm marks the readers of a changed node as changed.
func confirm(e *edge) {
	for ; e != nil; e = e.nextReader {
		if e.reader.flags&pending != 0 {
			e.reader.flags |= dirty
		}
	}
}

func (g *Graph) flush() {
	for i := 0; i < len(g.queue); i++ {
		g.queue[i].refresh()
	}
	g.queue = g.queue[:0]
}

// refresh brings a marked node up to date and reports whether its value changed.
func (n *Node) refresh() bool {
	if n.flags&dirty == 0 && !n.inputsChanged() {
		n.flags &^= pending
		return false
	}
	if n.flags&source != 0 {
		n.flags = source
		changed := n.value != n.next
		n.value = n.next
		return changed
	}
	return n.execute()
}

// inputsChanged examines the inputs in the order in which they were read, so that no input is computed that the
// body would not read.
func (n *Node) inputsChanged() bool {
	for e := n.deps; e != nil; e = e.nextDep {
		if n.flags&dirty != 0 {
			return true // a later input was refreshed for another reader
		}
		d := e.dep
		if d.flags&(dirty|pending) == 0 || !d.refresh() {
			continue
		}
		if d.readers != d.lastR {
			confirm(d.readers)
		}
		return true
	}
	return n.flags&dirty != 0
}

func (n *Node) execute() bool {
	g := n.g
	before := g.active
	g.active = n
	g.run++
	n.run = g.run
	n.lastDep = nil
	kind := n.flags & observer
	n.flags = kind | running
	v := n.body()
	n.flags = kind
	g.active = before
	n.forget()
	changed := v != n.value
	n.value = v
	return changed
}

// link records a read. It compares with the inputs of the last execution: as long as the reads are the same,
// only the position in that list moves.
func (g *Graph) link(dep, reader *Node) {
	at := reader.lastDep
	if at != nil && at.dep == dep {
		return
	}
	next := reader.deps
	if at != nil {
		next = at.nextDep
	}
	if next != nil && next.dep == dep {
		next.run = reader.run
		reader.lastDep = next
		return
	}
	if l := dep.lastR; l != nil && l.reader == reader && l.run == reader.run {
		return // read before, with other reads in between
	}
	e := g.free
	if e != nil {
		g.free = e.nextDep
	} else {
		e = new(edge)
	}
	*e = edge{dep: dep, reader: reader, nextDep: next, prevReader: dep.lastR, run: reader.run}
	reader.lastDep = e
	if at != nil {
		at.nextDep = e
	} else {
		reader.deps = e
	}
	if dep.lastR != nil {
		dep.lastR.nextReader = e
	} else {
		dep.readers = e
	}
	dep.lastR = e
}

// forget drops the inputs after the last read of an execution.
func (n *Node) forget() {
	e := n.deps
	if n.lastDep != nil {
		e = n.lastDep.nextDep
		n.lastDep.nextDep = nil
	} else {
		n.deps = nil
	}
	for e != nil {
		d, next := e.dep, e.nextDep
		if e.prevReader != nil {
			e.prevReader.nextReader = e.nextReader
		} else {
			d.readers = e.nextReader
		}
		if e.nextReader != nil {
			e.nextReader.prevReader = e.prevReader
		} else {
			d.lastR = e.prevReader
		}
		if d.readers == nil && d.flags&source == 0 && d.deps != nil {
			d.lastDep = nil // without readers it keeps no inputs, and starts afresh
			d.forget()
			d.flags = dirty
		}
		*e = edge{nextDep: n.g.free}
		n.g.free = e
		e = next
	}
}
