package host

import (
	"time"
)

// credit is the time that a lane reader may wait for spaces without room: mostCredit at
// once, and a tenth of the time that passes. Beyond that it leaves their events in the
// stream, so that flooded spaces do not delay the others of the partition further.
type credit struct {
	left time.Duration
	at   time.Time
}

const (
	// mostCredit is also how long the reader waits for a space that takes nothing. A
	// commit is acknowledged within milliseconds; a longer delay is a gate, an outage
	// of the store, or a handler that computes for long.
	mostCredit  = 100 * time.Millisecond
	creditShare = 10
)

// now returns for how long the reader may wait.
func (c *credit) now() time.Duration {
	now := time.Now()
	c.left = min(mostCredit, c.left+now.Sub(c.at)/creditShare)
	c.at = now
	return c.left
}

// wait waits for an inbox to have room, or for the end of over, and reports whether events were taken.
func (c *credit) wait(in *inbox, over <-chan struct{}) bool {
	began := time.Now()
	ok := in.waitForRoom(over, c.now())
	c.left -= time.Since(began)
	c.at = time.Now()
	return ok && c.left > 0
}
