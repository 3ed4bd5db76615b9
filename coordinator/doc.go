// Package coordinator releases the sends of committed transactions into the lanes
// of the spaces they are for.
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
//	log of partition p ---> decode ---> Send, pipelined ---> lanes of all partitions
//	                                      |
//	        position  <--- all before it are stored
package coordinator
