package ledger

import "time"

// clock is the time as the host has set it.
type clock struct {
	now time.Duration // by the host's monotonic clock
	// wall is in milliseconds since 1970, 0 while it is not known.
	wall int64
	// setBack is set once wall has gone back, and until the next pass.
	setBack bool
}

// Tick sets the time by the host's monotonic clock. One that goes back stands still.
func (c *clock) Tick(now time.Duration) { c.now = max(c.now, now) }

// Clock sets the wall time. It may go back: an event that is handled in the log stays so, and any
// other waits until its time comes again.
func (c *clock) Clock(wall time.Time) {
	ms := wall.UnixMilli()
	if ms < c.wall {
		c.setBack = true
	}
	c.wall = ms
}

// Wall returns the wall time in milliseconds since 1970, 0 if it is not known.
func (c *clock) Wall() int64 { return c.wall }
