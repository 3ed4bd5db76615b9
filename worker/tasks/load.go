package tasks

import "time"

// lateAfter is how long a task may be due without an attempt before it counts as late.
const lateAfter = time.Second

// Load returns how many tasks are to be performed here, and whether one of them is late: it has been due for more than a second, and has no
// attempt although its action has room for one.
func (l *List) Load() (pending int, late bool) {
	for _, a := range l.actions {
		pending += len(a.pending)
	}
	if pending > 0 {
		at := l.Next()
		late = at > 1 && l.host.Now()-at > lateAfter // a task that was due from the start has 1
	}
	return pending, late
}
