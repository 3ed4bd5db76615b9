package space

import linked "container/list"

// nodeTable holds the nodes of a space.
type nodeTable struct {
	nodes []*node // by handle; nil once removed
	byID  map[string]*node
	free  []uint32 // the handles of nodes that were removed
	// spareNodes are preallocated records.
	spareNodes []node
	ordinals   ordinals
	times      pastTimes
}

func (t *nodeTable) newNode() *node {
	if len(t.spareNodes) == 0 {
		return &node{}
	}
	n := &t.spareNodes[0]
	t.spareNodes = t.spareNodes[1:]
	return n
}

// place gives n a handle: a freed one if possible, so that short-lived observations take no more room than
// there are at one time.
func (t *nodeTable) place(n *node) {
	if last := len(t.free) - 1; last >= 0 {
		n.handle, t.free = t.free[last], t.free[:last]
		t.nodes[n.handle] = n
		return
	}
	n.handle = uint32(len(t.nodes))
	t.nodes = append(t.nodes, n)
}

// ordinals remembers the ordinals of nodes that are removed and registered again, so that ties are broken as
// before. It keeps those of the latest few removed nodes.
type ordinals struct {
	next uint32 // after 2^32 names, ordinals repeat, and so do ties
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

// marks numbers searches: a node carries the number of the last search that visited it. Numbers have 32 bits,
// which keeps nodes small; see runner.renewMarks.
type marks struct{ stamp int32 }

// next begins a search with a number that no node has yet.
func (m *marks) next() int32 {
	m.stamp++
	return m.stamp
}

// pastTimes keeps the statistics of removed nodes for their return, as observations and the rows of a list
// often do: an effect that was slow is slow after its return, too. It keeps the latest ones, and is bounded
// regardless of the number of ids.
type pastTimes struct {
	byID map[string]*linked.Element
	gone linked.List // of pastTime, the oldest in front
}

type pastTime struct {
	id   string
	auto autoDebounce
}

func (p *pastTimes) put(n *node) {
	if n.more == nil || n.more.gate.auto.runCount == 0 {
		return
	}
	if p.byID == nil {
		p.byID = map[string]*linked.Element{}
	}
	p.byID[n.id()] = p.gone.PushBack(pastTime{n.id(), n.more.gate.auto})
	if p.gone.Len() > maxGone {
		oldest := p.gone.Remove(p.gone.Front()).(pastTime)
		delete(p.byID, oldest.id)
	}
}

func (p *pastTimes) take(n *node) {
	if e := p.byID[n.id()]; e != nil {
		n.ext().gate.auto = p.gone.Remove(e).(pastTime).auto
		delete(p.byID, n.id())
	}
}
