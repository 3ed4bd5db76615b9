package star

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.starlark.net/starlark"
)

// stopper cancels the threads on which a program runs.
type stopper struct {
	reason  atomic.Pointer[string]
	mu      sync.Mutex
	threads []*starlark.Thread
}

// stop cancels every thread under way, and those that begin a run later.
func (s *stopper) stop(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "the run was stopped: " + why
	s.reason.Store(&text)
	for _, t := range s.threads {
		t.Cancel(text)
	}
}

// watch adds a thread that stop cancels.
func (s *stopper) watch(t *starlark.Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.threads = append(s.threads, t)
	s.check(t)
}

// check cancels a thread if stop was called.
func (s *stopper) check(t *starlark.Thread) {
	if why := s.reason.Load(); why != nil {
		t.Cancel(*why)
	}
}

// forget removes a thread that will not run again.
func (s *stopper) forget(t *starlark.Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.threads, t); i >= 0 {
		s.threads = slices.Delete(s.threads, i, i+1)
	}
}
