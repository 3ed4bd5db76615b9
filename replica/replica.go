// Package replica folds a log into state: the documents of a space and everything else that its commits
// determine, as of one log sequence. Owners, followers, mirrors and checkers all use this fold, so they
// cannot disagree.
//
// A replica holds confirmed state only. Transactions of the owner that are not in the log yet are an overlay
// that package space keeps beside it; undoing them drops the overlay and never restores remembered values.
//
//	checkpoint --Load--> replica --Apply(commit)--> replica --Checkpoint--> ...
package replica

import (
	"fmt"
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// Replica is the confirmed state of one space.
type Replica struct {
	Space string
	// Seq is the log sequence of the last commit applied, 0 for none. The next append must expect it.
	Seq uint64
	// Epoch is the sequence of the last takeover, Owner the runtime that made it.
	Epoch uint64
	Owner string
	// Term is the term that began with the last takeover or join, 0 if that had none.
	Term uint64
	Lives
	// Cursor, Inbound and Own are the lane's state (see lanes.State); Outbound is the last
	// position sent per target space.
	Cursor   model.Cursor
	Inbound  map[string]model.Received
	Outbound map[string]model.Sent
	Own      []model.Event
	// Later are the events that wait for their time.
	Later Later

	docs map[string]Doc
	// dirty are the documents that changed since the last Checkpoint.
	dirty     map[string]bool
	tasks     taskDocs
	positions positions
	// loaded is the standing of the mark that was loaded, before that of the mark that the owner loaded, and
	// first the revision of the owner's first mark; see stale.
	loaded, before model.MarkPosition
	first          uint64
	purged         []model.MarkPosition
	floor          uint64
}

// Doc is a document and the log sequence of the last commit that changed it.
type Doc struct {
	Value model.Value // absent if deleted
	Seq   uint64
	// first is the revision under which it was stored after its last change, 0 if it was not stored again since.
	first uint64
}

// New returns the replica of a space that has no commits.
func New(space string) *Replica {
	return &Replica{
		Space:    space,
		Inbound:  map[string]model.Received{},
		Outbound: map[string]model.Sent{},
		Later:    newLater(),
		docs:     map[string]Doc{},
		dirty:    map[string]bool{},
		tasks:    newTaskDocs(),

		positions: positions{many: manyOthers, dirty: map[int]bool{}},
	}
}

// Doc returns a document, or the zero Doc if it never existed.
func (r *Replica) Doc(id string) Doc { return r.docs[id] }

// DocIDs returns the ids of the documents that exist, sorted.
func (r *Replica) DocIDs() []string {
	ids := make([]string, 0, len(r.docs))
	for id, d := range r.docs { // any order: sorted below
		if !d.Value.IsAbsent() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Apply applies the commit at log sequence seq and returns the documents that it changed, in the order of
// their first write. Applying a commit again has no effect. An error means that this program interprets a
// write differently from the one that made it; the replica is then unchanged.
func (r *Replica) Apply(seq uint64, c *model.Commit) (changed []string, err error) {
	if seq <= r.Seq {
		return nil, nil
	}
	after := map[string]model.Value{} // of changed documents: a commit may write thousands
	for i := range c.Txs {
		for j := range c.Txs[i].Writes {
			w := &c.Txs[i].Writes[j]
			v, begun := after[w.Doc]
			if !begun {
				d := r.docs[w.Doc]
				if d.Seq >= seq {
					continue // the document was loaded from a checkpoint that includes the commit
				}
				v, changed = d.Value, append(changed, w.Doc)
			}
			if after[w.Doc], err = w.Apply(v); err != nil {
				return nil, fmt.Errorf("apply commit %s/%d, transaction %d: %w", r.Space, seq, c.Txs[i].N, err)
			}
		}
	}
	for _, id := range changed {
		r.set(id, Doc{Value: after[id], Seq: seq}, false)
	}
	r.advance(seq, c)
	return changed, nil
}

// Adopt applies the commit at seq like Apply, given the documents after it. The owner that made the commit
// has them already and so does not apply the writes twice.
func (r *Replica) Adopt(seq uint64, c *model.Commit, after map[string]model.Value) {
	for id, v := range after { // any order: each document once
		r.set(id, Doc{Value: v, Seq: seq}, true)
	}
	r.advance(seq, c)
}

// set stores a document. own reports that the owner itself has written it, in this epoch.
func (r *Replica) set(id string, d Doc, own bool) {
	if model.IsTaskDoc(id) && r.setTask(id, d, own) {
		return
	}
	r.docs[id] = d
	r.dirty[id] = true
}

// advance applies everything in a commit except its writes.
func (r *Replica) advance(seq uint64, c *model.Commit) {
	r.Seq = seq
	if c.Takeover {
		r.Epoch, r.Owner = seq, c.Runtime
		r.before, r.first = r.loaded, 0
		clear(r.tasks.fresh) // another owner may have saved them
	}
	if c.Takeover || c.Join {
		r.Term = max(r.Term, c.Term)
	}
	r.Lives.take(c)
	r.Cursor = c.Cursor
	added := 0
	for i := range c.Txs {
		tx := &c.Txs[i]
		r.settleReceipt(tx.Receipt)
		if w := tx.Later; w != nil && w.Position > 0 {
			r.handledTo(w.ID, w.Position, w.Term)
		}
		r.Lives.takeTx(tx)
		r.Later.take(seq, tx, r.Space, &added)
		r.noteSends(tx.Sends)
	}
}

func (r *Replica) settleReceipt(rc *model.Receipt) {
	switch {
	case rc == nil || rc.Slot > 0: // an event that has waited was counted when it began to
	case rc.Pos > 0:
		r.handledTo(rc.Event, rc.Pos, rc.Term)
	case rc.Lane == 0 && len(r.Own) > 0 && r.Own[0].ID == rc.Event: // the usual case; tens of thousands may be queued after it
		r.Own = r.Own[1:]
	case rc.Lane == 0:
		r.Own = slices.DeleteFunc(r.Own, func(ev model.Event) bool { return ev.ID == rc.Event })
	}
}

// handledTo records the position of a handled event from another space.
func (r *Replica) handledTo(id string, pos, term uint64) {
	ev := model.Event{ID: id, Position: pos}
	origin := ev.Origin()
	if in := r.Inbound[origin]; in.Take(pos, term) {
		r.Inbound[origin] = in
		r.positions.dirty[model.PieceOf(origin)] = true
	}
}

func (r *Replica) noteSends(sends []model.Send) {
	for i := range sends {
		s := &sends[i]
		switch {
		case s.To == r.Space && s.Slot > 0: // it waits, see Later
		case s.To == r.Space:
			r.Own = append(r.Own, s.Event())
		default:
			r.sentTo(s)
		}
	}
}

func (r *Replica) sentTo(s *model.Send) {
	if s.Position > r.Outbound[s.To].Position {
		r.Outbound[s.To] = model.Sent{Position: s.Position, Term: s.Term}
		r.positions.dirty[model.PieceOf(s.To)] = true
	}
}

// LaneDone returns the lane sequence up to which the space has no work left: every event up to it is handled,
// none is set aside, and no follow-up caused by one of them waits. Reading the lane after it finds all
// remaining work.
func (r *Replica) LaneDone() uint64 {
	done := r.Cursor.Floor
	if len(r.Cursor.Held) > 0 {
		done = min(done, r.Cursor.Held[0]-1)
	}
	for i := range r.Own {
		done = min(done, max(r.Own[i].Behind, 1)-1)
	}
	return done
}

// Clone returns an independent copy; immutable values are shared.
func (r *Replica) Clone() *Replica {
	c := *r
	c.Inbound, c.Outbound = maps.Clone(r.Inbound), maps.Clone(r.Outbound)
	c.Own, c.Cursor.Held = slices.Clone(r.Own), slices.Clone(r.Cursor.Held)
	c.Later = r.Later.clone()
	c.docs, c.dirty = maps.Clone(r.docs), maps.Clone(r.dirty)
	c.tasks = r.tasks.clone()
	c.positions.dirty = maps.Clone(r.positions.dirty)
	return &c
}
