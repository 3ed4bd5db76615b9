package doubt

import "time"

// Teller says when something that goes on is to be logged: at once, a minute later, and ever more
// rarely. What is refused is tried again all the time. The zero value is ready.
type Teller struct {
	next time.Time
	wait time.Duration
}

const (
	tellAgain = time.Minute
	tellMost  = time.Hour
)

// Due reports whether it is to be logged now.
func (t *Teller) Due(now time.Time) bool {
	if now.Before(t.next) {
		return false
	}
	t.wait = min(max(2*t.wait, tellAgain), tellMost)
	t.next = now.Add(t.wait)
	return true
}
