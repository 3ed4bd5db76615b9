// Package lookup reads the log: how an event has ended, what sent it, what a document is and
// becomes, what waits in a space. It only reads, needs a bus and no worker.
//
//	FindReceipt, FindSent, Receipts    how events have ended          receipts.go, list.go
//	FindOrigin                         what has sent one              origin.go
//	FindWaiting, ReadWaiting           what waits for a time          later.go, contents.go
//	Read, Follow, Changes              a document                     document.go
//	ReadContents                       all of a space                 contents.go
//
// # The log is the index
//
// There is no separate index of receipts (docs/adr/0015, docs/adr/0014). Every commit contains the
// lane cursor, which only grows, and the id of an event that a transaction sent names the
// transaction: both are found by bisection (log.go), in about log2 of the log's length reads.
//
// # A checkpoint and the log after it
//
// A space is read from its checkpoint and the log after it; the log may be purged up to the
// checkpoint meanwhile: see gaps.go. Workers load spaces by the same rule.
//
// # How current it is
//
// A reader sees the log at least up to its head as the leader knew it. A leader that does not know
// yet that it is deposed may be behind: a caller that has seen more passes its sequence
// (FindReceiptUpTo), and one that must not miss anything reads again after port.StaleLeader.
// Derived documents are as they were when they were last needed: bringing them up to date takes a
// worker (Watch and Query of package worker).
package lookup
