package space

import linked "container/list"

// nodeTable holds the nodes of a space.
type nodeTable struct {
	nodes []*node // by handle; nil once removed
	byID  map[string]*node
	free  []uint32 // the handles of nodes that were removed
	// spareNodes are records that are not used yet.
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

// place gives n a handle: one that was freed, so that observations which come and go
// take no more room than there are at a time, or the next.
func (t *nodeTable) place(n *node) {
	if last := len(t.free) - 1; last >= 0 {
		n.handle, t.free = t.free[last], t.free[:last]
		t.nodes[n.handle] = n
		return
	}
	n.handle = uint32(len(t.nodes))
	t.nodes = append(t.nodes, n)
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

// marks numbers searches: a node that a search has met bears its number. They are of 32 bits, which
// keeps nodes small; see runner.renewMarks.
type marks struct{ stamp int32 }

// next begins a search: no node has this mark yet.
func (m *marks) next() int32 {
	m.stamp++
	return m.stamp
}

// pastTimes keeps the statistics of nodes that are gone, for when they come again, as
// observations and the rows of a list do: an effect that was slow is so after it was away,
// too. It keeps those that went last, and so is as large as this however many ids there
// have ever been.
type pastTimes struct {
	byID map[string]*linked.Element
	gone linked.List // of pastTime, the first to go in front
}

type pastTime struct {
	id   string
	auto autoDebounce
}

// put remembers the statistics of a node that goes, if there are any.
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

// take gives a node that comes the statistics that it had.
func (p *pastTimes) take(n *node) {
	if e := p.byID[n.id()]; e != nil {
		n.ext().gate.auto = p.gone.Remove(e).(pastTime).auto
		delete(p.byID, n.id())
	}
}
