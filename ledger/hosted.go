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

// Offer hands the space an event from its lane. It reports false if the event was
// left in the stream for want of room; the host asks for it again.
func (h *Hosted) Offer(ev model.Event) bool { return h.ledger.Lane().Offer(ev) }

// Reissued returns positions that the space needs to know more of before it goes on with events of their
// origin, see Recall; false if there are none, or not yet.
func (h *Hosted) Reissued() (model.Reissued, bool) { return h.ledger.Lane().Reissued() }

// Recall passes to the space the events that it has handled under positions which their origin has given
// out again: the receipts are in its log. One that comes again under another id ends as it did before,
// without being handled.
func (h *Hosted) Recall(of model.Reissued, handled []model.Receipt) {
	h.ledger.Lane().Recall(of, handled)
}

// LeftInStream notes that the event at a lane sequence was not offered, for want
// of room on the way; the host will ask for it.
func (h *Hosted) LeftInStream(lane uint64) { h.ledger.Lane().LeftInStream(lane) }

// ReadLaneAfter is the lane sequence after which the space's events must be read
// and offered, so that it misses none.
func (h *Hosted) ReadLaneAfter() uint64 { return h.ledger.Lane().ReadAfter() }

// LaneRoom is how many events can be offered now without being left in the stream.
func (h *Hosted) LaneRoom() int { return h.ledger.Lane().Room() }

// LaneDone is the lane sequence up to which nothing is left to do, as far as it
// is confirmed (see replica.LaneDone).
func (h *Hosted) LaneDone() uint64 { return h.ledger.Replica().LaneDone() }

// Waiting is the number of events that were offered and that no handler has taken yet.
func (h *Hosted) Waiting() int { return h.ledger.Lane().Waiting() + h.ledger.Lane().Held() }

// TakeOver asks to become the owner: the next append is a takeover, or, if one
// is under way, the first after that was refused. An owner has nothing to ask for, nor has
// a runtime that is attached.
func (h *Hosted) TakeOver() { h.ledger.TakeOver() }

// AttemptRecorded reports whether the log has a record of the attempt at an event that is being made now: a host
// that gives the attempt up passes it on to the next life (Overrun.Recorded), so that it is counted once.
func (h *Hosted) AttemptRecorded(stream, event string) bool {
	return h.ledger.AttemptRecorded(stream, event)
}

// Attach asks to take part beside the owner, likewise (DESIGN 8.4). A runtime that is
// attached deposes no other and is deposed by none. It makes transactions like an owner;
// what keeps them apart is the compare-and-set on the head alone: the runtime that comes second is
// refused, integrates, and does again what is still to do.
func (h *Hosted) Attach() { h.ledger.Attach() }

// TermAt sets the time by the server's clock, in milliseconds since 1970: the next takeover or join
// begins a term of that time (docs/adr/0035). Without it the entry begins none, and positions that are
// given out again after the log has lost its end cannot be told apart from those of before.
func (h *Hosted) TermAt(at uint64) { h.ledger.TermAt(at) }

// Owned reports whether this runtime owns the space, as far as it knows.
func (h *Hosted) Owned() bool { return h.ledger.Entered() && h.ledger.Role() == Owner }

// Attached reports whether this runtime takes part beside the owner.
func (h *Hosted) Attached() bool { return h.ledger.Entered() && h.ledger.Role() == Attached }

// Deposed reports whether another runtime has taken the space over.
func (h *Hosted) Deposed() bool { return h.ledger.Phase() == Deposed }

// Transacts reports whether Transact may be called now. After a refusal it may not, until what stands in the log is integrated.
func (h *Hosted) Transacts() bool { return h.ledger.Begins() }

// Hold makes the space finish: it starts no more transactions, but still seals
// and confirms those that are made. There is no way back.
func (h *Hosted) Hold() { h.ledger.Hold() }

// Settled reports whether every transaction is in the log.
func (h *Hosted) Settled() bool { return h.ledger.Settled() }

// Clock tells the wall time. It is called before Settle, and whenever a transaction is to
// be made at a time. Time may go back: an event that is in the log as handled stays so, any
// other waits until its time comes again.
func (h *Hosted) Clock(wall time.Time) { h.ledger.Clock(wall) }

// Unconfirmed is how many appends have to be confirmed until all that has been done so far
// is in the log, if none is refused.
func (h *Hosted) Unconfirmed() int { return h.ledger.Appends() }

// Seq is the log sequence up to which the confirmed state reaches.
func (h *Hosted) Seq() uint64 { return h.ledger.Replica().Seq }

// Confirmed is a document as the log has it, and its revision: the sequence of the commit
// that last changed it.
func (h *Hosted) Confirmed(id string) (v model.Value, revision uint64) {
	d := h.ledger.Replica().Doc(id)
	return d.Value, d.Seq
}

// NextDue is when the first of the events that wait wants to be handled, as far as that is
// in the log, in milliseconds since 1970; 0 if none waits.
func (h *Hosted) NextDue() int64 { return h.ledger.Replica().Later.Next() }

// WaitForTime is how many events wait for a time, as far as that is in the log.
func (h *Hosted) WaitForTime() int { return h.ledger.Replica().Later.Len() }

// FollowsUp reports whether an event is in the log that the space has sent to itself and not
// handled yet.
func (h *Hosted) FollowsUp() bool { return len(h.ledger.Replica().Own) > 0 }

// Checkpoint returns what must be saved to bring the saved state up to Seq.
func (h *Hosted) Checkpoint() (replica.Checkpoint, error) { return h.ledger.Replica().Checkpoint() }

// MarkStands says that the mark of a checkpoint was saved, and where it stands.
func (h *Hosted) MarkStands(m model.Standing) { h.ledger.Replica().MarkStands(m) }

// MarkersGo names marks behind which markers of deleted documents are purged from now on.
func (h *Hosted) MarkersGo(behind []model.Standing) { h.ledger.Replica().MarkersGo(behind) }

// SpoilCheckpoint gives a checkpoint back that could not be saved.
func (h *Hosted) SpoilCheckpoint(c replica.Checkpoint) { h.ledger.Replica().Spoil(c) }

// ReleaseMemory gives memory back that is kept to be used again; see Ledger.ReleaseMemory.
func (h *Hosted) ReleaseMemory() { h.ledger.ReleaseMemory() }
