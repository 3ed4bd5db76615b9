package worker

import (
	"time"

	"github.com/settlehq/settle/space"
)

// A host leaves memory when its space has come to rest and awake has asked it to leave.
// Nothing may be lost between that decision and an input that arrives at the same moment:
//
//	dismissed:  awake asks, from outside
//	at rest?    the loop checks its work; if there is any, the host stays
//	saved?      if not, it saves, and checks again when that is answered
//	leave       partition and inbox are locked: if the inbox is empty and there is no observer,
//	            the host is removed from the partition under the same lock
//
// An input before that moment finds the host, and makes it stay. A later input
// finds none, and starts another. The host that has left appends and saves nothing any more,
// so the two never conflict.

// considerLeaving reports the host's standing to awake, and returns whether it has left.
func (h *host) considerLeaving(r space.Ready) (left bool) {
	if h.env.partition == nil {
		return false // it is attached, for as long as the application wants
	}
	now := h.standing(r)
	if seq := h.core.Seq(); seq != h.stirredAt {
		h.stirred, h.stirredAt = true, seq
		h.seen.Store(seq)
	}
	switch {
	case now != resting && now != h.told:
		h.env.awake.stirs(h, now == held)
	case now == resting && (now != h.told || h.stirred):
		h.env.awake.rests(h)
	}
	h.told, h.stirred = now, false
	if now != resting || !h.dismissed.Load() || h.toDrain.Load() {
		h.lastSave = false
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
	if h.stays <= h.now() {
		h.stays = 0
	}
	switch {
	case r.More || h.appending || h.refilling || h.draining || !h.core.Owned():
		return busy
	case r.Wake != 0 || len(h.mirrors) > 0 || h.foreign.attached > 0 || h.observed > 0 ||
		h.reads.holds() || len(h.directs.waiting) > 0 || len(h.directs.underWay) > 0 ||
		h.stays > 0 || h.tasks.Pending() || !h.core.Durable():
		return held
	}
	return resting
}

// tryToLeave saves unsaved changes, and leaves.
func (h *host) tryToLeave() (left bool) {
	switch clean := h.saver.clean(h); {
	case h.saver.saving || h.asked.Load():
		return false // it is called again after that
	case !clean && !h.lastSave:
		h.lastSave = true
		h.checkpoint()
		return false
	case !clean:
		h.stay(h.now() + h.env.cfg.Checkpoint)
	case h.core.Throttled() > h.now():
		h.stay(h.core.Throttled())
	case h.env.partition.leave(h):
		h.env.cfg.Logger.Debug("space leaves memory", "space", h.space)
		return true
	default: // it processes its inputs, and is called again
		h.env.cfg.Logger.Debug("space does not leave: something has come", "space", h.space)
	}
	return false
}

// stay ends an unsuccessful attempt to leave; the next is not before until.
func (h *host) stay(until time.Duration) {
	h.lastSave, h.told = false, held
	h.stays = until
	h.env.awake.stirs(h, true)
}

// clean reports whether there is nothing to save. For a node that is not up to date, no observation
// can be saved, whatever it has read before.
func (s *saver) clean(h *host) bool {
	if s.saving || h.core.Seq() > s.saved {
		return false
	}
	if err := s.noted.take(h.core, h.build()); err != nil {
		h.report("checkpoint", err)
	}
	return len(s.noted) == 0
}

// empties reports whether nothing waits for the loop, and the space has no work
// left. No input can arrive while it is called with the partition's lock held.
func (h *host) empties() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := &h.inbox
	return len(in.events) == 0 && len(in.calls) == 0 && len(in.reads) == 0 && len(in.mirrored) == 0 && in.left == 0 && h.low.Load() == allDone
}

// leave removes a host from the partition, unless it is still needed.
func (p *partition) leave(h *host) bool {
	p.w.cfg.beforeLeaving()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.hosts[h.space] != h || p.leases.any(h.space) || !h.empties() {
		return false
	}
	delete(p.hosts, h.space)
	h.left = true
	p.noteDue(h)
	p.evictions++
	return true
}
