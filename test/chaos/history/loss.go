package history

import "time"

// Loss is a period whose data is missing on the disks, because the power failed before it was synced.
// Only data that was acknowledged, returned or delivered in this period may be lost.
type Loss struct {
	// From is the last time at which the disks had all data, Until the time at which the servers began
	// to restart.
	From, Until time.Time
	// Known is when the servers had restarted. Until then, and for Noticing longer, workers may deliver
	// lost data, because they detect the loss only when the servers answer.
	Known time.Time
}

// Noticing is how long, after all servers have restarted, a worker may still deliver lost data from its
// memory, and a reconnected watch may continue before it begins again, because its client has to detect
// the loss, too.
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

// back reports whether servers began to restart after a loss between two times. Later deliveries than
// the first one since then do not extend the tolerated period.
func (c *Checker) back(from, to time.Time) bool {
	for _, l := range c.Losses {
		if from.Before(l.Until) && !to.Before(l.Until) {
			return true
		}
	}
	return false
}
