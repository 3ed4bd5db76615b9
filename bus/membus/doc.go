// Package membus is a port.Bus in memory. It behaves exactly like package bus over JetStream, which
// bus/buscontract checks for both, and it can inject faults that a real server cannot.
//
// # Two halves
//
//	Server   the data of a JetStream deployment, and the effect of each request.
//	         A data structure: no goroutine, no clock, no randomness. Every
//	         method is one atomic step, so a simulator may call it directly and
//	         decide itself when each step happens.
//	Bus      one client of a Server: it sends requests in the order of the
//	         calls, waits out disconnections, retries when an answer is lost,
//	         and delivers subscriptions. This half has goroutines.
//
// # The path of a request
//
//	call --> queue --(link up?)--> Hook --> Server --> answer --> callback
//	           ^                    |         |
//	           |    DropRequest ----+         |
//	           +---- retried ---------------- + DropAck
//
// A client cannot know whether the request or the acknowledgement was lost, so it does the one thing that is
// right in both cases: it sends the identical request again. That is harmless because the server makes every
// change conditional: on the head of the space for an append, on the event id for a send, on the sequence for
// a document.
//
// A refused append may still be the client's own: the first try was stored and its acknowledgement lost. The
// entry right after Append.Expect decides, because only one append can ever have followed there.
//
// # What is promised beyond the contract
//
// Requests of one client reach the server in the order of the calls, except for those that a Hook loses or
// holds. Callbacks of one client are called one after the other, so a callback must not wait for its own
// client.
package membus
