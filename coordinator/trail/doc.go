// Package trail follows through the logs what an event has caused: the event, its receipt, the
// sends of that handling, their receipts, and so on. It answers what an operator asks (what did
// this request cause, what of it is still open, what has failed?) and what a program waits for.
//
// The log is the index (docs/adr/0014). Nothing is written per event to make this possible, and
// nothing is kept in memory: every answer is read from the lanes and the logs on request, so it is
// correct with any number of coordinators, and with none.
//
//	event --(lookup.FindReceipt)--> receipt --in one commit with--> sends --> events ...
//
// Only failed and refused events are written elsewhere, too: a dead letter per event, by the
// coordinator that reads the receipt first.
package trail
