package space

import (
	"slices"
	"time"
)

// GateTimes are the times from which the gates of a node count, in milliseconds since 1970. They are saved with its
// observation, so that a debounce and a throttle hold over a crash, a takeover and an unloading.
type GateTimes struct {
	// Ran is when the last run began.
	Ran int64 `json:"r,omitzero"`
	// First and Changed are the times of the first and the last change since then, 0 if there was none.
	First   int64 `json:"f,omitzero"`
	Changed int64 `json:"c,omitzero"`
}

// timed reports whether the node has a gate that counts from a time in the past.
func (n *node) timed() bool { return n.more != nil && (n.more.gate.throttle > 0 || n.debounce() > 0) }

// savedTimes returns the times of a node's gates, nil if it has none or the wall time is unknown.
func (gs *gates) savedTimes(n *node) *GateTimes {
	wall := gs.wall()
	if !n.timed() || wall == 0 {
		return nil
	}
	gt := &n.more.gate
	at := func(t time.Duration) int64 { return max(1, wall-(gs.now-t).Milliseconds()) }
	out := &GateTimes{}
	if gt.ran {
		out.Ran = at(gt.ranAt)
	}
	if gt.armed {
		out.First, out.Changed = at(gt.firstAt), at(gt.changedAt)
	}
	return out
}

// resumed is a node whose gates count from times in an earlier incarnation.
type resumed struct {
	node *node
	// times are those that were saved, nil if they are unknown.
	times *GateTimes
	// due reports that the node was invalid when they were saved; same, that nothing has happened since; ran, that it
	// has changed its output since.
	due, same, ran bool
}

// resume sets the times of a node's gates: at once, or at the next tick if the time is not known yet.
func (gs *gates) resume(r resumed) {
	n := r.node
	if !gs.ticked {
		if n.more.gate.arming { // by its registration, which is no change
			n.more.gate.arming = false
			gs.arming = slices.DeleteFunc(gs.arming, func(of *node) bool { return of == n })
		}
		gs.resuming = append(gs.resuming, r)
		return
	}
	if n.removed || !n.timed() {
		return
	}
	t := gs.timesOf(&r)
	gt := &n.more.gate
	if gt.throttle > 0 {
		gt.ran, gt.ranAt = true, t.ran
	}
	if n.status == Invalid && n.debounce() > 0 {
		gt.armed, gt.firstAt, gt.changedAt = true, t.first, t.changed
	}
	if n.held {
		gs.hold(n)
	}
}

// countsFrom are times on the clock of Settle.
type countsFrom struct{ ran, first, changed time.Duration }

// timesOf returns the times from which the gates of a resumed node count. What may have happened since they were
// saved counts as of now: a run may come later because of that, and never earlier.
func (gs *gates) timesOf(r *resumed) countsFrom {
	t := countsFrom{ran: gs.now, first: gs.now, changed: gs.now}
	if r.times == nil {
		return t
	}
	ran, first, changed := gs.since(r.times.Ran), gs.since(r.times.First), gs.since(r.times.Changed)
	idle := r.same || r.node.status == Clean // it has not run since
	if idle {
		t.ran = ran
	}
	if !r.due || r.ran || r.times.First == 0 {
		return t
	}
	t.first = first
	if r.same {
		t.changed = changed
	}
	if gt := &r.node.more.gate; gt.throttle > 0 && ran+gt.throttle > gs.now {
		t.ran = ran // it could not run since
	}
	return t
}

// since converts a wall time to the clock of Settle. A time that is unknown, or lies ahead because a clock was set
// back, is now.
func (gs *gates) since(ms int64) time.Duration {
	wall := gs.wall()
	if ms <= 0 || ms > wall {
		return gs.now
	}
	return gs.now - time.Duration(wall-ms)*time.Millisecond
}
