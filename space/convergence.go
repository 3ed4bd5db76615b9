package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space/inspect"
)

// budgets bounds the runs of a pass, and holds back nodes that do not converge, with growing delays.
type budgets struct {
	cfg      *Config
	graph    *graph
	recorder *inspect.Recorder
	// ran are the nodes that ran in this pass; spent are those that became invalid again after they exhausted
	// their budget.
	ran, spent []*node
	// nonConverged are nodes of a circle that is held back which happen to be clean.
	nonConverged []*node
	// nonConverging is set during an episode of deferred nodes, see note.
	nonConverging bool
	patience      patience
	// passes counts the passes that did any work.
	passes uint64
}

// mayRun reports whether time and budget permit a run.
func (b *budgets) mayRun(n *node) bool {
	return n.eligibleAt() <= b.graph.now && int(n.passRuns) < b.cfg.RunBudget
}

// charge counts a run of a node.
func (b *budgets) charge(n *node) {
	if n.passRuns++; n.passRuns == 1 {
		b.ran = append(b.ran, n)
	}
	b.patience.ran = b.patience.ran || n.isGivenUp()
}

// setAside records a due node that may not run now.
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

// converged renews the budgets of clean nodes after an event was handled: their next runs are caused by the
// event and are no sign of non-convergence.
func (b *budgets) converged() {
	b.ran = slices.DeleteFunc(b.ran, func(n *node) bool {
		if n.status != Clean {
			return false
		}
		n.resetBackoff()
		return true
	})
}

// resetBackoff resets the backoff of a node.
func (n *node) resetBackoff() {
	n.passRuns = 0
	if n.more != nil {
		gt := &n.more.gate
		gt.streak, gt.holds, gt.backoffUntil = 0, 0, 0
	}
}

// end holds back the nodes that did not converge, and returns their names. outOfRounds reports that the bound
// on iterations ended the pass, cutShort that a full commit did.
func (b *budgets) end(outOfRounds, cutShort bool) (deferred []string) {
	g := b.graph
	for _, n := range b.unfinished(outOfRounds) {
		n.queued = false
		switch {
		case !n.due(): // a dormant node need not run
		case n.eligibleAt() > g.now:
			g.hold(n) // it would not have run anyway
		default:
			b.backOff(n)
			deferred = append(deferred, n.id())
		}
	}
	if !cutShort {
		b.patience.passed()
	}
	if cutShort && g.queue.waits() {
		b.carry()
	} else {
		b.settle(len(deferred) > 0)
	}
	return deferred
}

// settle resets the backoff of the nodes that are clean at the end of a pass. Which node of a circle is clean
// is a matter of chance: if any node was deferred, a node that has run many times counts as not converged
// too, until no node is deferred. Otherwise the members would take turns, none would back off further, and
// the space would never be idle.
func (b *budgets) settle(deferred bool) {
	for _, n := range b.ran {
		switch {
		case n.status != Clean:
		case deferred && int(n.passRuns) >= max(2, b.cfg.RunBudget/2):
			gt := &n.ext().gate
			gt.streak++
			gt.holds++
			b.patience.exhausted(n)
			if !slices.Contains(b.nonConverged, n) {
				b.nonConverged = append(b.nonConverged, n)
			}
		default:
			n.resetBackoff()
		}
		n.passRuns = 0
	}
	b.ran = b.ran[:0]
	if !deferred {
		b.patience.converged()
	}
}

// carry carries the budgets of a pass that a full commit cut short over to the next one. Otherwise a circle
// with large outputs would start afresh with each commit and never be held back. Handling an event still
// renews them.
func (b *budgets) carry() {
	b.ran = slices.DeleteFunc(b.ran, func(n *node) bool {
		if n.held {
			n.passRuns = 0
		}
		return n.held
	})
}

// note reports episodes. An episode begins with a pass that defers nodes, and ends with a pass after which no
// node is held back for that reason. The passes in between, one per confirmed append, are not reported.
func (b *budgets) note(deferred []string) {
	switch {
	case len(deferred) > 0:
		b.nonConverging = true
		b.nonConverged = slices.DeleteFunc(b.nonConverged, func(n *node) bool { return n.removed })
		if b.recorder.Deferred(b.passes, deferred) && b.cfg.Trace.Unsettled != nil {
			b.cfg.Trace.Unsettled(deferred)
		}
	case b.nonConverging && !b.graph.inBackoff():
		b.nonConverging = false
		b.recorder.Deferred(b.passes, nil)
		for _, n := range b.nonConverged {
			if n.status == Clean {
				n.resetBackoff()
			}
		}
		b.nonConverged = nil
	}
}

// unfinished removes and returns the nodes that this pass cannot settle: those that have exhausted their
// budget and, after the last iteration, all that remain. Of the idle materializers it returns only those that
// have run: a circle through one of them would continue in the next pass at once.
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

// backOff holds back a node that is still invalid.
func (b *budgets) backOff(n *node) {
	gt := &n.ext().gate
	gt.streak++
	gt.holds++
	gt.backoffUntil = b.graph.now + b.backoff(gt.streak)
	b.graph.hold(n)
	b.patience.exhausted(n)
	b.graph.stats.Deferred++
	if f := b.cfg.Trace.Gated; f != nil {
		f(GateInfo{Node: n.id(), Until: gt.backoffUntil, Streak: gt.streak})
	}
}

// backoff returns the delay of a node after its streak-th exhausted pass in a row.
func (b *budgets) backoff(streak int) time.Duration {
	return ledger.Doubled(b.cfg.BackoffMin, b.cfg.BackoffMax, streak)
}
