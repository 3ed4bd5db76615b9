package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space/inspect"
)

// What does not converge waits, for longer and longer (seed 001 section 7.7).

// budgets bounds what a pass runs, and holds back what does not converge.
type budgets struct {
	cfg      *Config
	graph    *graph
	recorder *inspect.Recorder
	// ran are the nodes that ran in this pass, spent those that were to run again when their budget was
	// used up.
	ran, spent []*node
	// nonConverged are clean by chance, in a circle that is held back.
	nonConverged []*node
	// nonConverging says that an episode has begun in which nodes are deferred, see note.
	nonConverging bool
	// passes counts those that have done anything.
	passes uint64
}

// mayRun is the part of the run gate that is about time and budget.
func (b *budgets) mayRun(n *node) bool {
	return n.eligibleAt() <= b.graph.now && int(n.passRuns) < b.cfg.RunBudget
}

// charge takes in that a node runs.
func (b *budgets) charge(n *node) {
	if n.passRuns++; n.passRuns == 1 {
		b.ran = append(b.ran, n)
	}
}

// setAside keeps a node that may not run now.
func (b *budgets) setAside(n *node) {
	if n.eligibleAt() > b.graph.now {
		b.graph.hold(n)
	} else {
		n.queued = true
		b.spent = append(b.spent, n)
	}
	if f := b.cfg.Trace.Skipped; f != nil {
		f(SkipInfo{Node: n.id(), Status: n.status, Live: n.live, Until: n.eligibleAt()})
	}
}

// converged gives the nodes that are clean their budget back when an event gets
// through: what they do next is not for want of convergence but because of the event.
func (b *budgets) converged() {
	b.ran = slices.DeleteFunc(b.ran, func(n *node) bool {
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

// end holds the nodes back that did not converge, and returns their names. outOfRounds says that the pass was
// ended by the bound on its iterations, cutShort that a full commit did.
func (b *budgets) end(outOfRounds, cutShort bool) (deferred []string) {
	g := b.graph
	for _, n := range b.unfinished(outOfRounds) {
		n.queued = false
		switch {
		case !n.due(): // a dormant node owes nothing
		case n.eligibleAt() > g.now:
			g.hold(n) // it would not have run anyway
		default:
			b.backOff(n)
			deferred = append(deferred, n.id())
		}
	}
	if cutShort && g.queue.waits() {
		b.carry()
	} else {
		b.settle(len(deferred) > 0)
	}
	return deferred
}

// settle forgives the nodes that are clean at the end of a pass. But in a circle it is
// chance which one that is: if anything was deferred, a node that has run many times has
// not converged either, and counts as not converged until the circle has come to rest. Else its
// members would take turns, and none would be held for longer and longer, nor would idle
// ever come.
func (b *budgets) settle(deferred bool) {
	for _, n := range b.ran {
		switch {
		case n.status != Clean:
		case deferred && int(n.passRuns) >= max(2, b.cfg.RunBudget/2):
			gt := &n.ext().gate
			gt.streak++
			gt.holds++
			if !slices.Contains(b.nonConverged, n) {
				b.nonConverged = append(b.nonConverged, n)
			}
		default:
			n.forgive()
		}
		n.passRuns = 0
	}
	b.ran = b.ran[:0]
}

// carry carries budgets over to the next pass, as this one was cut short by a full
// commit: else a circle with large outputs would begin anew with each commit, and never be
// held back. An event that gets through renews them as ever.
func (b *budgets) carry() {
	b.ran = slices.DeleteFunc(b.ran, func(n *node) bool {
		if n.held {
			n.passRuns = 0
		}
		return n.held
	})
}

// note keeps what lasts over passes. An episode begins with a pass that deferred
// nodes and ends with one after which none is held back for that: passes between, of
// which there is one for each answer of the log, say nothing.
func (b *budgets) note(deferred []string) {
	switch {
	case len(deferred) > 0:
		b.nonConverging = true
		b.nonConverged = slices.DeleteFunc(b.nonConverged, func(n *node) bool { return n.removed })
		if b.recorder.Deferred(b.passes, deferred) && b.cfg.Trace.Unsettled != nil {
			b.cfg.Trace.Unsettled(deferred)
		}
	case b.nonConverging && !b.graph.backsOff():
		b.nonConverging = false
		b.recorder.Deferred(b.passes, nil)
		for _, n := range b.nonConverged {
			if n.status == Clean {
				n.forgive()
			}
		}
		b.nonConverged = nil
	}
}

// unfinished takes the nodes that this pass cannot bring to an end: those that have
// used up their budget, and, if it has used up its iterations, all that are left. Of the
// materializers that wait for the rest to be done these are the ones that have run: a
// circle through one of them would go on in the next pass at once.
func (b *budgets) unfinished(outOfRounds bool) []*node {
	spent := b.spent
	b.spent = nil
	q := &b.graph.queue
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

// backOff holds a node back that still wants to run (seed 001 section 7.7). No node is
// forced to run or to be clean.
func (b *budgets) backOff(n *node) {
	gt := &n.ext().gate
	gt.streak++
	gt.holds++
	gt.backoffUntil = b.graph.now + b.backoff(gt.streak)
	b.graph.hold(n)
	b.graph.stats.Deferred++
	if f := b.cfg.Trace.Gated; f != nil {
		f(GateInfo{Node: n.id(), Until: gt.backoffUntil, Streak: gt.streak})
	}
}

// backoff returns how long a node waits after its streak-th exhausted pass in a row.
func (b *budgets) backoff(streak int) time.Duration {
	return ledger.Doubled(b.cfg.BackoffMin, b.cfg.BackoffMax, streak)
}
