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
//   - An event takes effect once. The handler's writes, its receipt, its sends to other keys and
//     the cursor of the key's lane are one message in the log. It is appended on the condition
//     that the key's log has not grown, so it is stored as a whole or not at all, and a second
//     handling, by any process, is refused.
//   - In order. A handler sees the writes of all earlier events; a transient failure delays its
//     own key, and no other, until the retry.
//   - Every event ends in a receipt. After an error that is not Transient, a panic, a payload that
//     is not JSON, three processes that the event killed, or a handler that does not return
//     (Config.RunLimit), the receipt has the reason, the event goes to the dead letters with its
//     payload, and the key continues.
//   - What a handler sends leaves if and only if its transaction is in the log, and arrives
//     once, in the order of sending per pair of keys.
//
// One thing does not hold: a handler that calls an external service may do so more than once, since
// its process may die between the call and the commit. Pass the event's id on as an idempotency key.
//
// # How a key is served
//
// A key is a core in a host of package worker/host, which also serves spaces with a graph: partitions,
// lane reading, loops, checkpoints, limits of handlers, purging, handovers and figures are the same.
// The core is a ledger (package ledger), the protocol of a space: the confirmed state, the queue, and
// the transactions on top that the log has not confirmed. One append per key is in flight; events that
// are handled in the meantime go into the next one (group commit).
//
//	the log accepts    the content of the append is confirmed
//	no answer          the bus sends the same message again until there is one
//	the log refuses    another process has appended. All unconfirmed work is dropped, the log
//	                   is read and integrated, and the remaining work is done again
//
// A key is taken over by a commit, like a space. A server that finds the takeover of another
// one in the log has been deposed: it drops its state of the key and pauses. So a process that
// hangs for an hour and then continues changes nothing.
//
// # Several processes
//
// Servers announce themselves in the deployment's bucket, divide the partitions by rendezvous
// hashing, and hand partitions over to each other (package worker/roster); the others replace one
// that dies. Servers in excess of the number of partitions stand by. None of this is a lock: two
// servers that disagree for a moment cost each other refused appends.
//
// The server that has partition 0 runs a coordinator (package coordinator), which releases sends to
// other keys and writes the dead letters. Every server answers requests for documents (package
// live), so that the whole settle command works. Where users of the NATS server have roles
// (deploy/nats), a server is a worker, with Config.Coordinated, and a coordinator runs beside it:
// no role may do what both do.
//
// # What it leaves out
//
// There are no computations, effects, timers and links. An event from outside may be delayed, as for
// a full worker (NotBefore, docs/adr/0018); a handler cannot send a delayed one. A deployment that
// needs these later moves to full workers over the same data: they continue after the last commit.
// Do not run both over one deployment at the same time: it is safe, but each repeats the other's work.
//
// All servers of a deployment have the same handlers: a stream without one is refused. Two
// independent services use two prefixes (bus.Config.Prefix).
//
// docs/coming-from-jetstream.md compares the package with a hand-written consumer and bucket;
// docs/adr/0028 and 0038 have the reasons for this design.
package ordered
