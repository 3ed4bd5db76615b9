// Package trail follows what an event has caused through the logs: the event, its
// receipt, what that handling sent, the receipts of those, and so on. It answers what
// a person asks at night (what did this click cause, what of it is still open, what
// has failed?) and what a program waits for.
//
// The log is the index (docs/adr/0014). Nothing is written per event to make this
// possible, and nothing is kept in memory: every answer is read from the lanes and the
// logs when it is asked for, so it is right however many coordinators there are, and
// with none.
//
//	event --(lookup.FindReceipt)--> receipt --in one commit with--> sends --> events ...
//
// Only what did not end well is written elsewhere too: a dead letter per event, by
// whichever coordinator comes upon the receipt first.
package trail
