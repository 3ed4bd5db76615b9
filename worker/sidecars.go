package worker

import (
	"context"
	"sync"
)

// sidecars are services that run along with a worker and belong to its process; they
// answer from the worker's state, and add to its figures.
type sidecars struct {
	tasks   sync.WaitGroup
	leaving chan struct{} // closed when Stop begins
	once    sync.Once

	mu  sync.Mutex
	add []func(*Figures)
}

// Beside runs f along with the worker. leaving is closed when the worker begins to stop;
// f must then finish and return. Stop waits for it, but only after the worker's
// spaces are handed over and the other workers know that it leaves. ctx ends when the worker is killed, or
// when Stop has waited for too long.
func (w *Worker) Beside(f func(ctx context.Context, leaving <-chan struct{})) {
	w.sidecars.tasks.Go(func() { f(w.ctx, w.sidecars.leaving) }) // ends with Stop or Kill
}

// Tell registers f, which adds to the figures of the worker at each status request.
func (w *Worker) Tell(f func(*Figures)) {
	w.sidecars.mu.Lock()
	defer w.sidecars.mu.Unlock()
	w.sidecars.add = append(w.sidecars.add, f)
}

func (s *sidecars) leave() { s.once.Do(func() { close(s.leaving) }) }

// fill adds to the figures of the worker.
func (s *sidecars) fill(f *Figures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, add := range s.add {
		add(f)
	}
}
