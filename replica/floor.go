package replica

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// A document that was deleted is gone from its bucket once its marker is purged. But a server that is killed may
// have earlier values of the key in its files, and restore the last of them: a value that another one has replaced is
// not noted as removed, and a marker that was purged is. So before it purges markers, an owner stores those documents
// again that exist and were stored before the markers. From then on every document that exists is stored at the
// floor or after it, marks name the floor, and what is stored before the floor was deleted (see stale).

// Floor returns the revision at or after which every document is stored that exists, 0 if none is known.
func (r *Replica) Floor() uint64 { return r.floor }

// RaiseFloor records that no document that exists is stored before a revision. Every later checkpoint contains it.
func (r *Replica) RaiseFloor(rev uint64) { r.floor = max(r.floor, rev) }

// StoredBefore returns the documents that exist and are stored before a revision, sorted, except for those that the next checkpoint
// has in any case. revs are the revisions at which documents are stored.
func (r *Replica) StoredBefore(rev uint64, revs map[string]uint64) (ids []string) {
	for id, d := range r.docs { // any order: sorted below
		if !d.Value.IsAbsent() && !r.dirty[id] && revs[id] < rev {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Again returns documents (of StoredBefore) to be stored once more.
func (r *Replica) Again(ids []string, revs map[string]uint64) (docs []model.StateDoc) {
	for _, id := range ids {
		d := r.docs[id]
		if revs[id] == 0 {
			continue
		}
		if d.first == 0 {
			d.first = revs[id]
			r.docs[id] = d
		}
		s := stateDoc(id, d)
		s.Seq, s.Kept = r.Seq, model.Kept{Rev: d.first, Seq: d.Seq}
		docs = append(docs, s)
	}
	return docs
}
