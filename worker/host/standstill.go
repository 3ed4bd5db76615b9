package host

import "time"

// standstill is how far a space is done with its lane, and since when it has made no progress. One
// pass may handle hundreds of events until their commit moves done: a handler that begins with another
// event is progress as well, and so is a computation that was not seen running since then. The same
// event again is a retry, and the same computation may be one that does not come to rest.
type standstill struct {
	done  uint64
	event eventName // of the last handler call
	nodes map[string]bool
	since time.Time
}

// moves records the code that a host is in, and reports whether that is progress.
func (s *standstill) moves(code *Code) bool {
	event, node := code.last()
	moved := event != eventName{} && event != s.event
	if moved {
		s.event, s.nodes = event, nil
	}
	if node == "" || s.nodes[node] {
		return moved
	}
	if s.nodes == nil {
		s.nodes = map[string]bool{}
	}
	s.nodes[node] = true
	return true
}

// stuckSpaces is what a partition knows of the spaces that hold its position back.
type stuckSpaces struct {
	at map[string]standstill
	// failures are why hosts of those have ended.
	failures map[string]string
}
