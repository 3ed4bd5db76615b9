// Package wire stores, reads and follows the messages of JetStream streams, without interpreting them. It has
// the names of their subjects and headers; package bus interprets the headers.
//
//	Link      one connection: names, requests and reads, repeated until there is an answer
//	Streams   on top of that: messages are stored until there is a definite answer, streams are followed in
//	          order, and a store that has gone back to an earlier state is detected
//
// A message to be stored is a Task: it is sent again until its answers, or a check of the stream, show
// whether it is stored. Past is the memory of the newest known message of each stream: until a stream that
// may have gone back is compared with it, nothing is stored there.
package wire
