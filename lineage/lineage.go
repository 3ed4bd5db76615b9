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
package lineage

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Registry holds the launches of the undecided transactions of one space.
type Registry struct {
	space string
	// outbound is the highest position given out per target, undecided included.
	outbound map[string]uint64
	// undecided are the launches in the order of their transactions.
	undecided []launch
}

// launch is one send of an undecided transaction.
type launch struct {
	tx uint64
	to string
	id string
}

// New makes a registry that goes on from the confirmed positions.
func New(space string, outbound map[string]uint64) *Registry {
	r := &Registry{space: space, outbound: make(map[string]uint64, len(outbound))}
	for to, pos := range outbound { // any order: a copy
		r.outbound[to] = pos
	}
	return r
}

// Launch completes the sends of transaction tx: ids for all, positions for those
// that leave the space.
func (r *Registry) Launch(tx model.TxID, sends []model.Send) {
	for k := range sends {
		s := &sends[k]
		s.ID = tx.Event(k)
		if s.To != r.space {
			r.outbound[s.To]++
			s.Position = r.outbound[s.To]
		}
		r.undecided = append(r.undecided, launch{tx: tx.N, to: s.To, id: s.ID})
	}
}

// Revoke takes back the launches of tx, the latest transaction: it turned out that
// it cannot commit.
func (r *Registry) Revoke(tx uint64) {
	for len(r.undecided) > 0 && r.undecided[len(r.undecided)-1].tx == tx {
		last := r.undecided[len(r.undecided)-1]
		if last.to != r.space {
			r.outbound[last.to]--
		}
		r.undecided = r.undecided[:len(r.undecided)-1]
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
		} else {
			r.outbound[l.to]--
		}
	}
	r.undecided = nil
	return followUps
}

// Integrate takes in the sends of another runtime's commit: their positions are
// taken. Nothing may be undecided.
func (r *Registry) Integrate(c *model.Commit) {
	for i := range c.Txs {
		for _, s := range c.Txs[i].Sends {
			if s.To != r.space {
				r.outbound[s.To] = max(r.outbound[s.To], s.Position)
			}
		}
	}
}
