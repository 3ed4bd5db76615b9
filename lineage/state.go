package lineage

// State is what has become of an event so far. The log, the lane and nothing else say
// which: whoever reads them comes to the same.
//
//	          committed           released              handled
//	(nothing) --------> Parked ------------> Queued ------------> Handled, Failed, Refused
//	          origin undone, or another runtime owns its space now
//	          --------> Dropped
//
// A follow-up, which a space sends to itself, is never parked: it is queued by the
// commit that sends it.
type State string

const (
	// Parked: the commit that sends it is in the log, and no coordinator has put it
	// into its target's lane yet.
	Parked State = "parked"
	// Queued: it lies in the lane of its space, or in the space's own queue, and has no
	// receipt.
	Queued State = "queued"
	// Waiting: it waits in its space until its time has come (docs/adr/0018).
	Waiting State = "waiting"
	// Cancelled: it was a timer, and was set to another time or taken back; or it has that
	// receipt.
	Cancelled State = "cancelled"
	// Handled, Failed and Refused: it has that receipt.
	Handled State = "handled"
	Failed  State = "failed"
	Refused State = "refused"
	// Expired: it has that receipt.
	Expired State = "expired"
	// Dropped: the transaction that would have sent it is not in the log, and cannot
	// come into it any more. The event never was, and never will be.
	Dropped State = "dropped"
	// Forgotten: its lane has passed it, and its receipt is no longer, or never was, in
	// the log: the log has been purged up to there, or it repeats an event that was
	// handled under the same position.
	Forgotten State = "forgotten"
	// Unknown: its lane or the log of its space cannot be read, because that stream is not there.
	Unknown State = "unknown"
)

// Ended reports whether nothing more will happen to an event in that state.
func (s State) Ended() bool { return s != Parked && s != Queued && s != Waiting && s != Unknown }
