package host

import (
	"sync"

	"github.com/settlehq/settle/status"
)

// sidecars are services that run along with a worker and belong to its process; they
// answer from the worker's state, and add to its figures.
type sidecars struct {
	tasks   sync.WaitGroup
	leaving chan struct{} // closed when Stop begins
	once    sync.Once

	mu  sync.Mutex
	add []func(*status.Figures)
}

func (s *sidecars) leave() { s.once.Do(func() { close(s.leaving) }) }

// fill adds to the figures of the worker.
func (s *sidecars) fill(f *status.Figures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, add := range s.add {
		add(f)
	}
}
