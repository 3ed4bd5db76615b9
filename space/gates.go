package space

import (
	"container/heap"
	"slices"
	"time"
)

// eligibleAt returns the time from which the node may run. It changes nothing.
func (n *node) eligibleAt() time.Duration {
	if n.more == nil {
		return 0
	}
	gt := &n.more.gate
	at := max(gt.backoffUntil, gt.echoUntil)
	if gt.ungated {
		return at
	}
	if gt.armed {
		if d := n.debounce(); d > 0 {
			at = max(at, min(gt.changedAt+d, gt.firstAt+gt.longest(d)))
		}
	}
	if gt.throttle > 0 && gt.ran {
		at = max(at, gt.ranAt+gt.throttle)
	}
	return at
}

// debounce returns the debounce in force: the configured one or, for a slow effect, an automatic one.
func (n *node) debounce() time.Duration {
	switch {
	case n.more == nil:
		return 0
	case n.more.gate.debounce > 0 || n.kind != Effect || n.more.gate.noAuto:
		return n.more.gate.debounce
	}
	return n.more.gate.auto.delay()
}

// maxWaitFactor is the default of MaxWait, as a multiple of the debounce.
const maxWaitFactor = 10

// longest returns the longest time for which a debounce of d may hold the node.
func (gt *gate) longest(d time.Duration) time.Duration {
	switch {
	case gt.maxWait > 0:
		return gt.maxWait
	case gt.maxWait < 0:
		return beyondGates
	}
	return maxWaitFactor * d
}

// beyondGates is longer than any gate, and short enough for sums not to overflow.
const beyondGates = 100 * maxGate

// apply sets the gates as in a spec.
func (gt *gate) apply(spec GateSpec) {
	gt.debounce, gt.maxWait, gt.throttle, gt.noAuto = spec.Debounce, spec.MaxWait, spec.Throttle, spec.NoAutoDebounce
}

// gates decide when nodes may run. All nodes that are held until a time share one timer, Ready.Wake.
type gates struct {
	queue *queue
	now   time.Duration
	// ticked reports that now has been set.
	ticked bool
	gated  gated
	// arming are the nodes whose debounce begins at the next tick, resuming those of an earlier incarnation.
	arming   []*node
	resuming []resumed
	// wall returns the wall time in milliseconds since 1970, 0 if it is unknown.
	wall func() int64
	// changed is called with each node with gates that is invalidated: its saved times are out of date.
	changed func(*node)
}

// armGate restarts the debounce after a change. Between two calls of Settle the time is not known yet.
func (gs *gates) armGate(n *node) {
	if !n.timed() {
		return
	}
	gs.changed(n)
	gt := &n.more.gate
	if n.debounce() == 0 {
		return
	}
	if !gs.ticked {
		if !gt.arming {
			gt.arming = true
			gs.arming = append(gs.arming, n)
		}
		return
	}
	if !gt.armed {
		gt.firstAt = gs.now
	}
	gt.armed, gt.changedAt = true, gs.now
	if n.held {
		gs.hold(n)
	}
}

// tick sets the time for all decisions of this Settle (with a second reading, an event could be neither ready
// nor parked), and releases the nodes whose time has come.
func (gs *gates) tick(now time.Duration) {
	gs.now, gs.ticked = max(gs.now, now), true
	for _, r := range gs.resuming {
		gs.resume(r)
	}
	gs.resuming = nil
	for _, n := range gs.arming {
		n.more.gate.arming = false
		gs.armGate(n)
	}
	gs.arming = gs.arming[:0]
	for len(gs.gated) > 0 && gs.gated[0].more.gate.heldAt <= now {
		gs.unhold(gs.gated[0])
	}
}

// hold sets a node aside until it may run, or updates that time.
func (gs *gates) hold(n *node) {
	n.more.gate.heldAt = n.eligibleAt()
	if n.held {
		heap.Fix(&gs.gated, n.more.gate.place)
		return
	}
	n.held = true
	heap.Push(&gs.gated, n)
}

// unhold returns a held node to the queue.
func (gs *gates) unhold(n *node) {
	gs.letGo(n)
	gs.queue.enqueue(n)
}

// letGo stops a node from waiting for a time. A dormant node needs no timer: it would wake the space for
// nothing.
func (gs *gates) letGo(n *node) {
	if n.held {
		heap.Remove(&gs.gated, n.more.gate.place)
		n.held = false
	}
}

// changeGate changes the gates of a node.
func (gs *gates) changeGate(n *node, change func(*gate)) {
	gt := &n.ext().gate
	if n.runs > 0 && !gt.ran {
		gt.ran, gt.ranAt = true, gs.now // unknown, so assume now
	}
	change(gt)
	gs.regate(n)
}

// regate holds a node, or releases it, according to its present gates.
func (gs *gates) regate(n *node) {
	switch {
	case !n.held:
	case n.eligibleAt() > gs.now:
		gs.hold(n)
	default:
		gs.unhold(n)
	}
}

// inBackoff reports whether a node is held back for not converging.
func (gs *gates) inBackoff() bool {
	return slices.ContainsFunc(gs.gated, func(n *node) bool { return n.more.gate.backoffUntil > gs.now })
}

// gated is a heap of the nodes that wait for a time, earliest first, each once. All of them are due: a node
// that becomes dormant or is removed is released at once.
type gated []*node

func (h gated) Len() int { return len(h) }
func (h gated) Less(i, j int) bool {
	a, b := h[i].more.gate.heldAt, h[j].more.gate.heldAt
	return a < b || a == b && h[i].ordinal < h[j].ordinal
}

func (h gated) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].more.gate.place, h[j].more.gate.place = i, j
}

func (h *gated) Push(x any) {
	n := x.(*node)
	n.more.gate.place = len(*h)
	*h = append(*h, n)
}

func (h *gated) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}
