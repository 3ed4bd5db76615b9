package bus

import "time"

// end tells when a consumer has delivered what was there when it was made. The last delivery says
// that nothing is pending. But a message that is replaced before it was delivered is pending no
// more, and what takes its place is not yet: so whoever wants the last message of each subject
// waits for as many subjects as there were. (One that is there for the first time meanwhile counts
// as one of them: whoever joins just then may hide somebody else, until that says something again.)
type end struct {
	found    uint64 // how many messages there were, if known
	known    bool
	subjects map[string]bool // that were delivered; nil if one may have several messages
	since    time.Time       // when nothing was pending for the first time
}

func (e *end) delivered(d delivery) {
	if e.subjects != nil {
		e.subjects[d.Subject] = true
	}
	if d.pending == 0 && e.since.IsZero() {
		e.since = time.Now()
	}
}

// reached reports whether it is. A subject may also be gone for good: so it is after patience.
func (e *end) reached(patience time.Duration) bool {
	switch {
	case e.known && e.found == 0:
		return true
	case e.since.IsZero():
		return false
	case e.subjects == nil:
		return true
	}
	return e.known && uint64(len(e.subjects)) >= e.found || time.Since(e.since) >= patience
}
