// Package history compares the data that a chaos run has stored with the data that it must have stored.
//
// The workload is a function of a seed (workload.go): which event a client sends as its n-th to a space,
// what its handler does, and which events the handler sends. So the checker needs no record of sent
// events, only of acknowledged ones, and knows the expected contents of every receipt.
//
// The check is one linear pass, without a solver, over the LANE streams and then the LOG
// streams (checker.go, lane.go, log.go), which are compared with the clients' records: which
// sends were acknowledged, which receipts arrived, what watches delivered (watch.go), and
// finally with the buckets (finish.go). Memory grows by some 32 bytes per event.
//
//	nothing lost       an event that was acknowledged to a client, or sent by a committed
//	                   transaction, has its receipt
//	nothing twice      and only one
//	in order           a client's events to a space, an origin's to a target, a space's to
//	                   itself are handled in the order in which they were sent
//	causality          an event that a transaction sends is handled after its commit; a commit is
//	                   made by the worker that took the space over last
//	sums               documents are the sums of the receipts, in the log and in the
//	                   buckets, and every handler read exactly the effects of earlier events
//	watches            a live query never goes back, leaves nothing out, shows nothing that
//	                   was not confirmed, and ends up at the final value
//	dead letters       there is one for each event that failed or was refused, and no other
package history
