// Package live reads and watches documents.
//
//	get    returns a document at the head of the log. A derived document that nothing observes is
//	       computed first
//	watch  delivers the document's value, then every confirmed change, until the client is gone. A watch
//	       is demand: the computations that the document depends on run as long as it lasts
//
// Every worker answers for all spaces, as the NATS service settle-worker (Server):
//
//	watch: the values come from the log; this worker holds a lease at the owner of the space, and
//	       renews it as long as it has watchers
//	get:   only the owner knows whether a derived document is up to date, so the worker asks it
//	       (endpoint own-<worker>). After a handover it asks the new owner: the request waits and
//	       does not fail
//
// # What a watch promises
//
// Values are states, not events. A watcher gets the newest value, however old that is, and then each change,
// as long as it keeps up. A slow watcher gets the newest value when it is ready, and Previous reveals that
// others were skipped. A watch never goes back to an older value, even across interruptions (From), and it
// always delivers the last value eventually. Every single change is in the log, and in receipts.
//
// # Whether a value is up to date
//
// The log does not record that a value is out of date, because a computation fails or is held back, or
// because no worker serves the space. So each worker polls the owners of the documents that are watched
// there, every two seconds, and a new document within one. A query (to the endpoint own-<worker>) covers up
// to 256 documents, however many clients watch each, and may take a second. Documents with a known problem
// are queried apart, so that a space that does not answer delays no other. Watchers receive
//
//	stale    why the value is out of date. An error is reported at once; a transient condition
//	         (a takeover, a closed gate, a busy space) when it has lasted for 5 s without a
//	         new value
//	current  that the value is up to date: when that is first known, and again after stale
//
// After an interruption the next worker reports the status again. A query costs the owner about 1 us per
// document and 10 us per space, so 10,000 watched documents cost it from half a percent of a core (one space)
// to 5 % (a space each). An owner of a version that does not know the query reports no status.
//
// The status does not cover documents of other spaces: if a document there is out of date, one that is
// computed from it counts as current.
//
// # Departed clients
//
// Every message to a NATS client is sent as a request, so that the server's "no responders" reveals a client
// that has stopped listening. The client renews nothing. It gets a heartbeat every second, with the revision
// that it should have; after three seconds without one, or with a revision that it has not received, it
// watches again (Client.Watch does). It also watches again when the worker announces that it is leaving
// (moved).
//
// See docs/adr/0021.
package live
