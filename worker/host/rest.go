package host

import (
	"time"
)

// A host is evicted when its space has come to rest and residency has asked it to leave. Nothing may be lost
// between that decision and an input that arrives at the same moment:
//
//	dismissed:  residency asks, from outside
//	at rest?    the loop checks its work; if there is any, the host stays
//	saved?      if not, it saves, and checks again when that is answered
//	leave       partition and inbox are locked: if the inbox is empty and there is no observer,
//	            the host is removed from the partition under the same lock
//
// An input before that moment finds the host, and makes it stay. A later input finds none, and starts
// another. The host that has left appends and saves nothing any more, so the two never conflict.

// considerLeaving reports the host's state to residency, and returns whether it has left.
func (h *host) considerLeaving(r Ready) (left bool) {
	if h.env.home == nil {
		return false // it is attached, for as long as the application wants
	}
	now := h.idleState(r)
	if seq := h.core.Seq(); seq != h.idle.activeAt {
		h.idle.active, h.idle.activeAt = true, seq
		if !h.unborn.Load() {
			h.saver.stored.seen.Store(seq)
		}
	}
	switch {
	case now != isIdle && now != h.idle.reported:
		h.env.residency.markActive(&h.resident, now == isHeld)
	case now == isIdle && (now != h.idle.reported || h.idle.active):
		h.env.residency.rests(&h.resident)
	}
	h.idle.reported, h.idle.active = now, false
	if now != isIdle || !h.resident.dismissed.Load() || h.toDrain.Load() {
		h.idle.lastSave = false
		return false
	}
	return h.tryToLeave()
}

func (h *host) idleState(r Ready) idleState {
	if h.idle.stays <= h.now() {
		h.idle.stays = 0
	}
	switch {
	case r.More || h.appends.inFlight || h.lane.refilling || h.draining || !h.core.Owned():
		return isBusy
	case r.Wake != 0 || h.remote.attached > 0 || h.idle.observed > 0 || h.hasDemand() ||
		h.idle.stays > 0 || !h.core.Durable():
		return isHeld
	}
	return isIdle
}

// tryToLeave saves unsaved changes, and leaves.
func (h *host) tryToLeave() (left bool) {
	switch clean := h.saver.isClean(h.core); {
	case h.saver.saving || h.saver.asked.Load():
		return false // it is called again after that
	case !clean && !h.idle.lastSave:
		h.idle.lastSave = true
		h.checkpoint()
		return false
	case !clean:
		h.stay(h.now() + h.env.cfg.Checkpoint)
	case h.core.Throttled() > h.now():
		h.stay(h.core.Throttled())
	case h.env.home.leave(h):
		h.env.cfg.Logger.Debug("space leaves memory", "space", h.space)
		return true
	default: // it processes its inputs, and is called again
		h.env.cfg.Logger.Debug("space does not leave: new input", "space", h.space)
	}
	return false
}

// stay ends an unsuccessful attempt to leave; the next is not before until.
func (h *host) stay(until time.Duration) {
	h.idle.lastSave, h.idle.reported = false, isHeld
	h.idle.stays = until
	h.env.residency.markActive(&h.resident, true)
}
