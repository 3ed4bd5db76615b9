package ledger

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Hosted is what a host asks of a core that concerns its ledger alone: the lane, how it takes part, and what is saved.
// A core that stands on a ledger embeds it.
type Hosted struct{ ledger *Ledger }

// Hosted returns the ledger as the host of its core sees it.
func (l *Ledger) Hosted() Hosted { return Hosted{l} }

// Offer passes an event of the lane. It returns false if the event was left in the stream for want of room; the host
// then reads it again, see lanes.Lane.Refill.
func (h *Hosted) Offer(ev model.Event) bool { return h.ledger.Lane().Offer(ev) }

// Reissued returns positions of which the log has to be read before events of their
// origin are handled, see Recall; false if there are none, or not yet.
func (h *Hosted) Reissued() (model.Reissued, bool) { return h.ledger.Lane().Reissued() }

// Recall passes the events that were handled under positions which their origin has assigned
// again: the receipts are in the log. One that comes again under another id ends as it did before,
// without being handled.
func (h *Hosted) Recall(of model.Reissued, handled []model.Receipt) {
	h.ledger.Lane().Recall(of, handled)
}

// LeftInStream records that the event at a lane sequence was not offered for want of room on the way.
func (h *Hosted) LeftInStream(lane uint64) { h.ledger.Lane().LeftInStream(lane) }

// ReadLaneAfter returns the lane sequence after which events must be read and offered to miss none.
func (h *Hosted) ReadLaneAfter() uint64 { return h.ledger.Lane().ReadAfter() }

// LaneRoom returns how many events can be offered now without being left in the stream.
func (h *Hosted) LaneRoom() int { return h.ledger.Lane().Room() }

// LaneDone returns the lane sequence up to which nothing is left to do, as far as that
// is confirmed (see replica.LaneDone).
func (h *Hosted) LaneDone() uint64 { return h.ledger.Replica().LaneDone() }

// Waiting returns the number of events that were offered and that no handler has taken yet.
func (h *Hosted) Waiting() int { return h.ledger.Lane().Waiting() + h.ledger.Lane().Held() }

// TakeOver, Attach, TermAt and Hold are those of the Ledger.
func (h *Hosted) TakeOver()        { h.ledger.TakeOver() }
func (h *Hosted) Attach()          { h.ledger.Attach() }
func (h *Hosted) TermAt(at uint64) { h.ledger.TermAt(at) }
func (h *Hosted) Hold()            { h.ledger.Hold() }

// AttemptRecorded reports whether the log has a record of the attempt at an event that is being made now: a host
// that gives the attempt up passes it on to the next life (Ledger.Overran), so that it is counted once.
func (h *Hosted) AttemptRecorded(stream, event string) bool {
	return h.ledger.AttemptRecorded(stream, event)
}

// Owned reports whether this runtime owns the space, as far as it knows, and Attached whether it takes part beside
// the owner.
func (h *Hosted) Owned() bool    { return h.ledger.Entered() && h.ledger.Role() == Owner }
func (h *Hosted) Attached() bool { return h.ledger.Entered() && h.ledger.Role() == Attached }

// Deposed reports whether another runtime has taken the space over.
func (h *Hosted) Deposed() bool { return h.ledger.Phase() == Deposed }

// Transacts reports whether transactions may be made now. After a refusal they may not, until the commits in the log
// are integrated.
func (h *Hosted) Transacts() bool { return h.ledger.Begins() }

// Settled reports whether every transaction is in the log.
func (h *Hosted) Settled() bool { return h.ledger.Settled() }

// Clock sets the wall time; see Ledger.Clock.
func (h *Hosted) Clock(wall time.Time) { h.ledger.Clock(wall) }

// Unconfirmed returns how many appends have to be confirmed until all that has been done so far
// is in the log, if none is refused.
func (h *Hosted) Unconfirmed() int { return h.ledger.Appends() }

// Seq returns the log sequence up to which the confirmed state reaches.
func (h *Hosted) Seq() uint64 { return h.ledger.Replica().Seq }

// Confirmed returns a document as the log has it, and its revision: the sequence of the commit
// that last changed it.
func (h *Hosted) Confirmed(id string) (v model.Value, revision uint64) {
	d := h.ledger.Replica().Doc(id)
	return d.Value, d.Seq
}

// NextDue returns when the first of the events that wait for a time is to be handled, as far as that is
// in the log, in milliseconds since 1970; 0 if none waits.
func (h *Hosted) NextDue() int64 { return h.ledger.Replica().Later.Next() }

// WaitForTime returns how many events wait for a time, as far as that is in the log.
func (h *Hosted) WaitForTime() int { return h.ledger.Replica().Later.Len() }

// FollowsUp reports whether an event is in the log that the space has sent to itself and not
// handled yet.
func (h *Hosted) FollowsUp() bool { return len(h.ledger.Replica().Own) > 0 }

// Checkpoint returns what must be saved to bring the saved state up to Seq, and SpoilCheckpoint takes one back that
// could not be saved.
func (h *Hosted) Checkpoint() (replica.Checkpoint, error) { return h.ledger.Replica().Checkpoint() }
func (h *Hosted) SpoilCheckpoint(c replica.Checkpoint)    { h.ledger.Replica().Spoil(c) }

// MarkStands records that the mark of a checkpoint was saved, and where.
func (h *Hosted) MarkStands(m model.Standing) { h.ledger.Replica().MarkStands(m) }

// MarkersGo names marks behind which markers of deleted documents are purged from now on.
func (h *Hosted) MarkersGo(behind []model.Standing) { h.ledger.Replica().MarkersGo(behind) }

// ReleaseMemory gives memory back that is kept to be used again; see Ledger.ReleaseMemory.
func (h *Hosted) ReleaseMemory() { h.ledger.ReleaseMemory() }
