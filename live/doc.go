// Package live answers questions about documents: what one is now, and what it becomes.
//
//	get    a document at the head of the log. A derived one that nobody observes is
//	       computed first, and only for that
//	watch  its value, then every confirmed change, until who asks has gone. As long as it
//	       lasts it is demand: what the document is computed from runs
//
// Every worker answers, as the NATS service settle-worker (Server), for all spaces:
//
//	watch: the values come from the log; the owner of the space is asked for demand by a
//	       lease, which this worker renews as long as somebody watches
//	get:   only the owner knows whether a derived document is up to date, so it is asked
//	       (endpoint own-<worker>), and whoever is owner then is asked again until there is
//	       an answer: a handover makes a question wait, not fail
//
// # What a watch promises
//
// Values are states, not events. One that watches gets the newest value, whatever it was
// when it began; then each change that it is quick enough for. If it is not, it gets the
// newest when it is ready, and Previous tells that there were others between. It never gets
// a value that is older than one that it had (From, after an interruption), and what stays
// is delivered in the end. Every change as such is in the log, and in receipts.
//
// # Whether a value is what it should be
//
// The log does not say that a value is old: that what the document is computed from begins to
// fail, is held back, or that nobody serves the space. So the worker that answers a watch looks
// after each document that is watched there, every two seconds, a new one within one: it asks the
// owners, one question (to the endpoint own-<worker>) for up to 256 documents, however many watch
// each of them. A question may take a second, and what is in doubt is asked for apart: a space that
// does not answer keeps no other up. Who watches is told
//
//	stale    why the value is not what it should be. An error is told when it is seen; what may pass by
//	         itself (a takeover, a gate that is closed, a space that is at work) when it has
//	         lasted for 5 s without a new value
//	current  that it is what it should be: when that is first known, and again after stale
//
// and told again, as far as it is known, by whoever answers after an interruption. An owner pays
// for a look about 1 us for a document and 10 us for its space, so 10,000 watched documents cost
// it from half a percent of a core (one space) to 5 % (a space each). An owner of a version that
// does not know the question says nothing, and so nothing is told.
//
// What is not seen: that a document of another space, which the document is computed from, is
// old there. Here it is as it was confirmed there.
//
// # Who is gone
//
// Every message to a NATS client asks for an answer that nobody is expected to give: so the
// server says at once when nobody listens any more. A client that listens renews nothing.
// It gets a heartbeat every second, with the revision that it should have: one that
// hears none for three of them, or hears of a revision that it does not have, asks again
// (Watch does). So does one that is told that the worker leaves (moved).
//
// See docs/adr/0021.
package live
