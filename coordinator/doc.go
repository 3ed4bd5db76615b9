// Package coordinator releases the sends of committed transactions into the lanes
// of the spaces they are for, tells spaces which of theirs were refused, keeps what
// did not end well, and answers what events have caused (package trail).
//
// A transaction's sends to other spaces lie in its commit, and so exist exactly if
// the commit is in the log. A coordinator tails the logs and puts each of them
// into its target's lane, in log order. It decides nothing:
//
//   - What it sees in the log is committed; there is nothing to confirm.
//   - A lane takes an event id once, and a target takes the positions of an origin
//     in order and once each. Releasing twice, late or out of order therefore
//     changes nothing, and any number of coordinators may do it at the same time.
//   - It has no state but the position it has reached, which may be lost or old:
//     then it releases again what has been released.
//
// What is lost when no coordinator runs is time, nothing else.
//
// # What does not arrive
//
//	the lane is full          it waits for room, and the log behind it with it: the
//	                          send is committed, and a full lane is nobody's refusal
//	no lane will ever take    a tombstone takes its place: the same id and position,
//	it (it is too large)      no payload, and why. The target refuses it, so nothing
//	                          waits behind a gap
//	the target refuses it     the origin gets a notice, an event of the stream
//	(no handler, unreadable,  model.Undelivered. It comes from no transaction, so a
//	a tombstone)              notice that is refused is not noticed again
//
// That an event was refused is in the log of its target, and the coordinator that
// tails that log tells the origin; the id of the notice follows from the send's, so
// that telling twice is one event.
//
// # What did not end well
//
// Of every failed or refused receipt that it comes upon, a coordinator writes a dead
// letter, with the payload, which outlives the lane. There is one per event, whoever
// writes it; docs/adr/0014 says why only those are written. A letter that the store does
// not take, for want of room or of the right, is offered again for ever: the position
// waits for it, and behind a thousand of them so do the releases. So their stream has no
// limit of its own.
//
//	log of partition p ---> decode ---> Send, pipelined ---> lanes of all partitions
//	                          |           |
//	                          |           +--- all before it are stored ---> position
//	                          +---> Bury, in order ---> dead letters
package coordinator
