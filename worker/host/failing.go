package host

import (
	"time"
)

// The pause after which a space whose host failed to load, or failed later, is loaded again. It is
// doubled after each failure, up to the longest.
const (
	leastRefusal   = 500 * time.Millisecond
	longestRefusal = 10 * time.Second
)

// failings are the spaces of a partition whose last attempt to be served failed. Events, leases, queries and
// times all wake a space. Without a pause, each of these would load it again, and fail again, as fast as a
// store can reject reads of a missing log. So all of them wait for the same time, after growing pauses.
type failings map[string]*failing

// failing is why a space could not be served, and when the next attempt is due.
type failing struct {
	rest  time.Duration
	until time.Time
}

// note records that a space could not be served.
func (fs failings) note(space string, now time.Time) {
	f := fs[space]
	if f == nil {
		f = &failing{}
		fs[space] = f
	}
	f.rest = min(max(2*f.rest, leastRefusal), longestRefusal)
	f.until = now.Add(f.rest)
}

// rests records that a space is left alone for a time.
func (fs failings) rests(space string, now time.Time, d time.Duration) {
	if d > 0 {
		fs[space] = &failing{until: now.Add(d)}
	}
}

// left returns how long a space must wait until it is loaded again.
func (fs failings) left(space string, now time.Time) time.Duration {
	if f := fs[space]; f != nil {
		return max(0, f.until.Sub(now))
	}
	return 0
}
