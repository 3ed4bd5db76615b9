// Package runlimit detects, for the hosts of package worker/host, that code
// of the application does not return (docs/adr/0034).
package runlimit

import (
	"sync/atomic"
	"time"
)

const (
	// Grace is the time between the limit of code and giving it up: code that heeds
	// its context returns within it.
	Grace = time.Second
	// longestLook is the longest time between two checks; otherwise there are eight per limit.
	longestLook = time.Second
	// MaxAbandoned is the largest number of goroutines of a process in code that was given up: each holds
	// the memory of its caller, and may occupy a processor.
	MaxAbandoned = 100
)

// Looks measures how long code has been running, in periodic checks: a process that was stopped for a
// while, or an overloaded machine, does not count against the code, and no run reads
// a clock. A timer exists only while code runs. The caller guards it with a lock, and
// holds the lock in every call.
type Looks struct {
	// Limit is the limit of the running code; not positive for none.
	Limit time.Duration

	moved uint64 // code that has begun or returned
	timer *time.Timer
	every time.Duration // the timer is set, and looks again after so long; else 0
	saw   uint64        // moved, at the last look
	looks int           // since that was seen first
	ended bool          // the limit is over, whatever it is
}

// Begin records that code begins. check is called, without the lock, when Look is due; it is the
// same function each time.
func (l *Looks) Begin(limit time.Duration, check func()) {
	l.moved++
	l.Limit, l.ended = limit, false
	if limit <= 0 {
		return
	}
	every := pace(limit)
	if l.every > 0 && l.every <= every {
		return
	}
	if l.every = every; l.timer == nil {
		l.timer = time.AfterFunc(every, check)
	} else {
		l.timer.Reset(every)
	}
}

// End ends the limit of the running code, even if it has none: the grace begins.
func (l *Looks) End(check func()) {
	l.moved++
	l.ended = true
	if l.every = pace(Grace); l.timer == nil {
		l.timer = time.AfterFunc(l.every, check)
	} else {
		l.timer.Reset(l.every)
	}
}

// Return records that code has returned.
func (l *Looks) Return() { l.moved++ }

// Rest records, in a check, that no code with a limit runs: no check follows. The timer is not kept, since a process may
// have very many hosts that rest.
func (l *Looks) Rest() {
	l.every = 0
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// Look reports whether the running code has reached its limit, and whether the grace is over as well. It
// schedules the next check.
func (l *Looks) Look() (over, late bool) {
	limit := l.Limit
	if l.every = pace(limit); l.ended {
		limit, l.every = 0, pace(Grace)
	}
	l.timer.Reset(l.every)
	if l.saw != l.moved {
		l.saw, l.looks = l.moved, 0
		return l.ended, false
	}
	l.looks++
	so := time.Duration(l.looks) * l.every
	return so >= limit, so >= limit+Grace
}

func pace(limit time.Duration) time.Duration {
	return min(max(limit/8, time.Millisecond), longestLook)
}

// Abandoned counts the goroutines of a process in code that was given up and has not returned.
type Abandoned struct{ n atomic.Int64 }

// Add counts one more, and reports false at the maximum.
func (a *Abandoned) Add() bool {
	if a.n.Add(1) > MaxAbandoned {
		a.n.Add(-1)
		return false
	}
	return true
}

// Done records that one of them has ended.
func (a *Abandoned) Done() { a.n.Add(-1) }

// Now returns their number.
func (a *Abandoned) Now() int { return int(a.n.Load()) }
