// Package history reads the log and the lanes of a deployment: how an event ended, what sent it and what it
// caused, what a document was, is and becomes, what waits in a space, and the dead letters. It needs a
// port.Client and no worker. It writes only what a caller does about a dead letter (Redrive, Dismiss); a
// Watch with a Watcher holds a Lease, which is demand.
//
//	FindReceipt, FindSent, Receipts    how events ended               receipts.go, list.go
//	FindOrigin                         what sent an event             origin.go
//	ReadTree, WaitTree                 what an event caused           walk.go, wait.go
//	FindWaiting, ReadWaiting           what waits for a time          later.go, contents.go
//	Read, ReadAt                       a document                     document.go, at.go
//	Watch                              its changes                    watch.go
//	ReadContents, FirstOpen            all of a space                 contents.go, first.go
//	DeadLetters, OpenDead              events that failed             dead.go, bulk.go
//	Service                            the same for any NATS client   service.go
//
// Every coordinator offers Service. Since nothing is kept in memory, each of them gives the same answer, and
// a client without a coordinator computes it by itself.
//
// # The log is the index
//
// There is no separate index of receipts or of what an event caused (docs/adr/0015, docs/adr/0014). Every
// commit contains the lane cursor, which only grows, and the id of an event that a transaction sent names the
// transaction: both are found by bisection (log.go), in about log2 of the log's length reads.
//
//	event --(FindReceipt)--> receipt --in one commit with--> sends --> events ...
//
// Only failed and refused events are written elsewhere, too: as a dead letter per event, by the coordinator
// that reads the receipt first.
//
// # A checkpoint and the log after it
//
// A space is read from its checkpoint and the log after it. The log may be purged up to a newer checkpoint
// during the read: see gaps.go. Workers load spaces by the same rule.
//
// # How current it is
//
// A reader sees the log at least up to its head according to the leader. A deposed leader that does not know
// that yet may be behind: a caller that has seen more passes its sequence (FindReceiptUpTo), and one that
// must not miss anything reads again after port.StaleLeader. Derived documents are as of when they were last
// needed: bringing them up to date takes a worker (package live).
package history
