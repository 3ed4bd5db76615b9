// Package lineage ties the events that a transaction sends to the transaction itself, so that they exist if
// and only if the transaction commits (I10). In database terms: cascading abort.
//
// # What a transaction can launch
//
// Sends to its own space are queued at once and handled speculatively: they come later in the same suffix of
// undecided transactions, so they are part of the same commit or a later one. Sends to other spaces are only
// in the commit. They are parked: until the commit is in the log, no other runtime has seen them.
//
//	undecided --Confirm--> committed (a coordinator releases the cross-space ones)
//	          --Cancel---> gone, follow-ups included
//
// # Ids and positions
//
// The k-th send of transaction t has the id t:k. A transaction number is never used twice in an epoch, so a
// retried handler emits fresh ids. A cross-space send also carries a position, dense per pair of origin and
// target, by which the target recognises duplicates forever. Positions count only committed sends: Cancel
// releases them.
//
// If a log loses its tail, positions are assigned again. Therefore each is assigned in a term (SetTerm), and
// an event that a handling sends has a ReplayKey, which is the same when its event is handled again. With
// these a target distinguishes new events from those that it has handled (docs/adr/0035).
package lineage

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Registry holds the launches of the undecided transactions of one space.
type Registry struct {
	space string
	// term is the term in which positions are assigned now, 0 if unknown.
	term uint64
	// outbound is the last position assigned per target, including undecided sends.
	outbound map[string]model.Sent
	// undecided are the launches in the order of their transactions.
	undecided []launch
}

// launch is one send of an undecided transaction.
type launch struct {
	tx uint64
	to string
	id string
	// before is the previous position assigned to the same target.
	before model.Sent
}

// New returns a registry that continues from the confirmed positions.
func New(space string, outbound map[string]model.Sent) *Registry {
	r := &Registry{space: space, outbound: make(map[string]model.Sent, len(outbound))}
	for to, sent := range outbound { // any order: a copy
		r.outbound[to] = sent
	}
	return r
}

// SetTerm sets the term in which positions are assigned from now on: that of the last takeover or join in the
// log, 0 if that has none.
func (r *Registry) SetTerm(term uint64) { r.term = term }

// Term returns the term in which positions are assigned.
func (r *Registry) Term() uint64 { return r.term }

// Launch completes the sends of transaction tx: ids for all, positions for those that leave the space. of is
// the event whose handling sends them, nil if there is none.
func (r *Registry) Launch(tx model.TxID, of *model.Event, sends []model.Send) {
	for k := range sends {
		s := &sends[k]
		s.ID = tx.Event(k)
		before := r.outbound[s.To]
		if s.To != r.space {
			r.place(s, before)
		}
		r.undecided = append(r.undecided, launch{tx: tx.N, to: s.To, id: s.ID, before: before})
	}
	if r.term == 0 {
		return // without a term, keys would distinguish nothing
	}
	var cause uint64
	if of != nil {
		cause = of.CauseKey()
	}
	model.KeySends(cause, sends)
}

// place assigns the next position to a send.
func (r *Registry) place(s *model.Send, before model.Sent) {
	s.Position, s.Term, s.PrevTerm = before.Position+1, r.term, 0
	if r.term > 0 && r.term != before.Term {
		s.PrevTerm = max(before.Term, model.NoTerm)
	}
	r.outbound[s.To] = model.Sent{Position: s.Position, Term: s.Term}
}

// Revoke undoes the launches of tx, the latest transaction, because it cannot commit.
func (r *Registry) Revoke(tx uint64) {
	for len(r.undecided) > 0 && r.undecided[len(r.undecided)-1].tx == tx {
		last := r.undecided[len(r.undecided)-1]
		r.release(&last)
		r.undecided = r.undecided[:len(r.undecided)-1]
	}
}

// release frees the position of the last launch.
func (r *Registry) release(l *launch) {
	if l.to != r.space {
		r.outbound[l.to] = l.before
	}
}

// Confirm discards the launches of transactions up to tx: they are committed.
func (r *Registry) Confirm(tx uint64) {
	n := 0
	for n < len(r.undecided) && r.undecided[n].tx <= tx {
		n++
	}
	r.undecided = r.undecided[n:]
	if len(r.undecided) == 0 {
		r.undecided = nil
	}
}

// Cancel drops the launches of every undecided transaction, frees their positions, and returns the ids of the
// follow-ups that must not be handled.
func (r *Registry) Cancel() (followUps map[string]bool) {
	followUps = map[string]bool{}
	for _, l := range slices.Backward(r.undecided) {
		if l.to == r.space {
			followUps[l.id] = true
		}
		r.release(&l)
	}
	r.undecided = nil
	return followUps
}

// Integrate records the sends of another runtime's commit: their positions are taken. A takeover or a join
// begins another term. No transaction may be undecided.
func (r *Registry) Integrate(c *model.Commit) {
	if (c.Takeover || c.Join) && c.Term > 0 {
		r.term = c.Term
	}
	for i := range c.Txs {
		for _, s := range c.Txs[i].Sends {
			if s.To != r.space && s.Position > r.outbound[s.To].Position {
				r.outbound[s.To] = model.Sent{Position: s.Position, Term: s.Term}
			}
		}
	}
}
