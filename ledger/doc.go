// Package ledger is the exactly-once protocol of one space, independent of the contents of a space: how a
// runtime enters, how it handles the events of the lane, and how it recovers when the log refuses its
// commits. It does no I/O, starts no goroutine and reads no clock: inputs are method calls, and the output is
// an Append.
//
//	log | sealed (in flight) | open |
//	    ^ replica            ^      ^ what documents show
//
// # The suffix and group commit
//
// A transaction takes effect at once for the host, and joins the open group. Append seals the group into one
// commit, unless one is in flight; the next group grows until that is answered. So at most one append is in
// flight, and all transactions made during it share the next one. A commit is a compare-and-set on the head
// of the space, and contains the receipts of the events that it decides, the events that they send, and the
// cursor of the lane after them.
//
// On Refuse the whole suffix is dropped: events return to the head of the lane, the events that they had sent
// vanish, and the host shows the confirmed documents again. Integrate applies the commits of other runtimes,
// Resume continues, and the events are handled again under fresh ids.
//
// # Phases
//
// Phase is the relation of the runtime to the log, and the table in phase.go has its transitions:
//
//	            TakeOver, Attach         Append            Confirm
//	Outside ----------------> Asking ------------> Entering --------> Serving --. Refuse
//	   ^ ^                      ^ ^                    |                | ^     v
//	   | '------- Refuse -------|-|--------------------'                | '-- Refused
//	   |                        | '-- Refuse -- Insisting               |  Resume
//	   '                        '------------ Deposed <-----------------'
//	                           TakeOver               a takeover of another runtime
//
// A runtime that is attached is never deposed (docs/adr/0013). Hold, after which no further transactions
// begin, is a switch independent of the phase, since an append in flight is answered in any phase.
//
// # Parts
//
// A Ledger is made of parts, each with the state of one concern. A part knows at most those before it in this
// table, and none knows the Ledger, which determines the order in which they take part in an operation
// (ledger.go), begins passes (pass.go), and decides what to do with an event (next.go).
//
//	clock        the time, as the host has set it
//	standing     the phase and the role (phase.go)
//	suffix       transactions that are not in the log: one commit in flight, and the open group
//	marks        cancellations (cancel.go)
//	agenda       events that wait for a time
//	head         retries, pauses and conflicts of the event at the head of the lane
//	poisonGuard  attempts that end their process, and their records in the log (poison.go)
//	outcomes     counts, and the handlings that a refusal has undone
//
// The confirmed state is a replica.Replica, with the checkpoint and its marks; a lanes.Lane is the queue of
// events, with the receipts that Recall passes to it; a lineage.Registry has the sends of undecided
// transactions.
//
// # The head of the lane
//
// Next takes the next step for the event at the head of the lane and decides all possible outcomes. An event
// with a transient error is retried, within a budget and after a delay; one whose attempts are undone by
// other runtimes' commits, without limit; one whose handler ends its process, a few times (see poison.go and
// docs/adr/0016). An event that must not be handled before a time waits in the state of the space (see
// agenda.go and docs/adr/0018).
//
// # Duties of a host
//
// Host has the functions that the ledger calls. Attempt calls a handler over the documents that the host
// shows, and returns a Draft; Conclude completes the transaction that ends the event; Recorded applies the
// writes, with Note for each changed document. A host whose documents depend on each other also has Lacks,
// Overdue and Release, and abandons attempts that have read documents that are not up to date
// (Attempt.Waits). A host that only has handlers, such as package ordered, leaves those three, Instead and
// Later nil, and shows Ledger.Value.
//
// The host must:
//
//  1. Call Tick and Clock before calls that depend on the time.
//  2. Call BeginPass, then Next until it returns Blocked or Idle, or the ledger is Full; then Append.
//     Begin no transaction unless Begins.
//  3. Append what Append returns, with its expectation, and answer with one Confirm or one Refuse, once the
//     outcome is certain.
//  4. After Refuse, restore the confirmed values of the documents that Dropped names, pass every log entry
//     after the replica's sequence to Integrate, in order, and call Resume.
//  5. Offer lane events in order and without gaps to Lane.
package ledger
