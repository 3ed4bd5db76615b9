// Package ledger is the exactly-once protocol of one space, without knowing what a space is made of: how a
// runtime enters, what it does with the events of the lane, and what becomes of that when the log has
// another answer. It does no I/O, starts no goroutine and reads no clock: inputs are method calls, and what
// is to be done about them is an Append.
//
//	log | sealed (under way) | open |
//	    ^ replica            ^      ^ what documents show
//
// # The suffix and group commit
//
// A transaction takes effect at once for the host, and joins the open group. Append seals that into one
// commit, unless one is under way; while it is, the next group grows. So at most one append is under way,
// and whatever happens meanwhile shares the one after it. A commit is a compare-and-set on the head of the
// space, and has the receipts of the events that it decides, what they send, and the cursor of the lane
// behind them.
//
// On Refuse the whole suffix is dropped: events go back to the head of the lane, what they had sent
// vanishes, and the host shows the confirmed documents again. Integrate takes in what others have
// committed, Resume goes on, and the events are handled again under fresh ids.
//
// # Phases
//
// Phase says how the runtime stands towards the log, and the table in phase.go which step leads where:
//
//	            TakeOver, Attach         Append            Confirm
//	Outside ----------------> Asking ------------> Entering --------> Serving --. Refuse
//	   ^ ^                      ^ ^                    |                | ^     v
//	   | '------- Refuse -------|-|--------------------'                | '-- Refused
//	   |                        | '-- Refuse -- Insisting               |  Resume
//	   '                        '------------ Deposed <-----------------'
//	                           TakeOver               a takeover of another runtime
//
// A runtime that is attached is never deposed (docs/adr/0013). Hold, after which no transaction is begun
// any more, is a switch beside the phase, since what is under way comes to its end in whatever phase.
//
// # The head of the lane
//
// Next does with the event at the head of the lane what is to be done with it now; all that may become of
// one is decided in that function. An event that fails in a way that may pass is tried again, within a
// budget and after a pause; one whose attempts are undone by other runtimes' commits, for as long as it
// takes; one whose handler ends its process, a few times (see poison.go and docs/adr/0016). An event that is
// not to be handled before a time waits in the state of the space (see agenda.go and docs/adr/0018).
//
// # What a host supplies
//
// Host has the functions. Attempt calls a handler over the documents that the host shows, and hands back a
// Draft; Conclude completes what ends the event; Recorded applies the writes, with Note for each document
// that has changed. A host whose documents depend on each other has Lacks, Overdue and Release besides, and
// gives up attempts that have met what is not up to date (Attempt.Waits). A host that only has handlers, as
// package ordered, leaves those, Instead and Later nil, and shows Ledger.Value.
//
// What it must do:
//
//  1. Tick and Clock before what depends on the time.
//  2. Call BeginPass, then Next until it says that the head is blocked, or the ledger is Full; then Append.
//     Begin no transaction unless Begins.
//  3. Append what Append returns, with its expectation, and answer with one Confirm or one Refuse, when the
//     answer is definite.
//  4. After Refuse, give the documents that Dropped names their confirmed values back, pass every log entry
//     behind the replica's sequence to Integrate, in order, and call Resume.
//  5. Offer lane events in order and without gaps to Lane.
package ledger
