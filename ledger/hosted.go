package ledger

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Hosted has what a host requests of a core that concerns only its ledger: the lane, the runtime's role, and
// what is saved. A core that is built on a ledger embeds it.
type Hosted struct{ ledger *Ledger }

// Hosted returns the ledger's side of the interface between a core and its host.
func (l *Ledger) Hosted() Hosted { return Hosted{l} }

// Offer passes an event of the lane. It returns false if the event was left in the stream for lack of room;
// the host then reads it again, see lanes.Lane.Refill.
func (h *Hosted) Offer(ev model.Event) bool { return h.ledger.Lane().Offer(ev) }

// Reissued returns positions whose receipts the host must look up in the log before events of their origin
// are handled, see Recall; false if there are none, or not yet.
func (h *Hosted) Reissued() (model.Reissued, bool) { return h.ledger.Lane().Reissued() }

// Recall passes the events that were handled under positions which their origin has assigned again: the
// receipts are in the log. An event that arrives again under another id gets the same receipt, without being
// handled.
func (h *Hosted) Recall(of model.Reissued, handled []model.Receipt) {
	h.ledger.Lane().Recall(of, handled)
}

// LeftInStream records that the event at a lane sequence was not offered because a buffer on the way was
// full.
func (h *Hosted) LeftInStream(lane uint64) { h.ledger.Lane().LeftInStream(lane) }

// ReadLaneAfter returns the lane sequence after which events must be read and offered.
func (h *Hosted) ReadLaneAfter() uint64 { return h.ledger.Lane().ReadAfter() }

// LaneRoom returns how many events can be offered now without being left in the stream.
func (h *Hosted) LaneRoom() int { return h.ledger.Lane().Room() }

// LaneDone returns the confirmed lane sequence up to which nothing is left to do (see replica.LaneDone).
func (h *Hosted) LaneDone() uint64 { return h.ledger.Replica().LaneDone() }

// Waiting returns the number of offered events that no handler has taken yet.
func (h *Hosted) Waiting() int { return h.ledger.Lane().Waiting() + h.ledger.Lane().Held() }

// TakeOver, Attach, TermAt and Hold are those of the Ledger.
func (h *Hosted) TakeOver()        { h.ledger.TakeOver() }
func (h *Hosted) Attach()          { h.ledger.Attach() }
func (h *Hosted) TermAt(at uint64) { h.ledger.TermAt(at) }
func (h *Hosted) Hold()            { h.ledger.Hold() }

// AttemptRecorded reports whether the log has a record of the attempt at an event that is being made now: a
// host that gives the attempt up passes this on to the next incarnation (Ledger.Overran), so that the attempt
// is counted once.
func (h *Hosted) AttemptRecorded(stream, event string) bool {
	return h.ledger.AttemptRecorded(stream, event)
}

// Owned reports whether this runtime owns the space, as far as it knows, and Attached whether it takes part
// beside the owner.
func (h *Hosted) Owned() bool    { return h.ledger.Entered() && h.ledger.Role() == Owner }
func (h *Hosted) Attached() bool { return h.ledger.Entered() && h.ledger.Role() == Attached }

// Deposed reports whether another runtime has taken the space over.
func (h *Hosted) Deposed() bool { return h.ledger.Phase() == Deposed }

// Transacts reports whether transactions may be made now. After a refusal they may not, until the commits in
// the log are integrated.
func (h *Hosted) Transacts() bool { return h.ledger.Begins() }

// Settled reports whether every transaction is in the log.
func (h *Hosted) Settled() bool { return h.ledger.Settled() }

// Clock sets the wall time; see Ledger.Clock.
func (h *Hosted) Clock(wall time.Time) { h.ledger.Clock(wall) }

// Unconfirmed returns the number of appends until everything done so far is in the log, if none is refused.
func (h *Hosted) Unconfirmed() int { return h.ledger.Appends() }

// Seq returns the log sequence of the confirmed state.
func (h *Hosted) Seq() uint64 { return h.ledger.Replica().Seq }

// Confirmed returns a confirmed document and its revision: the sequence of the commit that last changed it.
func (h *Hosted) Confirmed(id string) (v model.Value, revision uint64) {
	d := h.ledger.Replica().Doc(id)
	return d.Value, d.Seq
}

// TaskDocs returns the confirmed documents of single tasks that have changed since the last call, sorted; at first, all
// that exist.
func (h *Hosted) TaskDocs() []string { return h.ledger.Replica().TaskDocs() }

// NextDue returns the confirmed time of the first event that waits for a time, in milliseconds since 1970; 0
// if none waits.
func (h *Hosted) NextDue() int64 { return h.ledger.Replica().Later.Next() }

// WaitForTime returns the confirmed number of events that wait for a time.
func (h *Hosted) WaitForTime() int { return h.ledger.Replica().Later.Len() }

// FollowsUp reports whether the log has an event that the space has sent to itself and not handled yet.
func (h *Hosted) FollowsUp() bool { return len(h.ledger.Replica().Own) > 0 }

// Checkpoint returns what must be saved to bring the saved state up to Seq, and CheckpointFailed returns one
// that could not be saved.
func (h *Hosted) Checkpoint() (replica.Checkpoint, error) { return h.ledger.Replica().Checkpoint() }
func (h *Hosted) CheckpointFailed(c replica.Checkpoint)   { h.ledger.Replica().MarkUnsaved(c) }

// MarkStored records that the mark of a checkpoint was saved, and where.
func (h *Hosted) MarkStored(m model.MarkPosition) { h.ledger.Replica().MarkStored(m) }

// MarkersPurged names marks behind which markers of deleted documents are purged from now on.
func (h *Hosted) MarkersPurged(behind []model.MarkPosition) { h.ledger.Replica().MarkersPurged(behind) }

// Floor, RaiseFloor, StoredBefore and Again are those of the replica.
func (h *Hosted) Floor() uint64         { return h.ledger.Replica().Floor() }
func (h *Hosted) RaiseFloor(rev uint64) { h.ledger.Replica().RaiseFloor(rev) }
func (h *Hosted) StoredBefore(rev uint64, revs map[string]uint64) []string {
	return h.ledger.Replica().StoredBefore(rev, revs)
}

func (h *Hosted) Again(ids []string, revs map[string]uint64) []model.StateDoc {
	return h.ledger.Replica().Again(ids, revs)
}

// ReleaseMemory releases memory that is kept for reuse; see Ledger.ReleaseMemory.
func (h *Hosted) ReleaseMemory() { h.ledger.ReleaseMemory() }
