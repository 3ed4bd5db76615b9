package space

import (
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// The parts of a space that a host needs and that concern its ledger alone: lane, tenure and saved state. Space
// embeds them.

// Lane is the host's access to the lane of a space.
type Lane struct{ ledger *ledger.Ledger }

// Offer passes the space an event from its lane. It returns false if the event was left in the stream for lack
// of room; Ready.Refill requests it again.
func (l *Lane) Offer(ev model.Event) bool { return l.ledger.Lane().Offer(ev) }

// Reissued returns positions that the space must have recalled (see Recall) before it continues with events of
// their origin; false if there are none at present.
func (l *Lane) Reissued() (model.Reissued, bool) { return l.ledger.Lane().Reissued() }

// Recall passes the space the events that it has handled under reissued positions, with the receipts from its
// log. An event that returns under another id ends as it did before, without being handled.
func (l *Lane) Recall(of model.Reissued, handled []model.Receipt) {
	l.ledger.Lane().Recall(of, handled)
}

// LeftInStream records that the event at a lane sequence was not offered, for lack of room on the way;
// Ready.Refill will request it.
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

// Tenure is how a runtime begins and ends to run a space, beside others.
type Tenure struct{ ledger *ledger.Ledger }

// TakeOver requests ownership: the next Ready carries a takeover commit, or, if an append is under way, the
// first one after that was refused. It has no effect in an owner or an attached runtime.
func (t *Tenure) TakeOver() { t.ledger.TakeOver() }

// AttemptRecorded reports whether the log has a record of the current attempt at an event. A host that abandons
// the attempt passes this on in Overrun.Recorded, so that the attempt is counted once.
func (t *Tenure) AttemptRecorded(stream, event string) bool {
	return t.ledger.AttemptRecorded(stream, event)
}

// Attach requests to take part beside the owner, with a commit like TakeOver's. An attached runtime deposes no
// other and is not deposed. It makes transactions like an owner; only the compare-and-set on the head keeps
// them apart: the runtime that comes second is refused, integrates, and repeats the remaining work.
func (t *Tenure) Attach() { t.ledger.Attach() }

// TermAt sets the time by the server's clock, in milliseconds since 1970: the next takeover or join begins a
// term of that time (docs/adr/0035). Without it the entry begins no term, and positions that are reissued after
// the log has lost its end cannot be distinguished from the former ones.
func (t *Tenure) TermAt(at uint64) { t.ledger.TermAt(at) }

// Owned reports whether this runtime owns the space, as far as it knows.
func (t *Tenure) Owned() bool { return t.ledger.Entered() && t.ledger.Role() == ledger.Owner }

// Attached reports whether this runtime takes part beside the owner.
func (t *Tenure) Attached() bool { return t.ledger.Entered() && t.ledger.Role() == ledger.Attached }

// Deposed reports whether another runtime has taken the space over.
func (t *Tenure) Deposed() bool { return t.ledger.Phase() == ledger.Deposed }

// Transacts reports whether Transact may be called now. After a refusal it may not, until the commits in the
// log are integrated.
func (t *Tenure) Transacts() bool { return t.ledger.Begins() }

// Hold ends the space in good order: it starts no more transactions, but still seals and confirms existing
// ones. It cannot be reversed.
func (t *Tenure) Hold() { t.ledger.Hold() }

// Settled reports whether every transaction is in the log.
func (t *Tenure) Settled() bool { return t.ledger.Settled() }

// Clock sets the wall time. It is called before Settle, and before a transaction that needs a time. Time may go
// back: an event that is in the log as handled stays handled, any other waits until its time comes again.
func (t *Tenure) Clock(wall time.Time) { t.ledger.Clock(wall) }

// Unconfirmed returns how many appends have to be confirmed until all that has been done so far
// is in the log, if none is refused.
func (t *Tenure) Unconfirmed() int { return t.ledger.Appends() }

// Saved is the confirmed state of a space, and the part of it that has to be saved.
type Saved struct{ ledger *ledger.Ledger }

// Seq returns the log sequence up to which the confirmed state reaches.
func (sv *Saved) Seq() uint64 { return sv.ledger.Replica().Seq }

// Confirmed returns the confirmed value of a document, and its revision: the sequence of the commit that last
// changed it.
func (sv *Saved) Confirmed(id string) (v model.Value, revision uint64) {
	d := sv.ledger.Replica().Doc(id)
	return d.Value, d.Seq
}

// NextDue returns the time of the first event that waits for its time, according to the log, in milliseconds
// since 1970; 0 if none waits.
func (sv *Saved) NextDue() int64 { return sv.ledger.Replica().Later.Next() }

// WaitForTime returns the number of events that wait for a time, according to the log.
func (sv *Saved) WaitForTime() int { return sv.ledger.Replica().Later.Len() }

// FollowsUp reports whether the log has an event that the space has sent to itself and not handled yet.
func (sv *Saved) FollowsUp() bool { return len(sv.ledger.Replica().Own) > 0 }

// Checkpoint returns the changes since the saved state, up to Seq.
func (sv *Saved) Checkpoint() (replica.Checkpoint, error) { return sv.ledger.Replica().Checkpoint() }

// MarkStands records that the mark of a checkpoint was saved, and its place.
func (sv *Saved) MarkStands(m model.Standing) { sv.ledger.Replica().MarkStands(m) }

// MarkersGo announces that markers of deleted documents before these marks are about to be purged.
func (sv *Saved) MarkersGo(behind []model.Standing) { sv.ledger.Replica().MarkersGo(behind) }

// SpoilCheckpoint returns a checkpoint that could not be saved.
func (sv *Saved) SpoilCheckpoint(c replica.Checkpoint) { sv.ledger.Replica().Spoil(c) }
