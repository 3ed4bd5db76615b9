package wire

import "time"

// end detects when a consumer has delivered the messages that existed when it was created. The last delivery
// reports that nothing is pending. But a message that is replaced before its delivery is no longer pending,
// and its replacement is not pending yet: so a subscription to the last message of each subject waits for as
// many subjects as there were. (A subject that is added in the meantime counts as one of them: a member that
// joins at that moment may hide another, until that one announces itself again.)
type end struct {
	found    uint64 // the number of messages, if known
	known    bool
	subjects map[string]bool // the delivered ones; nil if a subject may have several messages
	since    time.Time       // when nothing was pending for the first time
}

func (e *end) delivered(d Delivery) {
	if e.subjects != nil {
		e.subjects[d.Subject] = true
	}
	if d.pending == 0 && e.since.IsZero() {
		e.since = time.Now()
	}
}

// reached reports whether they are delivered. A subject may also be gone for good: so it returns true after patience.
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
