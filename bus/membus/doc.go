// Package membus is a port.Bus in memory. It means exactly what package bus
// means over JetStream, which bus/buscontract checks of both, and it can be made
// to fail on purpose, which no server can.
//
// # Two halves
//
//	Server   what a JetStream deployment holds, and what one request does to it.
//	         A data structure: no goroutine, no clock, no randomness. Every
//	         method is one atomic step, so a simulator may call it directly and
//	         decide itself when each step happens.
//	Bus      one client of a Server: it carries requests there in the order of
//	         the calls, waits out disconnections, asks again when an answer is
//	         lost, and delivers what is followed. This half has goroutines.
//
// # The way of a request
//
//	call --> queue --(link up?)--> Hook --> Server --> answer --> callback
//	           ^                    |         |
//	           |    DropRequest ----+         |
//	           +---- asked again ------------ + DropAck
//
// A client never learns whether it was the request or the acknowledgement that
// was lost, so it does the one thing that is right in both cases: it sends the
// identical request again. What makes that harmless is the server's condition on
// every request that changes something: the head of the space for an append, the
// event id for a send, the sequence for a document.
//
// A refused append may still be the client's own: the first try was stored and
// its acknowledgement lost. The entry that stands right behind Append.Expect
// tells, because only one append can ever have followed there.
//
// # What is promised beyond the contract
//
// Requests of one client reach the server in the order of the calls, but for
// those that a Hook loses or holds. Callbacks of one client are called one after
// the other, so a callback must not wait for its own client.
package membus
