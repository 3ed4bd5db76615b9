package space

import (
	"time"

	"github.com/settlehq/settle/ledger"
)

// Ready has what a space requests of its host after Settle. The host must perform all of it, and may keep
// calling the space in the meantime.
type Ready struct {
	// Append, if not nil, must be appended to the log, and answered by exactly one Confirm or Refuse. At most
	// one is under way at any time.
	Append *Append
	// Follow lists foreign documents to begin mirroring, and Unfollow those to stop mirroring (see Mirror).
	Follow, Unfollow []Ref
	// Refill, if not nil, requests lane events after a sequence, through Offer.
	Refill *Refill
	// Wake is the time at which to call Settle again even if nothing else happens; 0 for never.
	Wake time.Duration
	// Due is the wall time at which to call Settle again, after Clock, for an event that waits for its time;
	// in milliseconds since 1970, 0 for never. It always lies ahead: if events are due already, More is set,
	// or they wait for another input of the host.
	Due int64
	// More reports that there is runnable work left: call Settle again soon.
	More bool
	// Undone are the transactions of Transact that a refusal has undone since the previous Ready.
	Undone []uint64
}

// Append is a commit on its way to the log.
type Append = ledger.Append

// Ref names a document of another space.
type Ref struct{ Space, Doc string }

// Refill requests the part of the space's lane after a sequence.
type Refill struct{ After uint64 }

// ready collects the requests. It seals the open group if no append is under way.
func (s *Space) ready() Ready {
	out := Ready{Append: s.ledger.Append(), Wake: s.wake(), Due: s.ledger.Due()}
	if a := out.Append; a != nil && a.Commit.Epoch != 0 {
		s.runner.undo.seal()
		s.runner.inv.records(a.Commit)
	}
	out.Follow, out.Unfollow = s.followChanges()
	if after, ok := s.ledger.Lane().Refill(); ok && s.ledger.Begins() && !s.cfg.WithoutEvents {
		out.Refill = &Refill{After: after}
	}
	out.More = s.ledger.Begins() && s.hasWork() || s.mayTurnOver()
	out.Undone, s.undone = s.undone, nil
	return out
}

// hasWork reports whether another Settle at the same time would do anything.
func (s *Space) hasWork() bool {
	if s.ledger.Full() {
		return false // the answer to the append under way makes room
	}
	return s.ledger.HasWork() || s.graph.queue.waits()
}

// wake returns the earliest time at which a gate opens, the event at the head of the lane may be retried, or an
// echo pair is cleared.
func (s *Space) wake() time.Duration {
	var at time.Duration
	earliest := func(t time.Duration) {
		if t > s.graph.now && (at == 0 || t < at) {
			at = t
		}
	}
	if g := s.graph.gated; len(g) > 0 {
		earliest(g[0].more.gate.heldAt)
	}
	if s.ledger.Head() != nil {
		earliest(s.ledger.NotBefore())
		earliest(s.handling.needs.failsAt())
	}
	earliest(s.runner.echoes.breaker.sweepAt())
	earliest(s.rounds.wake())
	return at
}

// followChanges returns the foreign documents that became needed or unneeded.
func (s *Space) followChanges() (follow, unfollow []Ref) {
	for _, d := range s.graph.follows {
		ref := Ref{Space: d.key.space, Doc: d.key.doc}
		switch need := d.refs > 0; {
		case need && !d.followed:
			d.followed = true
			follow = append(follow, ref)
		case !need && d.followed:
			d.followed = false
			s.graph.setLoaded(d, false)
			unfollow = append(unfollow, ref)
			s.graph.mayForget(d)
		}
	}
	s.graph.follows = s.graph.follows[:0]
	return follow, unfollow
}
