package host

import (
	"sync"
	"time"

	"github.com/settlehq/settle/worker/roster"
)

// limits has a function called when this worker may have got more of a limit of the fleet.
type limits struct {
	mu sync.Mutex
	f  func()
}

func (l *limits) changed(r *roster.Roster) {
	l.mu.Lock()
	f := l.f
	l.mu.Unlock()
	if f != nil && r.Limited() {
		f()
	}
}

// OnLimits has f called when the worker may have got more of a limit of the fleet. f must not wait.
func (w *Worker) OnLimits(f func()) {
	w.limits.mu.Lock()
	defer w.limits.mu.Unlock()
	w.limits.f = f
}

// Take uses one of a limit of the fleet, unless that is more than this worker has. See roster.Roster.Take.
func (w *Worker) Take(limit string, of, waiting int) bool {
	ok, due := w.roster.Take(limit, of, waiting, time.Now())
	w.announceIf(due)
	return ok
}

// Return gives back one that was taken.
func (w *Worker) Return(limit string) { w.announceIf(w.roster.Return(limit, time.Now())) }

// Part returns how much of a limit of the fleet this worker may use. See roster.Roster.Part.
func (w *Worker) Part(limit string, of, waiting int) int {
	has, due := w.roster.Part(limit, of, waiting, time.Now())
	w.announceIf(due)
	return has
}

func (w *Worker) announceIf(due bool) {
	if due {
		w.recheckPlacement()
	}
}
