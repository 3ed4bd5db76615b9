package worker

import (
	"context"
	"sync"
)

// besides are what runs along with a worker and belongs to its process: services that
// answer with what it knows.
type besides struct {
	tasks   sync.WaitGroup
	leaving chan struct{} // closed when Stop begins
	once    sync.Once
}

// Beside runs f along with the worker. leaving is closed when the worker begins to stop, and
// f is to finish and return then: Stop goes on once it has, but not before the worker's
// spaces are handed over and the others know that it leaves. ctx ends when it is killed, or
// when Stop has waited for too long.
func (w *Worker) Beside(f func(ctx context.Context, leaving <-chan struct{})) {
	w.besides.tasks.Go(func() { f(w.ctx, w.besides.leaving) }) // ends with Stop or Kill
}

func (b *besides) leave() { b.once.Do(func() { close(b.leaving) }) }
