// Package gateway offers documents over HTTP: to programs, and to browsers by server-sent
// events.
//
//	GET /v1/spaces/{space}/documents/{document}        at the head of the log
//	GET /v1/spaces/{space}/documents/{document}/watch  then the newest value, after each change that the client keeps up with (text/event-stream)
//
// A get answers with the document's JSON. The ETag is its revision, so If-None-Match spares
// the body; the header Settle-Stale says why the value is not what it should be, if that is
// so. ?timeout=5s bounds the wait. Errors are {"error": "..."} with the status that they
// deserve.
//
// A watch is what EventSource understands:
//
//	retry: 1000
//
//	id: 17
//	event: value
//	data: {"n":1}
//
//	id: 18
//	event: deleted
//	data: null
//
//	event: stale
//	data: "total could not be computed: no light"
//
//	event: current
//	data: null
//
// The id is the revision. Stale says why the value is not what it should be, and current that it
// is, or is again. A browser that has lost the connection comes back by itself with
// Last-Event-ID, and gets what is newer, from this worker or another; ?from=17 does the same
// by hand. An open watch is demand: what the document is computed from runs as long. Comments
// (": ") are heartbeats.
//
// # Who may
//
// Nobody is asked for anything on a loopback address, unless a token is set; then only
// requests for a host name that means this machine are answered, or for one that is
// configured: a page of another site that has its name resolve to 127.0.0.1 is refused. Any
// other address needs a token, or the gateway does not start. The token comes as
// "Authorization: Bearer", or as the cookie settle_token, or, since EventSource can set no
// header, as ?access_token=: that one is seen by proxies and stands in their logs and in
// browser histories. Whoever has the token reads everything. The gateway speaks plain HTTP:
// put TLS in front of it.
//
// Pages of other origins are refused, unless their origin is configured (CORS).
package gateway
