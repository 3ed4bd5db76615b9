package space

import "time"

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

// Waiting is the number of events that were offered and that no handler has taken yet.
func (s *Space) Waiting() int { return s.ledger.Lane().Waiting() + s.ledger.Lane().Held() }
