package space

import (
	"slices"
	"time"
)

// Settle runs one pass: it handles waiting events and runs what is live and
// invalid, until nothing is left to do, or the group is full, or the bounds are
// reached. now is a monotonic time of the caller's choosing, read once for the
// whole pass (a second reading could call an event neither ready nor parked).
//
//	repeat:
//	    handle events, in lane order, until one must wait or the group is full
//	    order the work set: invalid nodes and what is live downstream
//	    run each node that is invalid at its turn
//	until nothing is runnable
//
// Computations run after a batch of events rather than after each, so a burst of
// a thousand events costs a watched document one run.
func (s *Space) Settle(now time.Duration) Ready {
	s.now = now
	if s.running() && !s.holding {
		s.pass()
	}
	return s.ready()
}

// running reports whether this runtime may make transactions: it owns the space,
// and no refusal waits to be integrated.
func (s *Space) running() bool { return s.epoch != 0 && !s.frozen }

func (s *Space) pass() {
	var info PassInfo
	rounds := 0 // iterations since an event was handled
	turn := s.suffix.takeTurn()
	for rounds < s.cfg.MaxIterations && !s.suffix.crowded {
		info.Iterations++
		rounds++
		events := 0
		if !turn {
			events = s.dispatchSome()
		}
		if events > 0 {
			rounds = 1
		}
		runs := s.iterate()
		info.Events += events
		info.Runs += runs
		if events+runs == 0 && !turn || s.suffix.full(&s.cfg) {
			break
		}
		turn = false
	}
	s.endPass(info, rounds == s.cfg.MaxIterations)
}

// converged gives the nodes that are clean their budget back when an event gets
// through: what they do next is not for want of convergence but because of the event.
func (s *Space) converged() {
	s.touched = slices.DeleteFunc(s.touched, func(n *node) bool {
		if n.status != Clean {
			return false
		}
		n.passRuns, n.streak = 0, 0
		return true
	})
}

// dispatchSome handles events until the lane is empty, its head must wait, or the
// commit is full.
func (s *Space) dispatchSome() int {
	n := 0
	for !s.suffix.full(&s.cfg) && s.dispatch(n == 0) == handled {
		n++
	}
	return n
}

// iterate runs the work set once, in order.
func (s *Space) iterate() (runs int) {
	g := s.graph
	ready := s.takeReady()
	if len(ready) == 0 {
		return 0
	}
	order := g.order(g.workSet(ready))
	if f := s.cfg.Trace.Ordered; f != nil {
		f(nodeIDs(order))
	}
	for _, n := range order {
		if s.suffix.crowded {
			break
		}
		if s.runnable(n) {
			s.runNode(n)
			runs++
		} else if f := s.cfg.Trace.Skipped; f != nil {
			f(SkipInfo{Node: n.id, Status: n.status, Live: n.live})
		}
	}
	for _, n := range ready {
		g.enqueue(n) // what was gated, or was invalidated again after its turn
	}
	return runs
}

func nodeIDs(nodes []*node) []string {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.id
	}
	return ids
}

// takeReady empties the ready list and returns the nodes that can run.
func (s *Space) takeReady() []*node {
	g := s.graph
	ready := g.ready
	g.ready = nil
	var gated []*node
	ready = slices.DeleteFunc(ready, func(n *node) bool {
		n.queued = false
		if n.live && n.status != Clean && !s.runnable(n) {
			gated = append(gated, n)
		}
		return !s.runnable(n)
	})
	for _, n := range gated {
		g.enqueue(n)
	}
	return ready
}

// runnable is the run gate, checked at a node's turn: something it read has
// changed, someone wants the result, no gate holds it, and it has not used up its
// budget for this pass.
func (s *Space) runnable(n *node) bool {
	return n.live && s.wants(n)
}

// wants is runnable for a node that may be dormant.
func (s *Space) wants(n *node) bool {
	return n.status != Clean && !n.waiting && s.now >= n.backoffUntil && n.passRuns < s.cfg.RunBudget
}

// endPass gates the nodes that did not converge, clears the streak of those that
// did, and publishes the structure. outOfRounds says that the pass was ended by the
// bound on its iterations.
func (s *Space) endPass(info PassInfo, outOfRounds bool) {
	for _, n := range s.graph.ready {
		if n.passRuns >= s.cfg.RunBudget || outOfRounds && s.runnable(n) {
			s.gate(n)
		}
	}
	for _, n := range s.touched {
		if n.status == Clean {
			n.streak = 0
		}
		n.passRuns = 0
	}
	s.touched = s.touched[:0]
	s.structure.flush(s.graph)
	if f := s.cfg.Trace.PassEnd; f != nil && info.Events+info.Runs > 0 {
		f(info)
	}
}

// gate holds a node back that still wants to run.
func (s *Space) gate(n *node) {
	if !n.live || n.status == Clean {
		return
	}
	n.streak++
	n.backoffUntil = s.now + s.backoff(n.streak)
	s.stats.Deferred++
	if f := s.cfg.Trace.Gated; f != nil {
		f(GateInfo{Node: n.id, Until: n.backoffUntil, Streak: n.streak})
	}
}
