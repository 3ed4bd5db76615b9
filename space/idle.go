package space

import (
	"time"
)

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
// woken, and is idle. Called by something that runs, it lets that run come to its end and
// nothing follow; what is not in the log by then is lost. There is no way back, and no
// harm in doing it twice.
func (s *Space) Close() {
	s.ledger.Close()
	s.graph.arming = nil
	s.publisher.settled()
}

// OnDurable registers a function that is told when the space becomes durable and when it
// ceases to be, as of the end of a Settle. It must not call the space.
func (s *Space) OnDurable(f func(bool)) { s.hooks.onDurable = append(s.hooks.onDurable, f) }

// noteDurable reports when the space becomes durable and when it ceases to be.
func (s *Space) noteDurable() {
	f := s.cfg.Trace.Durable
	if f == nil && len(s.hooks.onDurable) == 0 {
		return
	}
	is := s.Durable()
	if is == s.wasDurable {
		return
	}
	s.wasDurable = is
	if f != nil {
		f(is)
	}
	tellAll(s.hooks.onDurable, is)
}

// Throttled is the time until which a node that acts on the world outside, an effect or a
// materializer, may not run because it has run a while ago; 0 if there is none. When that
// was is known here and nowhere else: a space that leaves memory forgets it.
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
