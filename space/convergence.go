package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
)

// What does not converge waits, for longer and longer (seed 001 section 7.7).

// converged gives the nodes that are clean their budget back when an event gets
// through: what they do next is not for want of convergence but because of the event.
func (s *Space) converged() {
	s.touched = slices.DeleteFunc(s.touched, func(n *node) bool {
		if n.status != Clean {
			return false
		}
		n.forgive()
		return true
	})
}

// forgive forgets that the node did not converge.
func (n *node) forgive() {
	n.passRuns = 0
	if n.more != nil {
		gt := &n.more.gate
		gt.streak, gt.holds, gt.backoffUntil = 0, 0, 0
	}
}

// endPass gates the nodes that did not converge, clears the streak of those that
// did, and publishes the structure. outOfRounds says that the pass was ended by the
// bound on its iterations.
func (s *Space) endPass(info PassInfo, outOfRounds bool) {
	g := s.graph
	var deferred []string
	for _, n := range s.unfinished(outOfRounds) {
		n.queued = false
		switch {
		case !n.due(): // a dormant node owes nothing
		case n.eligibleAt() > s.graph.now:
			g.hold(n) // it would not have run anyway
		default:
			s.backOff(n)
			deferred = append(deferred, n.id())
		}
	}
	s.inv.passed(s, info)
	if s.ledger.Full() && g.queue.waits() {
		s.keepBooks()
	} else {
		s.closeBooks(len(deferred) > 0)
	}
	g.expireProvisional()
	g.lower()
	if info.Events+info.Runs > 0 {
		s.passes++
	}
	s.noteUnrest(deferred)
	s.structure.endPass(g)
	if f := s.cfg.Trace.PassEnd; f != nil && info.Events+info.Runs > 0 {
		f(info)
	}
}

// closeBooks forgives the nodes that are clean at the end of a pass. But in a circle it is
// chance which one that is: if anything was deferred, a node that has run many times has
// not converged either, and is a suspect until the circle has come to rest. Else its
// members would take turns, and none would be held for longer and longer, nor would idle
// ever come.
func (s *Space) closeBooks(deferred bool) {
	for _, n := range s.touched {
		switch {
		case n.status != Clean:
		case deferred && int(n.passRuns) >= max(2, s.cfg.RunBudget/2):
			gt := &n.ext().gate
			gt.streak++
			gt.holds++
			if !slices.Contains(s.suspects, n) {
				s.suspects = append(s.suspects, n)
			}
		default:
			n.forgive()
		}
		n.passRuns = 0
	}
	s.touched = s.touched[:0]
}

// keepBooks carries budgets over to the next pass, as this one was cut short by a full
// commit: else a circle with large outputs would begin anew with each commit, and never be
// held back. An event that gets through renews them as ever.
func (s *Space) keepBooks() {
	s.touched = slices.DeleteFunc(s.touched, func(n *node) bool {
		if n.held {
			n.passRuns = 0
		}
		return n.held
	})
}

// noteUnrest keeps what lasts over passes. An episode begins with a pass that deferred
// nodes and ends with one after which none is held back for that: passes between, of
// which there is one for each answer of the log, say nothing.
func (s *Space) noteUnrest(deferred []string) {
	switch {
	case len(deferred) > 0:
		s.unrest = true
		s.suspects = slices.DeleteFunc(s.suspects, func(n *node) bool { return n.removed })
		if s.diagnosis.deferred(s.passes, deferred) && s.cfg.Trace.Unsettled != nil {
			s.cfg.Trace.Unsettled(deferred)
		}
	case s.unrest && !s.graph.backsOff():
		s.unrest = false
		s.diagnosis.deferred(s.passes, nil)
		for _, n := range s.suspects {
			if n.status == Clean {
				n.forgive()
			}
		}
		s.suspects = nil
	}
}

// backsOff reports whether a node is held back for not converging.
func (g *graph) backsOff() bool {
	return slices.ContainsFunc(g.gated, func(n *node) bool { return n.more.gate.backoffUntil > g.now })
}

// unfinished takes the nodes that this pass cannot bring to an end: those that have
// used up their budget, and, if it has used up its iterations, all that are left. Of the
// materializers that wait for the rest to be done these are the ones that have run: a
// circle through one of them would go on in the next pass at once.
func (s *Space) unfinished(outOfRounds bool) []*node {
	spent := s.spent
	s.spent = nil
	q := &s.graph.queue
	if !outOfRounds {
		return spent
	}
	for q.next.n > 0 {
		spent = append(spent, q.next.take()...)
	}
	q.idle = slices.DeleteFunc(q.idle, func(n *node) bool {
		if n.passRuns > 0 {
			spent = append(spent, n)
		}
		return n.passRuns > 0
	})
	return spent
}

// backOff holds a node back that still wants to run (seed 001 section 7.7). Nobody is
// forced to run or to be clean.
func (s *Space) backOff(n *node) {
	gt := &n.ext().gate
	gt.streak++
	gt.holds++
	gt.backoffUntil = s.graph.now + s.backoff(gt.streak)
	s.graph.hold(n)
	s.stats.Deferred++
	if f := s.cfg.Trace.Gated; f != nil {
		f(GateInfo{Node: n.id(), Until: gt.backoffUntil, Streak: gt.streak})
	}
}

// backoff is how long a node waits after its streak-th exhausted pass in a row.
func (s *Space) backoff(streak int) time.Duration {
	return ledger.Doubled(s.cfg.BackoffMin, s.cfg.BackoffMax, streak)
}
