package space

import (
	"slices"
	"time"
)

// patience bounds for how long events wait for nodes that do not converge (I6).
//
// An event waits for a circle during five exhausted passes, and then reads its present value. From then on the
// circle is given up: its nodes run as before, with pauses, but no event waits for a pause again. An event that
// reads it after a change from outside has reached it opens its gates and waits for one pass, which takes no
// time on the clock: the circle may converge now. Events that read different circles share laneWait.
type patience struct {
	graph *graph
	// givenUp are the nodes of such circles, trying those that run for an event in this pass.
	givenUp, trying []*node
	// ran reports that a node that was given up has run since the last look at them.
	ran bool
	// used is for how long events have waited; the present wait, if there is one, began at since.
	used, since time.Duration
	waiting     bool
	// ended is when the last wait ended.
	ended time.Duration
	// seen is the time of the last search for what the event at the head waits for.
	seen time.Duration
}

const (
	// stubborn is the number of exhausted passes in a row after which a node is given up. With the default backoff
	// that is after 3.75 s.
	stubborn = 5
	// laneWait is for how long the events of a lane wait in all for nodes that do not converge, until none has
	// waited for laneQuiet.
	laneWait, laneQuiet = 4 * time.Second, time.Minute
)

// isGivenUp reports whether events have stopped waiting for the node.
func (n *node) isGivenUp() bool { return n.more != nil && n.more.gate.givenUp }

// exhausted records that a pass has exhausted the budget of a node once more.
func (p *patience) exhausted(n *node) {
	if n.more.gate.streak >= stubborn || p.spent() {
		p.giveUp(n)
	}
}

func (p *patience) giveUp(n *node) {
	if !n.more.gate.givenUp {
		n.more.gate.givenUp = true
		p.givenUp = append(p.givenUp, n)
	}
}

// spent reports whether the events of the lane have waited for long enough.
func (p *patience) spent() bool {
	if p.waiting {
		return p.used+p.graph.now-p.since >= laneWait
	}
	return p.used >= laneWait && p.graph.now < p.ended+laneQuiet
}

// waits records that the event at the head waits for nodes. It reports whether the event must wait no longer for
// those that do not converge, which are given up then.
func (p *patience) waits(nodes []*node) (enough bool) {
	if p.waiting && p.seen == p.graph.now || !p.graph.inBackoff() {
		return false
	}
	p.seen = p.graph.now
	var backedOff []*node
	for _, n := range nodes {
		p.graph.upstream(n, func(at *node) {
			if at.status != Clean && !at.isGivenUp() && at.more != nil && at.more.gate.backoffUntil > p.graph.now {
				backedOff = append(backedOff, at)
			}
		})
	}
	if len(backedOff) == 0 {
		return false
	}
	if !p.waiting {
		if p.graph.now >= p.ended+laneQuiet {
			p.used = 0
		}
		p.waiting, p.since = true, p.graph.now
	}
	if !p.spent() {
		return false
	}
	for _, n := range backedOff {
		p.giveUp(n)
	}
	return true
}

// end records that the event at the head waits for nothing any more.
func (p *patience) end() {
	if p.waiting {
		p.waiting, p.ended = false, p.graph.now
		p.used += p.graph.now - p.since
	}
}

// noteNews records that a change has reached a node that was given up, from outside its circle: by is the node that
// made the change, nil if none did.
func (n *node) noteNews(by *node) {
	if n.isGivenUp() && (by == nil || !by.isGivenUp()) {
		n.more.gate.news = true
	}
}

// tryAgain opens the gates of the nodes above n that were given up, if a change from outside has reached them: an
// event reads n.
func (p *patience) tryAgain(n *node) {
	if len(p.givenUp) == 0 {
		return
	}
	var circle []*node
	news := false
	p.graph.upstream(n, func(at *node) {
		if at.isGivenUp() {
			circle = append(circle, at)
			news = news || at.more.gate.news
		}
	})
	if !news {
		return
	}
	for _, at := range circle {
		gt := &at.more.gate
		gt.news, gt.trying, gt.backoffUntil = false, true, 0
		p.graph.regate(at)
	}
	p.trying = append(p.trying, circle...)
}

// passed ends the tries of a pass.
func (p *patience) passed() {
	for _, n := range p.trying {
		n.more.gate.trying = false
	}
	p.trying = p.trying[:0]
}

// converged takes nodes back that have come to rest, after a pass that deferred none.
func (p *patience) converged() {
	if !p.ran {
		return
	}
	p.ran = false
	p.givenUp = slices.DeleteFunc(p.givenUp, func(n *node) bool {
		if n.removed || !n.isGivenUp() {
			return true
		}
		rests := n.status == Clean
		p.graph.upstream(n, func(at *node) { rests = rests && (at.status == Clean || !at.isGivenUp()) })
		n.more.gate.givenUp = !rests
		return rests
	})
}
