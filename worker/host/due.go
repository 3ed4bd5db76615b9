package host

import (
	"time"
)

// publishDue records when the space must be woken in case this host ends.
func (h *host) publishDue() {
	if h.unborn.Load() {
		h.published.due.Store(0)
		return
	}
	at := h.nextDue()
	if h.core.FollowsUp() {
		at = atOnce
	}
	h.published.due.Store(at)
}

// dueIn returns when to read the clock again for an event that waits for a time, 0 for none.
func (h *host) dueIn(at int64) time.Duration {
	if at == 0 {
		return 0
	}
	return h.now() + max(nap(at, h.env.cfg.Now()), 1)
}

// nextDue returns when the space must be woken in case this host ends, 0 for never.
func (h *host) nextDue() int64 {
	if h.lookAtTasks() {
		return atOnce
	}
	return h.core.NextDue()
}
