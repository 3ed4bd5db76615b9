package space

import (
	"time"
)

// Durable reports whether the space is idle and all of its transactions are in the log.
func (s *Space) Durable() bool { return s.Idle() && s.Settled() }

// Begin announces work for the space that happens elsewhere, such as loading. The space is not idle until the
// returned function has been called; further calls have no effect.
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

// Close ends the space: it runs nothing any more, requests nothing, not even a wake-up, and is idle. If a run
// calls it, that run still completes; transactions that are not in the log by then are lost. Close cannot be
// reversed, and a second call has no effect.
func (s *Space) Close() {
	s.ledger.Close()
	s.graph.arming = nil
	s.publisher.settled()
}

// OnDurable registers a function that is called at the end of a Settle in which the space has become durable,
// or has ceased to be. It must not call the space.
func (s *Space) OnDurable(f func(bool)) { s.hooks.onDurable = append(s.hooks.onDurable, f) }

// noteDurable reports when the space becomes durable and when it ceases to be.
func (s *Space) noteDurable() {
	if len(s.hooks.onDurable) == 0 {
		return
	}
	if is := s.Durable(); is != s.wasDurable {
		s.wasDurable = is
		tellAll(s.hooks.onDurable, is)
	}
}

// Throttled returns the time until which the throttle of an effect or a materializer, which may act on the
// world outside, holds it; 0 if none is held. Only this process knows the time of its last run: a space that
// leaves memory forgets it.
func (s *Space) Throttled() (until time.Duration) {
	for _, n := range s.graph.nodes {
		if n == nil || n.more == nil || n.kind != Effect && !n.materializer() {
			continue
		}
		if gt := &n.more.gate; gt.throttle > 0 && gt.ran && gt.ranAt+gt.throttle > s.graph.now {
			until = max(until, gt.ranAt+gt.throttle)
		}
	}
	return until
}
