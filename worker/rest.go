package worker

import (
	"time"

	"github.com/settlehq/settle/space"
)

// A host leaves memory when its space has come to rest and somebody has asked it to (see
// awake). Nothing may be lost between that decision and what arrives at the same moment:
//
//	dismissed:  awake asks, from outside
//	at rest?    the loop looks at what it has; if there is anything, it stays
//	saved?      if not, it saves, and looks again when that is answered
//	leave       partition and inbox are locked: if nothing has come and nobody observes,
//	            the host is taken out of the partition in the same moment
//
// Whatever comes before that moment finds the host, and makes it stay. What comes after
// finds none, and starts another. The one that has left appends and saves nothing any more,
// so the two never meet.

// considerLeaving tells awake how the host stands, and reports whether it has left.
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

// standing is how a host stands when it has done what there was to do.
type standing int

const (
	busy    standing = iota // something is under way
	held                    // nothing is, but it must not leave
	resting                 // the space could do without it, once it is saved
)

func (h *host) standing(r space.Ready) standing {
	if h.stays <= h.now() {
		h.stays = 0
	}
	switch {
	case r.More || h.appending || h.refilling || h.draining || !h.core.Owned():
		return busy
	case r.Wake != 0 || len(h.mirrors) > 0 || h.foreign.attached > 0 || h.observed > 0 ||
		len(h.queries.waiting) > 0 || len(h.directs.waiting) > 0 || len(h.directs.underWay) > 0 ||
		h.stays > 0 || h.tasks.Pending() || !h.core.Durable():
		return held
	}
	return resting
}

// tryToLeave saves what is not saved, and leaves.
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
	default: // it takes in what has come, and is called again
		h.env.cfg.Logger.Debug("space does not leave: something has come", "space", h.space)
	}
	return false
}

// stay ends an attempt to leave that came to nothing; the next is not before until.
func (h *host) stay(until time.Duration) {
	h.lastSave, h.told = false, held
	h.stays = until
	h.env.awake.stirs(h, true)
}

// clean reports whether there is nothing to save. Of a node that is not up to date there is
// nothing to be told, whatever it has seen before.
func (s *saver) clean(h *host) bool {
	if s.saving || h.core.Seq() > s.saved {
		return false
	}
	if err := s.noted.take(h.core, h.build()); err != nil {
		h.report("checkpoint", err)
	}
	return len(s.noted) == 0
}

// empties reports whether nothing waits for the loop, and nothing of the space is left to
// do. Nothing can come while it is called with the partition's lock held.
func (h *host) empties() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := &h.inbox
	return len(in.events) == 0 && len(in.calls) == 0 && len(in.glances) == 0 && len(in.mirrored) == 0 && in.left == 0 && h.low.Load() == allDone
}

// leave takes a host out of the partition, unless somebody wants it.
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
