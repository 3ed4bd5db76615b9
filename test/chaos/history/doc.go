// Package history holds what a chaos run has stored against what it must have stored.
//
// The workload is a function of a seed (workload.go): which event a client sends as its
// n-th to a space, what its handler does, what that sends on. So the checker needs no
// record of what was sent, only of what was acknowledged, and knows for every receipt what
// must stand in it.
//
// The check is one linear pass, without a solver, over the LANE streams and then the LOG
// streams (checker.go, lane.go, log.go), beside which it holds the clients' records: which
// sends were acknowledged, which receipts were seen, what watches delivered (watch.go), and
// in the end what the buckets hold (finish.go). Memory grows with some 32 bytes per event.
//
//	nothing lost       what was acknowledged to a client, or sent by a committed
//	                   transaction, has its receipt
//	nothing twice      and only one
//	in order           a client's events to a space, an origin's to a target, a space's to
//	                   itself are handled in the order in which they were sent
//	causality          what a transaction sends is handled behind its commit; a commit is
//	                   made by whoever took the space over last
//	sums               documents are what the receipts add up to, in the log and in the
//	                   buckets, and every handler saw exactly what was handled before
//	watches            a live query never goes back, leaves nothing out, shows nothing that
//	                   was not confirmed, and ends up at the final value
//	dead letters       there is one for each event that did not end well, and no other
package history
