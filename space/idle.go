package space

// maxHolds is for how many exhausted passes a node that does not converge keeps the
// space from being idle: long enough for a wave that converges in more than one pass,
// short enough that a circle that never does holds nobody up (seed 001, I6).
const maxHolds = 3

// Idle reports whether the space has come to rest (seed 001 section 8.4): it runs
// nothing, no event waits, and nothing is runnable. Held work counts if its result is
// being waited for: an effect, a materializer, the first run of what somebody needs, or
// a node that is not converging, for three passes. The re-run of a computation that is
// merely debounced or throttled does not: that is a bound on freshness.
//
// Commits may still be under way; Durable waits for them.
func (s *Space) Idle() bool {
	switch {
	case s.closed:
		return true
	case !s.running() || s.background > 0 || !s.lane.Done():
		return false
	case s.graph.queue.waits() || s.graph.pending > 0:
		return false
	}
	idle := true
	s.graph.gated.each(func(n *node) { idle = idle && !s.awaited(n) })
	return idle
}

// awaited reports whether the space is not at rest while n is held.
func (s *Space) awaited(n *node) bool {
	gt := &n.more.gate
	if gt.backoffUntil > s.now && n.status != NeverRan {
		return gt.holds < maxHolds
	}
	return n.status == NeverRan || n.kind == Effect || n.materializer()
}

// Durable reports whether the space is idle and all that it has done is in the log.
func (s *Space) Durable() bool { return s.Idle() && s.Settled() }

// Begin tells the space of work on its behalf that goes on elsewhere, as of something
// that is being loaded. It is not idle until the function that is returned has been
// called, once; more often does no harm.
func (s *Space) Begin() (end func()) {
	s.background++
	ended := false
	return func() {
		if !ended {
			ended = true
			s.background--
		}
	}
}

// Close ends the space: it runs nothing any more, asks for nothing, not even to be
// woken, and is idle. There is no way back.
func (s *Space) Close() {
	s.closed = true
	s.graph.arming = nil
}

// noteDurable tells the trace when the space becomes durable and when it ceases to be.
func (s *Space) noteDurable() {
	f := s.cfg.Trace.Durable
	if f == nil {
		return
	}
	if is := s.Durable(); is != s.wasDurable {
		s.wasDurable = is
		f(is)
	}
}
