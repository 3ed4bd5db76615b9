package history

import "time"

// Loss is a period of which the disks have no data, because the power failed before the data was written
// through. Data that was acknowledged, returned or delivered in it may be lost, and no other.
type Loss struct {
	// From is when the disks had everything for the last time, Until when the servers began to come back.
	From, Until time.Time
	// Known is when they were back. Until then, and for Noticing longer, workers may deliver lost data: they find
	// out when the servers answer.
	Known time.Time
}

// Noticing is the time for which a worker may deliver lost data from its memory, once its servers are complete again; and for which a
// reconnected watch may continue, until it begins again: its client has to notice the loss, too.
const Noticing = 2 * time.Second

// losing reports whether data that was acknowledged at a time may be lost.
func (c *Checker) losing(at time.Time) bool {
	for _, l := range c.Losses {
		if !at.Before(l.From) && at.Before(l.Until) {
			return true
		}
	}
	return false
}

// showing reports whether data that was delivered at a time may be lost.
func (c *Checker) showing(at time.Time) bool {
	for _, l := range c.Losses {
		if !at.Before(l.From) && at.Before(l.Known.Add(Noticing)) {
			return true
		}
	}
	return false
}

// between reports whether a loss occurred between two times.
func (c *Checker) between(from, to time.Time) bool {
	for _, l := range c.Losses {
		if from.Before(l.Known.Add(Noticing)) && to.After(l.From) {
			return true
		}
	}
	return false
}

// back reports whether servers began to come back from a loss between two times. Deliveries that come after the first
// one since then do not extend what is excused.
func (c *Checker) back(from, to time.Time) bool {
	for _, l := range c.Losses {
		if from.Before(l.Until) && !to.Before(l.Until) {
			return true
		}
	}
	return false
}
