package wire

import "sync"

// signal wakes any number of waiters. The zero signal
// is ready.
type signal struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// Wait returns a channel that the next raise closes.
func (s *signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
