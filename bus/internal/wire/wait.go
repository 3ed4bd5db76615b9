package wire

import (
	"log/slog"
	"time"
)

// Waiter paces a wait for something that is started elsewhere, and logs what it waits for: at once,
// then at growing intervals.
type Waiter struct {
	Log           *slog.Logger
	wait          time.Duration
	tries, report int
}

// The first pause of a waiter, the longest, and the number of tries after which one is logged at least once: a line
// every few minutes.
const (
	firstWait, longestWait = 250 * time.Millisecond, 5 * time.Second
	mostUnlogged           = 32
)

// Failed records a failed try, logs it if it is time to, and returns the pause before the next.
func (v *Waiter) Failed(what string, about ...any) time.Duration {
	if v.tries++; v.report == 0 {
		v.wait, v.report = firstWait, 1
	}
	if v.tries == v.report {
		v.Log.Warn(what, about...)
		v.report += min(v.report, mostUnlogged)
	}
	wait := v.wait
	v.wait = min(2*wait, longestWait)
	return wait
}
