package lineage

// State is the state of an event. It follows from the log and the lane alone, so all readers of these compute
// the same.
//
//	          committed           released              handled
//	(nothing) --------> Parked ------------> Queued ------------> Handled, Failed, Rejected, Refused
//	          origin undone, or another runtime owns its space now
//	          --------> Dropped
//
// A follow-up, which a space sends to itself, is never parked: the commit that sends it also queues it.
type State string

const (
	// Parked means that the commit that sends it is in the log, but no coordinator has put it into its
	// target's lane yet.
	Parked State = "parked"
	// Queued means that it is in the lane of its space, or in the space's own queue, and has no receipt.
	Queued State = "queued"
	// Waiting means that it waits in its space for its time (docs/adr/0018).
	Waiting State = "waiting"
	// Cancelled means that it was a timer that was cancelled or set to another time; or that it has a receipt
	// with that outcome.
	Cancelled State = "cancelled"
	// Handled, Failed and Refused mean that it has a receipt with that outcome.
	Handled State = "handled"
	Failed  State = "failed"
	Refused State = "refused"
	// Rejected means that it has a receipt with that outcome.
	Rejected State = "rejected"
	// Expired means that it has a receipt with that outcome.
	Expired State = "expired"
	// Dropped means that the transaction that would have sent it is not in the log, and can no longer enter
	// it. The event does not exist, and never will.
	Dropped State = "dropped"
	// Forgotten means that its lane has passed it, and its receipt is no longer, or never was, in the log:
	// the log has been purged up to there, or the event repeats one that was handled under the same position.
	Forgotten State = "forgotten"
	// Unknown means that its lane or the log of its space cannot be read, because the stream is missing.
	Unknown State = "unknown"
)

// Ended reports whether nothing more will happen to an event in that state.
func (s State) Ended() bool { return s != Parked && s != Queued && s != Waiting && s != Unknown }
