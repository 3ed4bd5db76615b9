// Package lookup says what the log has: how an event has ended, what has sent it, what a
// document is and becomes, what waits in a space. It reads, and takes part in nothing: whoever
// has a bus can ask, with no worker to answer.
//
//	FindReceipt, FindSent, Receipts    how events have ended          receipts.go, list.go
//	FindOrigin                         what has sent one              origin.go
//	FindWaiting, ReadWaiting           what waits for a time          later.go, contents.go
//	Read, Follow, Changes              a document                     document.go
//	ReadContents                       all of a space                 contents.go
//
// # The log is the index
//
// No index of receipts is kept (docs/adr/0015, docs/adr/0014). Every commit carries the cursor
// of the lane, which only grows, and the id of what a transaction has sent names the
// transaction: both are found by bisection (log.go), in about log2 of the log's length reads.
//
// # A checkpoint and the log behind it
//
// A space is its checkpoint and the log behind it, and the log may be purged up to the
// checkpoint while it is read: see gaps.go. Workers load spaces by the same rule.
//
// # How far it reaches
//
// A reader sees the log up to its head as the leader knew it, or further. A leader that does
// not know yet that it is deposed may be behind: who has seen more says so
// (FindReceiptUpTo), and who must not miss anything asks once more (port.StaleLeader).
// Derived documents are as they were when they were last needed: to have them up to date is a
// worker's business (Watch and Query of package worker).
package lookup
