// Package model defines the vocabulary of all other packages: names, addresses, values, events, commits and
// receipts. It contains the rules that concern a single one of them (a name is valid, two values are equal, a
// commit encodes to these bytes); their interaction is the subject of other packages.
//
// # Terms
//
//	space       one tenant, airport, device, agent: the unit of ordering and of
//	            ownership. All its commits are strictly serial.
//	partition   a fixed slice of all spaces: PartitionOf(space, n).
//	document    one JSON value of a space, addressed by (space, id).
//	address     (space, document, path): a place inside a document.
//	link        a value that points to an address: Link.
//	event       a request to change a space, handled exactly once, named by an id
//	            that is unique within its space.
//	stream      the name under which a space's handler for a kind of event is
//	            registered. (JetStream streams are always called by their full
//	            names, LANE and LOG.)
//	commit      what one runtime appended to a space's log in one message: its
//	            transactions in order, and the lane cursor after them.
//	transaction one run of a handler or a computation: its writes, its receipt,
//	            its sends.
//	receipt     the result document of one handling, created by the handler's own
//	            commit. Its existence is the proof that the event took effect.
//	send        an event that a transaction emitted. It exists if and only if the
//	            commit that carries it is in the log.
//
// # Identity
//
// Taking a space over is itself a commit; the log sequence of that commit is the owner's epoch. A transaction
// is (space, epoch, n), unique even after a crash without a durable counter, and an event that it sends is
// (transaction, k). Minting an id needs neither a clock nor a random number.
package model
