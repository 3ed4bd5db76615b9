package space

import (
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// What a host asks of a space that concerns its ledger alone: the lane, the tenure and the saved state, which Space embeds.

// Lane is how the host hands a space the events of its lane.
type Lane struct{ ledger *ledger.Ledger }

// Offer hands the space an event from its lane. It reports false if the event was
// left in the stream for want of room; Ready.Refill asks for it again.
func (l *Lane) Offer(ev model.Event) bool { return l.ledger.Lane().Offer(ev) }

// Reissued returns positions that the space needs to know more of before it goes on with events of their
// origin, see Recall; false if there are none, or not yet.
func (l *Lane) Reissued() (model.Reissued, bool) { return l.ledger.Lane().Reissued() }

// Recall passes to the space the events that it has handled under positions which their origin has given
// out again: the receipts are in its log. One that comes again under another id ends as it did before,
// without being handled.
func (l *Lane) Recall(of model.Reissued, handled []model.Receipt) {
	l.ledger.Lane().Recall(of, handled)
}

// LeftInStream notes that the event at a lane sequence was not offered, for want
// of room on the way; Ready.Refill will ask for it.
func (l *Lane) LeftInStream(lane uint64) { l.ledger.Lane().LeftInStream(lane) }

// ReadLaneAfter returns the lane sequence after which the space's events must be read
// and offered, so that it misses none.
func (l *Lane) ReadLaneAfter() uint64 { return l.ledger.Lane().ReadAfter() }

// LaneRoom returns how many events can be offered now without being left in the stream.
func (l *Lane) LaneRoom() int { return l.ledger.Lane().Room() }

// LaneDone returns the lane sequence up to which nothing is left to do, as far as it
// is confirmed (see replica.LaneDone).
func (l *Lane) LaneDone() uint64 { return l.ledger.Replica().LaneDone() }

// Waiting returns the number of events that were offered and that no handler has taken yet.
func (l *Lane) Waiting() int { return l.ledger.Lane().Waiting() + l.ledger.Lane().Held() }

// Tenure is how a runtime comes to run a space, beside others, and ceases to.
type Tenure struct{ ledger *ledger.Ledger }

// TakeOver asks to become the owner: the next Ready carries a takeover commit, or, if one
// is under way, the first after that was refused. An owner has nothing to ask for, nor has
// a runtime that is attached.
func (t *Tenure) TakeOver() { t.ledger.TakeOver() }

// AttemptRecorded reports whether the log has a record of the attempt at an event that is being made now: a host
// that gives the attempt up passes it on to the next life (Overrun.Recorded), so that it is counted once.
func (t *Tenure) AttemptRecorded(stream, event string) bool {
	return t.ledger.AttemptRecorded(stream, event)
}

// Attach asks to take part beside the owner, likewise (DESIGN 8.4). A runtime that is
// attached deposes no other and is deposed by none. It makes transactions like an owner;
// what keeps them apart is the compare-and-set on the head alone: the runtime that comes second is
// refused, integrates, and does again what is still to do.
func (t *Tenure) Attach() { t.ledger.Attach() }

// TermAt sets the time by the server's clock, in milliseconds since 1970: the next takeover or join
// begins a term of that time (docs/adr/0035). Without it the entry begins none, and positions that are
// given out again after the log has lost its end cannot be told apart from those of before.
func (t *Tenure) TermAt(at uint64) { t.ledger.TermAt(at) }

// Owned reports whether this runtime owns the space, as far as it knows.
func (t *Tenure) Owned() bool { return t.ledger.Entered() && t.ledger.Role() == ledger.Owner }

// Attached reports whether this runtime takes part beside the owner.
func (t *Tenure) Attached() bool { return t.ledger.Entered() && t.ledger.Role() == ledger.Attached }

// Deposed reports whether another runtime has taken the space over.
func (t *Tenure) Deposed() bool { return t.ledger.Phase() == ledger.Deposed }

// Transacts reports whether Transact may be called now. After a refusal it may not, until what stands in the log is integrated.
func (t *Tenure) Transacts() bool { return t.ledger.Begins() }

// Hold makes the space finish: it starts no more transactions, but still seals
// and confirms those that are made. There is no way back.
func (t *Tenure) Hold() { t.ledger.Hold() }

// Settled reports whether every transaction is in the log.
func (t *Tenure) Settled() bool { return t.ledger.Settled() }

// Clock tells the wall time. It is called before Settle, and whenever a transaction is to
// be made at a time. Time may go back: an event that is in the log as handled stays so, any
// other waits until its time comes again.
func (t *Tenure) Clock(wall time.Time) { t.ledger.Clock(wall) }

// Unconfirmed returns how many appends have to be confirmed until all that has been done so far
// is in the log, if none is refused.
func (t *Tenure) Unconfirmed() int { return t.ledger.Appends() }

// Saved is the state of a space that is in the log, and what is to be saved of it.
type Saved struct{ ledger *ledger.Ledger }

// Seq returns the log sequence up to which the confirmed state reaches.
func (sv *Saved) Seq() uint64 { return sv.ledger.Replica().Seq }

// Confirmed returns a document as the log has it, and its revision: the sequence of the commit
// that last changed it.
func (sv *Saved) Confirmed(id string) (v model.Value, revision uint64) {
	d := sv.ledger.Replica().Doc(id)
	return d.Value, d.Seq
}

// NextDue returns when the first of the events that wait wants to be handled, as far as that is
// in the log, in milliseconds since 1970; 0 if none waits.
func (sv *Saved) NextDue() int64 { return sv.ledger.Replica().Later.Next() }

// WaitForTime returns how many events wait for a time, as far as that is in the log.
func (sv *Saved) WaitForTime() int { return sv.ledger.Replica().Later.Len() }

// FollowsUp reports whether an event is in the log that the space has sent to itself and not
// handled yet.
func (sv *Saved) FollowsUp() bool { return len(sv.ledger.Replica().Own) > 0 }

// Checkpoint returns what must be saved to bring the saved state up to Seq.
func (sv *Saved) Checkpoint() (replica.Checkpoint, error) { return sv.ledger.Replica().Checkpoint() }

// MarkStands says that the mark of a checkpoint was saved, and where it stands.
func (sv *Saved) MarkStands(m model.Standing) { sv.ledger.Replica().MarkStands(m) }

// MarkersGo names marks behind which markers of deleted documents are purged from now on.
func (sv *Saved) MarkersGo(behind []model.Standing) { sv.ledger.Replica().MarkersGo(behind) }

// SpoilCheckpoint gives a checkpoint back that could not be saved.
func (sv *Saved) SpoilCheckpoint(c replica.Checkpoint) { sv.ledger.Replica().Spoil(c) }
