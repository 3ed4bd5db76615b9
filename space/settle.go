package space

import (
	"time"
)

// Settle runs one pass: it handles waiting events and runs live and invalid nodes until nothing is left to
// do, the group is full, or a bound is reached. now is a monotonic time of the caller's choosing, not
// negative, and the only time of the pass; a time before the previous one is ignored.
//
//	repeat:
//	    handle events, in lane order, until one must wait or the group is full
//	    run what is due, from low to high: writers before their readers
//	    if nothing was, run the materializers that are due
//	until nothing is due
//
// Computations run after a batch of events rather than after each, so a burst of a thousand events costs an
// observed document one run.
func (s *Space) Settle(now time.Duration) Ready {
	if s.ledger.Closed() {
		return Ready{}
	}
	s.turnOver()
	s.runner.renewMarks()
	s.ledger.Tick(now)
	s.graph.tick(now)
	s.overruns.releaseRested()
	s.rounds.tick()
	if s.ledger.Begins() {
		s.pass()
	}
	s.runner.echoes.sweep()
	var r Ready
	if !s.ledger.Closed() { // a handler or a run may have closed it
		r = s.ready()
	}
	s.graph.dropUnused()
	s.graph.ticked = false
	s.publisher.settled()
	if !s.ledger.Closed() {
		s.noteDurable()
	}
	s.stepped()
	return r
}

func (s *Space) pass() {
	s.graph.recheckBackEdges()
	if s.ledger.BeginPass() {
		s.jobs.check = true // the clock was set back: timers may lie too far ahead
	}
	if s.jobs.check && s.Owned() && s.ledger.Wall() != 0 && !s.cfg.WithoutEvents {
		s.jobs.checkTimers(&s.runner.begin(nil).attempt.Draft)
	}
	var info PassInfo
	rounds := 0 // iterations since an event was last handled
	turn := s.ledger.TakeTurn()
	for rounds < s.cfg.MaxIterations && !s.ledger.Overflowed() && !s.ledger.Closed() {
		rounds++
		events := 0
		if !turn {
			events = s.handling.dispatchSome()
		}
		if events > 0 {
			rounds = 1
		}
		runs := s.sweeper.iterate(&info)
		if s.sweeper.abandoning {
			// It has found edges, which says nothing about convergence; budgets bound the runs.
			rounds--
			info.Iterations--
		}
		info.Events += events
		info.Runs += runs
		if events+runs == 0 && !turn && !s.graph.queue.waits() || s.ledger.Full() {
			break
		}
		turn = false
	}
	s.endPass(info, rounds == s.cfg.MaxIterations)
}

// endPass holds back nodes that did not converge. outOfRounds reports that the bound on iterations ended the
// pass.
func (s *Space) endPass(info PassInfo, outOfRounds bool) {
	g := s.graph
	deferred := s.runner.budgets.end(outOfRounds, s.ledger.Full())
	s.runner.inv.passed(s.cfg.MaxIterations, info)
	g.expireProvisional()
	if g.lower() {
		g.queue.relevel()
	}
	if info.Events+info.Runs > 0 {
		s.runner.budgets.passes++
	}
	s.runner.budgets.note(deferred)
	if f := s.cfg.Trace.PassEnd; f != nil && info.Events+info.Runs > 0 {
		f(info)
	}
}
