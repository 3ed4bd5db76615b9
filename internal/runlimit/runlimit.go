// Package runlimit finds out, for the hosts of package worker and of package ordered, that code
// of the application does not return (docs/adr/0034).
package runlimit

import (
	"sync/atomic"
	"time"
)

const (
	// Grace is for how long code may go on after its limit, until it is given up: what heeds
	// its context returns, and need not be left behind.
	Grace = time.Second
	// longestLook is the longest time between two looks, of which there are eight to a limit else.
	longestLook = time.Second
	// MaxAbandoned is how many goroutines of a process may be in code that was given up: each holds
	// the memory of what it was called by, and may hold a processor.
	MaxAbandoned = 100
)

// Looks count how long code has been under way, in looks at it: a process that was stopped for a
// while, or a machine that is overloaded, has no part in what code is blamed for, and no run reads
// a clock. There is a timer only while code runs. The caller guards them with a lock, under which it
// makes every call.
type Looks struct {
	// Limit is that of what is under way; not positive for none.
	Limit time.Duration

	moved uint64 // code that has begun or returned
	timer *time.Timer
	every time.Duration // the timer is set, and looks again after so long; else 0
	saw   uint64        // moved, at the last look
	looks int           // since that was seen first
	ended bool          // the limit is over, whatever it is
}

// Begin notes that code begins. Check is called, without the lock, when it is time for Look; it is the
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

// End ends the limit of what is under way now, also of what has none: the grace begins.
func (l *Looks) End(check func()) {
	l.moved++
	l.ended = true
	if l.every = pace(Grace); l.timer == nil {
		l.timer = time.AfterFunc(l.every, check)
	} else {
		l.timer.Reset(l.every)
	}
}

// Return notes that code has come back.
func (l *Looks) Return() { l.moved++ }

// Rest says that nothing is under way that has a limit: no look follows.
func (l *Looks) Rest() { l.every = 0 }

// Look says whether what is under way has reached its limit, and whether the grace is over as well. It
// has the next look set.
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

// Add counts one more, unless there are too many.
func (a *Abandoned) Add() bool {
	if a.n.Add(1) > MaxAbandoned {
		a.n.Add(-1)
		return false
	}
	return true
}

// Done says that one of them has ended.
func (a *Abandoned) Done() { a.n.Add(-1) }

// Now is how many there are.
func (a *Abandoned) Now() int { return int(a.n.Load()) }
