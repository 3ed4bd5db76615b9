// Package lineage ties what a transaction launched to the transaction itself, so
// that launched work survives if and only if that transaction commits (I10, seed
// 001 section 7.6). In database terms: cascading abort.
//
// # What a transaction can launch
//
// Sends to its own space are queued at once and handled speculatively: they sit
// later in the same suffix of undecided transactions, so they ride in the same
// commit or a later one. Sends to other spaces lie inside the commit and nowhere
// else. They are parked in the plainest way there is: until the commit is in the
// log, nobody but this runtime has ever seen them.
//
//	undecided --Confirm--> committed (a coordinator releases the cross-space ones)
//	          --Cancel---> gone, follow-ups included
//
// # Ids and positions
//
// The k-th send of transaction t has the id t:k. A transaction number is never
// used twice in an epoch, so a retried handler emits fresh ids. A cross-space
// send also carries a position, dense per pair of origin and target, by which
// the target recognises repetitions for ever. Positions count only what commits:
// Cancel takes them back.
//
// If a log loses its end, positions are given out again. So each is given out in a term (SetTerm), and what a handling
// sends has a ReplayKey, which is the same when its event is handled again: by these a target tells what is new
// from what it has handled (docs/adr/0035).
package lineage

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Registry holds the launches of the undecided transactions of one space.
type Registry struct {
	space string
	// term is the one in which positions are given out now, 0 if that is not known.
	term uint64
	// outbound is the last position given out per target, undecided included.
	outbound map[string]model.Sent
	// undecided are the launches in the order of their transactions.
	undecided []launch
}

// launch is one send of an undecided transaction.
type launch struct {
	tx uint64
	to string
	id string
	// before is what was given out to the target before it.
	before model.Sent
}

// New makes a registry that goes on from the confirmed positions.
func New(space string, outbound map[string]model.Sent) *Registry {
	r := &Registry{space: space, outbound: make(map[string]model.Sent, len(outbound))}
	for to, sent := range outbound { // any order: a copy
		r.outbound[to] = sent
	}
	return r
}

// SetTerm says in which term positions are given out from now on: that of the last takeover or join in the log, 0 if it
// has none.
func (r *Registry) SetTerm(term uint64) { r.term = term }

// Term is the term in which positions are given out.
func (r *Registry) Term() uint64 { return r.term }

// Launch completes the sends of transaction tx: ids for all, positions for those
// that leave the space. of is the event whose handling sends them, nil if they come of none.
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
		return // nothing could be told apart by it
	}
	var cause uint64
	if of != nil {
		cause = of.CauseKey()
	}
	model.KeySends(cause, sends)
}

// place gives a send the position behind the last one.
func (r *Registry) place(s *model.Send, before model.Sent) {
	s.Position, s.Term, s.PrevTerm = before.Position+1, r.term, 0
	if r.term > 0 && r.term != before.Term {
		s.PrevTerm = max(before.Term, model.NoTerm)
	}
	r.outbound[s.To] = model.Sent{Position: s.Position, Term: s.Term}
}

// Revoke takes back the launches of tx, the latest transaction: it turned out that
// it cannot commit.
func (r *Registry) Revoke(tx uint64) {
	for len(r.undecided) > 0 && r.undecided[len(r.undecided)-1].tx == tx {
		last := r.undecided[len(r.undecided)-1]
		r.takeBack(&last)
		r.undecided = r.undecided[:len(r.undecided)-1]
	}
}

// takeBack makes the position of the last launch one that is free.
func (r *Registry) takeBack(l *launch) {
	if l.to != r.space {
		r.outbound[l.to] = l.before
	}
}

// Confirm forgets the launches of transactions up to tx: they are committed.
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

// Cancel drops the launches of every undecided transaction, takes their positions
// back, and returns the ids of the follow-ups that must not be handled.
func (r *Registry) Cancel() (followUps map[string]bool) {
	followUps = map[string]bool{}
	for _, l := range slices.Backward(r.undecided) {
		if l.to == r.space {
			followUps[l.id] = true
		}
		r.takeBack(&l)
	}
	r.undecided = nil
	return followUps
}

// Integrate takes in the sends of another runtime's commit: their positions are
// taken. A takeover or a join begins another term. Nothing may be undecided.
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
