// Package questions answers why things in a space are as they are: why a node ran or does not run, what an event waits for, what is in the
// lane, what the graph is, and which spaces and nodes take most time.
//
// Every worker offers the service. A question goes to any of them, which passes it on to the owner of the space. The owner answers from a
// snapshot of the space's tables (docs/adr/0040) and from the log, and does not stop the space; a space that is not in memory is not loaded unless
// the question demands it. Questions and answers are bounded, and a worker answers a limited number at a time (docs/adr/0058).
package questions
