package history

import "time"

// Loss is a stretch of time of which the disks have nothing, because their power was cut before they had written it
// through. What was acknowledged, told or shown in it may be gone; nothing else may.
type Loss struct {
	// From is when the disks had everything for the last time, Until when the servers began to come back.
	From, Until time.Time
	// Known is when they were back. Until then, and Noticing longer, workers may show what is lost: they find
	// out when they hear from the servers.
	Known time.Time
}

// Noticing is how long a worker may show from its memory what its servers have lost, once they are whole again; and how long a
// watch that has come back may go on where it was, until it begins anew: its client has to notice the loss, too.
const Noticing = 2 * time.Second

// losing reports whether what was acknowledged at a time may be lost.
func (c *Checker) losing(at time.Time) bool {
	for _, l := range c.Losses {
		if !at.Before(l.From) && at.Before(l.Until) {
			return true
		}
	}
	return false
}

// showing reports whether what was shown at a time may be lost.
func (c *Checker) showing(at time.Time) bool {
	for _, l := range c.Losses {
		if !at.Before(l.From) && at.Before(l.Known.Add(Noticing)) {
			return true
		}
	}
	return false
}

// between reports whether something was lost between two times.
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
