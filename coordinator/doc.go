// Package coordinator releases the sends of committed transactions into the lanes of their target
// spaces, notifies spaces of refused sends, stores dead letters, and answers what events have
// caused (package history).
//
// A transaction's sends to other spaces are part of its commit, and so exist if and only if the
// commit is in the log. A coordinator tails the logs and puts each of them into its target's lane,
// in log order. It decides nothing:
//
//   - An entry of the log is committed; there is nothing to confirm.
//   - A lane accepts an event id once, and a target handles the positions of an origin in order and
//     once each. Releasing twice, late or out of order therefore changes nothing, and any number of
//     coordinators may do it at the same time.
//   - Its only state is the position that it has reached, which may be lost or old: then it repeats
//     releases.
//
// While no coordinator runs, sends are delayed; nothing is lost.
//
// # What is not delivered
//
//	the lane is full          the send waits for room, and the rest of the log waits
//	                          with it: it is committed, and a full lane does not refuse
//	                          it for good
//	no lane will ever accept  a tombstone takes its place: the same id and position,
//	it (it is too large)      no payload, and the reason. The target refuses it, so
//	                          nothing waits behind a gap
//	the target refuses it     the origin gets a notice, an event of the stream
//	(no handler, unreadable,  model.Undelivered. It comes from no transaction, so a
//	a tombstone)              refused notice causes no further notice
//
// The refusal of an event is in the log of its target, and the coordinator that tails that log
// notifies the origin; the id of the notice follows from the send's, so that repeated notices are
// one event.
//
// # Dead letters
//
// For every failed or refused receipt in a log, a coordinator writes a dead letter with the
// payload, which outlives the lane. There is one per event, however many coordinators write it;
// docs/adr/0014 explains why only those outcomes have letters. A letter that the store rejects, for
// lack of space or permission, is retried forever: the position waits for it and, after a thousand
// of them, so do the releases. Their stream therefore has no limit by default.
//
//	log of partition p ---> decode ---> Send, pipelined ---> lanes of all partitions
//	                          |           |
//	                          |           +--- all before it are stored ---> position
//	                          +---> StoreDead, in order ---> dead letters
package coordinator
