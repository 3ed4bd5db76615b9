package space

import (
	"container/heap"
	"fmt"
	"time"
)

// Time gates (seed 001 section 8). Everything that holds a node back in time comes down
// to one question, when it may run, and all that are held share one timer: Ready.Wake.

// eligibleAt is the time from which the node may run. Asking changes nothing.
func (n *node) eligibleAt() time.Duration {
	if n.more == nil {
		return 0
	}
	gt := &n.more.gate
	at := max(gt.backoffUntil, gt.echoUntil)
	if n.debounce() > 0 {
		at = max(at, gt.readyAt)
	}
	if gt.throttle > 0 && gt.ran {
		at = max(at, gt.ranAt+gt.throttle)
	}
	return at
}

// debounce is the delay in force: the one that was set or, for an effect that has
// turned out to be slow, one of its own.
func (n *node) debounce() time.Duration {
	switch {
	case n.more == nil:
		return 0
	case n.more.gate.debounce > 0 || n.kind != Effect || n.more.gate.noAuto:
		return n.more.gate.debounce
	}
	return n.more.gate.auto.delay()
}

// armGate starts the debounce again, since something has changed. The time may not be
// known yet: an input came between two calls of Settle.
func (g *graph) armGate(n *node) {
	if n.debounce() == 0 {
		return
	}
	gt := &n.more.gate
	if !g.ticked {
		if !gt.arm {
			gt.arm = true
			g.arming = append(g.arming, n)
		}
		return
	}
	gt.readyAt = g.now + n.debounce()
	if n.held {
		g.hold(n)
	}
}

// tick makes the time known, once for everything that is decided until untick (a
// second reading could call an event neither ready nor parked), and lets go of what has
// waited long enough.
func (g *graph) tick(now time.Duration) {
	g.now, g.ticked = now, true
	for _, n := range g.arming {
		n.more.gate.arm = false
		g.armGate(n)
	}
	g.arming = g.arming[:0]
	for e := g.gated.first(); e != nil && e.at <= now; e = g.gated.first() {
		g.unhold(e.n)
	}
}

// hold sets a node aside until it may run.
func (g *graph) hold(n *node) {
	n.held = true
	n.more.gate.heldAt = n.eligibleAt()
	g.gated.add(heldNode{n.more.gate.heldAt, n})
}

// unhold puts a node that was set aside back into the queue.
func (g *graph) unhold(n *node) {
	if !n.held {
		return
	}
	n.held = false
	g.enqueue(n)
}

// regate is called when a gate was changed from outside.
func (g *graph) regate(n *node) {
	switch {
	case !n.held:
	case n.eligibleAt() > g.now:
		g.hold(n)
	default:
		g.unhold(n)
	}
}

// heldNode is a node that waits for a time. It is out of date when the node has been
// let go or waits for another time.
type heldNode struct {
	at time.Duration
	n  *node
}

func (e *heldNode) current() bool { return e.n.held && e.n.more.gate.heldAt == e.at }

// gated are the nodes that wait for a time, the earliest first. Entries that are out of
// date are dropped when they come up, and all at once when they are the most.
type gated struct{ entries heldHeap }

func (q *gated) add(e heldNode) {
	heap.Push(&q.entries, e)
	if n := len(q.entries); n > 64 && n&(n-1) == 0 { // when the number has doubled
		live := q.entries[:0]
		for _, e := range q.entries {
			if e.current() {
				live = append(live, e)
			}
		}
		clear(q.entries[len(live):])
		q.entries = live
		heap.Init(&q.entries)
	}
}

// first is the entry that is next due, nil if there is none. Nodes that nobody needs
// any more, or that are clean, are let go on the way: a timer for them would wake
// nobody.
func (q *gated) first() *heldNode {
	for len(q.entries) > 0 {
		e := &q.entries[0]
		if e.current() && e.n.due() {
			return e
		}
		if e.current() {
			e.n.held = false
		}
		heap.Pop(&q.entries)
	}
	return nil
}

// each visits the nodes that are held.
func (q *gated) each(visit func(*node)) {
	for i := range q.entries {
		if e := &q.entries[i]; e.current() && e.n.due() {
			visit(e.n)
		}
	}
}

type heldHeap []heldNode

func (h heldHeap) Len() int { return len(h) }
func (h heldHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n.ordinal < h[j].n.ordinal
}
func (h heldHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heldHeap) Push(x any)   { *h = append(*h, x.(heldNode)) }
func (h *heldHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = heldNode{}
	*h = old[:len(old)-1]
	return e
}

// SetDebounce makes a node wait until nothing that it reads has changed for d; 0 clears
// it. One that waits already waits accordingly from its last change on.
func (s *Space) SetDebounce(node string, d time.Duration) error {
	return s.setGate(node, d, func(gt *gate) {
		if gt.readyAt > 0 {
			gt.readyAt += d - gt.debounce
		}
		gt.debounce = d
	})
}

// SetThrottle sets the least time between two runs of a node; 0 clears it.
func (s *Space) SetThrottle(node string, d time.Duration) error {
	return s.setGate(node, d, func(gt *gate) { gt.throttle = d })
}

// SetNoAutoDebounce exempts an effect from being debounced for being slow, or not.
func (s *Space) SetNoAutoDebounce(node string, exempt bool) error {
	return s.setGate(node, 0, func(gt *gate) { gt.noAuto = exempt })
}

// Gate says what holds a node back in time, as it stands. The second result is false if
// there is no such node.
func (s *Space) Gate(node string) (GateSpec, bool) {
	n := s.graph.byID[node]
	if n == nil {
		return GateSpec{}, false
	}
	if n.more == nil {
		return GateSpec{}, true
	}
	return GateSpec{Debounce: n.debounce(), Throttle: n.more.gate.throttle, NoAutoDebounce: n.more.gate.noAuto}, true
}

// Measured tells how long a run of a node took, which only the host knows: the core has
// no clock. It feeds the statistics, and the debounce of slow effects.
func (s *Space) Measured(node string, took time.Duration) {
	n := s.graph.byID[node]
	if n == nil {
		return
	}
	gt := &n.ext().gate
	gt.auto.policy = &s.slow // debounce says for whom it is in force
	gt.auto.ran(took)
}

func (s *Space) setGate(node string, d time.Duration, set func(*gate)) error {
	n := s.graph.byID[node]
	switch {
	case n == nil:
		return fmt.Errorf("space %s has no node %s", s.cfg.Space, node)
	case d < 0:
		return fmt.Errorf("node %s: a gate cannot be negative: %s", node, d)
	}
	set(&n.ext().gate)
	s.graph.regate(n)
	return nil
}
