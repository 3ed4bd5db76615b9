// Package ordered handles events in order and exactly once per key, on NATS JetStream,
// with a little state per key and dead letters. It is Settle without the reactive graph:
// the same streams, formats and guarantees, and handlers only.
//
//	err := ordered.Serve(ctx, bus, ordered.Config{Handlers: map[string]ordered.Handler{
//		"pay": ordered.On(func(tx *ordered.Tx, p Payment) (Balance, error) {
//			var b Balance
//			if err := tx.Read("balance", &b); err != nil {
//				return b, err
//			}
//			b.Cents += p.Cents
//			tx.Set("balance", b)
//			return b, nil
//		}),
//	}})
//
// A key is what Settle calls a space: an account, an order, a device. Events of one key are
// handled one after the other, in the order of the stream; keys do not wait for each other.
//
// # What holds
//
//   - An event is stored once: its subject ends in its id, and the stream refuses a second
//     message of a subject. Any NATS client may send it again.
//   - An event takes effect once. The handler's writes, its receipt, what it sends to other
//     keys and the cursor of the key's lane are one message in the log. It is appended on the
//     condition that the key's log has not moved on, so it is there as a whole or not at all,
//     and a second handling, by whomever, is refused.
//   - In order. A handler sees the writes of all events before its own; one that fails for
//     now holds its key, and no other, until it is tried again.
//   - Every event ends in a receipt. An error that is not Transient, a panic, a payload that
//     is not JSON, three processes that died of the event, a handler that does not
//     return (Config.RunLimit): the receipt says so, the event goes to the dead letters with its
//     payload, and the key goes on.
//   - What a handler sends leaves if and only if its transaction is in the log, and arrives
//     once, in the order of sending per pair of keys.
//
// What does not hold: a handler that calls the world outside may do so more than once, as its
// process may die between the call and the commit. It has to pass the event's id on.
//
// # How a key is served
//
// A key is the core of a host of package worker/host, the same that serves spaces with a graph: partitions, the reading of
// lanes, loops, checkpoints, limits of handlers, purging, handing over, and what a server reports of itself. The core is a
// ledger (package ledger), which is all of the protocol, the same as that of a space: the confirmed state, the queue, and
// on top of them the transactions that the log has not confirmed. One append per key is under way; what is handled
// meanwhile goes with the next one (group commit).
//
//	the log accepts    what was in the append is confirmed
//	no answer          the bus sends the same message again until there is one
//	the log refuses    another process has appended. All that is not confirmed is dropped,
//	                   the log is read and integrated, and the work that is left is done again
//
// A key is taken over by a commit, like a space. A server that finds the takeover of another
// one in the log has been deposed: it drops what it had and pauses. So a process that hangs for
// an hour and then continues changes nothing.
//
// # Several processes
//
// Servers announce themselves in the deployment's bucket, divide the partitions by rendezvous hashing, and hand
// partitions over to each other (package worker/roster); one that dies is replaced by the others. More of them than
// partitions stand by. Nothing of this is a lock: two that disagree for a moment cost each
// other refused appends.
//
// The server that has partition 0 runs a coordinator (package coordinator), which releases
// what was sent to other keys and writes the dead letters. Every server answers questions for
// documents (package live), so that all of the settle command works. Where users of the NATS
// server have roles (deploy/nats), a server is a worker, with Config.Coordinated, and a
// coordinator runs beside it: no role may do what both do.
//
// # What it leaves out
//
// There are no computations, effects, timers and links. An event from outside may wait for a time, as for a
// full worker (NotBefore, docs/adr/0018); a handler cannot send one that does. A deployment that needs them later
// moves to full workers over the same data: they go on where the last commit is. Do not run
// both at a time over one deployment; it is safe, and both do each other's work again.
//
// All servers of a deployment have the same handlers: a stream without one is refused. Two
// services that know nothing of each other take two prefixes (bus.Config.Prefix).
//
// docs/coming-from-jetstream.md compares it with a consumer and a bucket by hand, docs/adr/0028 and 0038
// have the reasons for this design.
package ordered
