package space

import (
	"time"
)

// Durable reports whether the space is idle and all of its transactions are in the log.
func (s *Space) Durable() bool { return s.Idle() && s.Settled() }

// Begin announces work for the space that happens elsewhere, such as loading. The space is not idle until end
// is called; calling it again has no effect.
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

// Close ends the space: from now on it runs nothing and requests nothing, not even a wake-up, and is idle. If a
// run calls it, that run still completes; transactions that are not in the log by then are lost. Close cannot
// be reversed, and a second call has no effect.
func (s *Space) Close() {
	s.ledger.Close()
	s.graph.arming = nil
	s.publisher.settled()
}

// OnDurable registers a function that is called at the end of a Settle that made the space durable, or made
// it cease to be. It must not call the space.
func (s *Space) OnDurable(f func(bool)) { s.hooks.onDurable = append(s.hooks.onDurable, f) }

func (s *Space) noteDurable() {
	if len(s.hooks.onDurable) == 0 {
		return
	}
	if is := s.Durable(); is != s.wasDurable {
		s.wasDurable = is
		notifyAll(s.hooks.onDurable, is)
	}
}

// Throttled returns the time until which the throttle of an effect or a materializer holds it; 0 if none is
// held. Such a node may act on the outside world, and only this process knows when it last ran: a space that
// is unloaded forgets that.
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
