package doubt

import "time"

// Teller says when something that goes on is to be logged: at once, a minute later, and ever more
// rarely. What is refused is tried again all the time. The zero value is ready.
type Teller struct {
	next time.Time
	wait time.Duration
}

// Repeats says when an error that comes again and again is to be logged: each new one at once, and the same one ever
// more rarely, as a Teller does. The zero value is ready.
type Repeats struct {
	text   string
	teller Teller
}

// Due reports whether err is to be logged now.
func (r *Repeats) Due(err error, now time.Time) bool {
	if text := err.Error(); text != r.text {
		*r = Repeats{text: text}
	}
	return r.teller.Due(now)
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
