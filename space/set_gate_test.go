package space

import (
	"fmt"
	"time"
)

// What a program declares, these tests also change while a node is there.

// Gate says what holds a node back in time, as it stands. The second result is false if
// there is no such node.
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

// SetDebounce makes a node wait until nothing that it reads has changed for d; 0 clears
// it. One that waits already waits accordingly from its last change on.
func (s *Space) SetDebounce(node string, d time.Duration) error {
	return s.setGate(node, d, func(gt *gate) { gt.debounce = d })
}

// SetThrottle sets the least time between two runs of a node; 0 clears it. If the node ran
// before it ever had anything to do with time, that counts as having been just now.
func (s *Space) SetThrottle(node string, d time.Duration) error {
	return s.setGate(node, d, func(gt *gate) { gt.throttle = d })
}

// SetNoAutoDebounce exempts an effect from being debounced for being slow, or not.
func (s *Space) SetNoAutoDebounce(node string, exempt bool) error {
	return s.setGate(node, 0, func(gt *gate) { gt.noAuto = exempt })
}

// SetMaxWait bounds how long a debounce holds a node when changes go on, as GateSpec.MaxWait
// does.
func (s *Space) SetMaxWait(node string, d time.Duration) error {
	return s.setGate(node, max(d, 0), func(gt *gate) { gt.maxWait = d })
}
