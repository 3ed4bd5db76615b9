package worker

import (
	"time"

	"github.com/settlehq/settle/space"
)

// A host leaves memory when its space has come to rest and residency has asked it to leave.
// Nothing may be lost between that decision and an input that arrives at the same moment:
//
//	dismissed:  residency asks, from outside
//	at rest?    the loop checks its work; if there is any, the host stays
//	saved?      if not, it saves, and checks again when that is answered
//	leave       partition and inbox are locked: if the inbox is empty and there is no observer,
//	            the host is removed from the partition under the same lock
//
// An input before that moment finds the host, and makes it stay. A later input
// finds none, and starts another. The host that has left appends and saves nothing any more,
// so the two never conflict.

// idleness is what the loop of a host knows of its rest.
type idleness struct {
	// told is the standing that residency knows, stirred reports that something has happened since, up to
	// stirredAt in the log.
	told      standing
	stirred   bool
	stirredAt uint64
	// lastSave reports that the host has saved in order to leave. It does not leave before stays. left reports
	// that it has left.
	lastSave bool
	stays    time.Duration
	left     bool
	observed int // leases of documents
}

// considerLeaving reports the host's standing to residency, and returns whether it has left.
func (h *host) considerLeaving(r space.Ready) (left bool) {
	if h.env.home == nil {
		return false // it is attached, for as long as the application wants
	}
	now := h.standing(r)
	if seq := h.core.Seq(); seq != h.idle.stirredAt {
		h.idle.stirred, h.idle.stirredAt = true, seq
		h.saver.stored.seen.Store(seq)
	}
	switch {
	case now != resting && now != h.idle.told:
		h.env.residency.stirs(&h.resident, now == held)
	case now == resting && (now != h.idle.told || h.idle.stirred):
		h.env.residency.rests(&h.resident)
	}
	h.idle.told, h.idle.stirred = now, false
	if now != resting || !h.resident.dismissed.Load() || h.toDrain.Load() {
		h.idle.lastSave = false
		return false
	}
	return h.tryToLeave()
}

// standing is the state of a host that has done its present work.
type standing int

const (
	busy    standing = iota // something is in flight
	held                    // nothing is, but it must not leave
	resting                 // the space may leave once it is saved
)

func (h *host) standing(r space.Ready) standing {
	if h.idle.stays <= h.now() {
		h.idle.stays = 0
	}
	switch {
	case r.More || h.appends.inFlight || h.reads.refilling || h.draining || !h.core.Owned():
		return busy
	case r.Wake != 0 || len(h.mirrors.all) > 0 || h.remote.attached > 0 || h.idle.observed > 0 ||
		len(h.queries.waiting) > 0 || len(h.directs.waiting) > 0 || len(h.directs.undecided) > 0 ||
		h.idle.stays > 0 || h.tasks.Pending() || !h.core.Durable():
		return held
	}
	return resting
}

// tryToLeave saves unsaved changes, and leaves.
func (h *host) tryToLeave() (left bool) {
	switch clean := h.saver.isClean(h.core, h.build()); {
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
		h.env.cfg.Logger.Debug("space does not leave: something has come", "space", h.space)
	}
	return false
}

// stay ends an unsuccessful attempt to leave; the next is not before until.
func (h *host) stay(until time.Duration) {
	h.idle.lastSave, h.idle.told = false, held
	h.idle.stays = until
	h.env.residency.stirs(&h.resident, true)
}

// leave removes a host from the partition, unless it is still needed.
func (p *partition) leave(h *host) bool {
	p.cfg.beforeLeaving()
	p.mu.Lock()
	defer p.mu.Unlock()
	// No input can arrive with the partition locked.
	if p.closed || p.hosts[h.space] != h || p.leases.any(h.space) || !h.inbox.isEmpty() {
		return false
	}
	delete(p.hosts, h.space)
	h.idle.left = true
	p.noteDue(h)
	p.tenure.evictions++
	return true
}
