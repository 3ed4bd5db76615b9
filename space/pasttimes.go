package space

import linked "container/list"

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
