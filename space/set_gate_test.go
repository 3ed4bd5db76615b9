package space

import (
	"fmt"
	"time"
)

// Tests also change, on a live node, the gates that a program can only declare.

// Gate returns the gates of a node, and false if there is no such node.
func (s *Space) Gate(node string) (GateSpec, bool) {
	n := s.graph.byID[node]
	if n == nil {
		return GateSpec{}, false
	}
	if n.more == nil {
		return GateSpec{}, true
	}
	return GateSpec{Debounce: n.debounce(), MaxWait: n.more.gate.maxWait, Throttle: n.more.gate.throttle, NoAutoDebounce: n.more.gate.noAuto}, true
}

func (s *Space) setGate(node string, d time.Duration, set func(*gate)) error {
	n := s.graph.byID[node]
	if n == nil {
		return fmt.Errorf("space %s has no node %s", s.cfg.Space, node)
	}
	if err := checkGate(d); err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	s.graph.changeGate(n, set)
	s.runner.observations.note(n)
	return nil
}

// SetDebounce makes a node wait until its reads have been unchanged for d; 0 clears it. If the node is
// waiting already, the new debounce counts from its last change.
func (s *Space) SetDebounce(node string, d time.Duration) error {
	return s.setGate(node, d, func(gt *gate) { gt.debounce = d })
}

// SetThrottle sets the minimum time between two runs of a node; 0 clears it. If the time of the node's last
// run is not known, it counts as having run just now.
func (s *Space) SetThrottle(node string, d time.Duration) error {
	return s.setGate(node, d, func(gt *gate) { gt.throttle = d })
}

// SetNoAutoDebounce sets whether an effect is exempt from the automatic debounce.
func (s *Space) SetNoAutoDebounce(node string, exempt bool) error {
	return s.setGate(node, 0, func(gt *gate) { gt.noAuto = exempt })
}

// SetMaxWait bounds how long a debounce holds a node while changes continue, as GateSpec.MaxWait does.
func (s *Space) SetMaxWait(node string, d time.Duration) error {
	return s.setGate(node, max(d, 0), func(gt *gate) { gt.maxWait = d })
}
