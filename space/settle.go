package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
)

// Settle runs one pass: it handles waiting events and runs what is live and
// invalid, until nothing is left to do, or the group is full, or the bounds are
// reached. now is a monotonic time of the caller's choosing, not negative, read once
// for the whole pass; one that goes back stands still.
//
//	repeat:
//	    handle events, in lane order, until one must wait or the group is full
//	    run what is due, from low to high: writers before their readers
//	    if that was nothing, run the materializers that are due
//	until nothing is due
//
// Computations run after a batch of events rather than after each, so a burst of
// a thousand events costs a watched document one run.
func (s *Space) Settle(now time.Duration) Ready {
	if s.closed() {
		return Ready{}
	}
	s.turnOver()
	s.renewMarks()
	s.ledger.Tick(now)
	s.graph.tick(now)
	s.overruns.endRests()
	if s.ledger.Begins() {
		s.pass()
	}
	s.echoes.sweep()
	var r Ready
	if !s.closed() { // by something that ran
		r = s.ready()
	}
	s.graph.dropUnused()
	s.graph.ticked = false
	if !s.closed() {
		s.noteDurable()
	}
	s.inv.step(s)
	return r
}

func (s *Space) closed() bool { return s.ledger.Phase() == ledger.Closed }

func (s *Space) pass() {
	s.graph.loosen()
	if s.ledger.BeginPass() {
		s.jobs.check = true // timers may lie too far ahead, now that the clock was set back
	}
	if s.jobs.check && s.Owned() && s.ledger.Wall() != 0 && !s.cfg.WithoutEvents {
		s.jobs.checkTimers(s.begin(nil))
	}
	var info PassInfo
	rounds := 0 // iterations since an event was handled
	turn := s.ledger.TakeTurn()
	for rounds < s.cfg.MaxIterations && !s.ledger.Crowded() && !s.closed() {
		rounds++
		events := 0
		if !turn {
			events = s.dispatchSome()
		}
		if events > 0 {
			rounds = 1
		}
		runs := s.iterate(&info)
		info.Events += events
		info.Runs += runs
		if events+runs == 0 && !turn && !s.graph.queue.waits() || s.ledger.Full() {
			break
		}
		turn = false
	}
	s.endPass(info, rounds == s.cfg.MaxIterations)
}

// endPass holds back what did not converge, and publishes the structure. outOfRounds says that the pass was
// ended by the bound on its iterations.
func (s *Space) endPass(info PassInfo, outOfRounds bool) {
	g := s.graph
	deferred := s.budgets.end(outOfRounds, s.ledger.Full())
	s.inv.passed(s, info)
	g.expireProvisional()
	g.lower()
	if info.Events+info.Runs > 0 {
		s.budgets.passes++
	}
	s.budgets.note(deferred)
	s.structure.endPass(g)
	if f := s.cfg.Trace.PassEnd; f != nil && info.Events+info.Runs > 0 {
		f(info)
	}
}

// dispatchSome handles events until the lane is empty, its head must wait, or the
// commit is full.
func (s *Space) dispatchSome() int {
	n := 0
	for !s.closed() && !s.ledger.Full() {
		s.firstEvent = n == 0
		if s.ledger.Next() != ledger.Handled {
			break
		}
		n++
	}
	return n
}

// iterate goes once through what is due, primary work if there is any, else the
// materializers (seed 001 section 4.3, rule 1).
func (s *Space) iterate(info *PassInfo) (runs int) {
	q := &s.graph.queue
	if q.next.n == 0 && len(q.idle) > 0 {
		s.releaseIdle()
	}
	if q.next.n == 0 {
		return 0
	}
	info.Iterations++
	if f := s.cfg.Trace.Iteration; f != nil {
		f(info.Iterations)
	}
	return s.sweep()
}

// releaseIdle puts all idle materializers into the queue.
func (s *Space) releaseIdle() {
	q := &s.graph.queue
	idle := q.idle
	q.idle = nil
	for _, n := range idle {
		q.push(n)
	}
}

// sweep runs what is due from low to high.
func (s *Space) sweep() (runs int) {
	s.sweeps++
	g := s.graph
	q := &g.queue
	s.promoteIdle()
	q.now, q.next = q.next, q.now
	q.sweeping = true
	for q.now.n > 0 {
		q.at = q.now.lowest()
		for _, n := range q.now.take() {
			if s.turn(n) {
				runs++
			}
		}
	}
	q.sweeping = false
	return runs
}

// promoteIdle makes idle materializers take part in this sweep if something in it reads
// inside their envelope; the envelope has put them before it.
func (s *Space) promoteIdle() {
	g := s.graph
	for _, n := range slices.Clone(g.queue.idle) {
		wanted := false
		n.eachReader(true, func(d *dep) { wanted = wanted || d.node.queued && !d.node.materializer() })
		if wanted {
			g.promote(n)
		}
	}
}

// turn looks at a node whose turn it is, and runs it if it may (the run gate, seed 001
// section 7.3): somebody needs it, something it read has changed, no gate holds it, and
// it has not used up its budget for this pass.
func (s *Space) turn(n *node) (ran bool) {
	g := s.graph
	n.queued = false
	g.stats.Visits++
	switch {
	case !n.due():
		return false
	case s.ledger.Crowded() || s.closed() || n.height > g.queue.at || s.parentFirst(n):
		g.enqueue(n)
		return false
	}
	if len(g.queue.idle) > 0 {
		next := &g.queue.next
		waiting := next.n
		if s.promoteFor(n); !n.due() {
			return false // in a circle, one of those has pulled it
		}
		if next.n > waiting && next.lowest() < n.height {
			g.enqueue(n) // what they have made due below comes first
			return false
		}
	}
	if !s.budgets.mayRun(n) {
		s.budgets.setAside(n)
		return false
	}
	s.runNode(n)
	return true
}

// parentFirst reports whether the node must wait for the one that made it, or for one
// that made that: descend has put it behind them, but they may have been raised since. It
// waits once in a sweep: two makers that each read what the other's child makes would be
// put behind each other for ever.
func (s *Space) parentFirst(n *node) bool {
	for p := n.parent(); p != nil && n.more.waited != s.sweeps; p = p.parent() {
		if p.queued && p.height >= n.height && !p.materializer() && !s.graph.reaches(n, p) {
			n.more.waited = s.sweeps
			s.graph.raise(n, p.height+1)
			return true
		}
	}
	return false
}

// promoteFor runs the idle materializers in whose envelope n reads; they came up after
// the sweep had begun.
func (s *Space) promoteFor(n *node) {
	q := &s.graph.queue
	for i := 0; i < len(q.idle); i++ {
		m := q.idle[i]
		reads := false
		m.eachReader(true, func(d *dep) { reads = reads || d.node == n })
		if !reads {
			continue
		}
		if s.freshen(m); i >= len(q.idle) || q.idle[i] != m {
			i = -1 // it has run, and what it wrote may concern another one
		}
	}
}
