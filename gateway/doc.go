// Package gateway serves documents over HTTP: to programs, and to browsers by server-sent events.
//
//	GET /v1/spaces/{space}/documents/{document}        at the head of the log
//	GET /v1/spaces/{space}/documents/{document}/watch  then the newest value, after each change that the client keeps up with (text/event-stream)
//
// A get returns the document's JSON. The ETag is its revision and a print of its content, so If-None-Match saves the body; the
// header Settle-Stale, if present, is the reason why the value is out of date. ?timeout=5s bounds
// the wait. Errors are {"error": "..."} with a matching status.
//
// A watch is a stream for EventSource:
//
//	retry: 1000
//
//	id: 17-0c85d1734a16
//	event: value
//	data: {"n":1}
//
//	id: 18-cbf29ce48422
//	event: deleted
//	data: null
//
//	event: stale
//	data: "total could not be computed: no light"
//
//	event: current
//	data: null
//
// The id is the revision, and a print of the content that tells it from another value of the same revision
// after a store has gone back. The event stale means that the value is out of date, and why; current
// means that it is up to date (again). A browser that has lost the connection reconnects by itself
// with Last-Event-ID, and gets newer values, from this worker or another; ?from= does the same
// explicitly. An open watch is demand: the computations of the document run while it is open.
// Comments (": ") are heartbeats.
//
// # Access
//
// On a loopback address no token is required unless one is configured; then only requests for a
// host name of this machine, or a configured one, are answered: a page of another site whose name
// resolves to 127.0.0.1 is refused. Any other address requires a token, or the gateway does not
// start. The token is sent as "Authorization: Bearer", as the cookie settle_token or, since
// EventSource cannot set headers, as ?access_token=. In that form proxies see it, and it ends up in
// their logs and in browser histories. The token gives read access to all documents.
//
// With a certificate and its key the gateway speaks HTTPS, and reads both files again when they change: connections made
// from then on get the new certificate, and those that are open stay open. Without, it speaks plain HTTP.
//
// Pages of other origins are refused unless their origin is configured (CORS).
package gateway
