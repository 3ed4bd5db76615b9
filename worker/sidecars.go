package worker

import (
	"context"
	"sync"
)

// besides are services that run along with a worker and belong to its process; they
// answer from the worker's state.
type besides struct {
	tasks   sync.WaitGroup
	leaving chan struct{} // closed when Stop begins
	once    sync.Once
}

// Beside runs f along with the worker. leaving is closed when the worker begins to stop;
// f must then finish and return. Stop waits for it, but only after the worker's
// spaces are handed over and the other workers know that it leaves. ctx ends when the worker is killed, or
// when Stop has waited for too long.
func (w *Worker) Beside(f func(ctx context.Context, leaving <-chan struct{})) {
	w.besides.tasks.Go(func() { f(w.ctx, w.besides.leaving) }) // ends with Stop or Kill
}

func (b *besides) leave() { b.once.Do(func() { close(b.leaving) }) }
