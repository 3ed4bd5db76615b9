package ledger

import "time"

// clock is the time as the host has set it.
type clock struct {
	now time.Duration // by the host's monotonic clock
	// wall is in milliseconds since 1970, 0 while it is not known.
	wall int64
	// setBack is set when wall goes back, until the next pass.
	setBack bool
}

// Tick sets the time by the host's monotonic clock. A smaller time than before is ignored.
func (c *clock) Tick(now time.Duration) { c.now = max(c.now, now) }

// Clock sets the wall time. It may go back: that does not change an event whose handling is in the log, and
// any other waits until its time comes again.
func (c *clock) Clock(wall time.Time) {
	ms := wall.UnixMilli()
	if ms < c.wall {
		c.setBack = true
	}
	c.wall = ms
}

// Wall returns the wall time in milliseconds since 1970, 0 if it is unknown.
func (c *clock) Wall() int64 { return c.wall }
