// Package gateway serves documents over HTTP, to programs, and to browsers by server-sent events; and it takes events.
//
//	GET  /v1/spaces/{space}/documents/{document}        at the head of the log
//	GET  /v1/spaces/{space}/documents/{document}/watch  then the newest value, after each change that the client keeps up with (text/event-stream)
//	POST /v1/spaces/{space}/streams/{stream}            stores an event, with the body as its payload
//	POST /v1/streams/{stream}?spaces={pattern}          stores an event for all spaces of a pattern
//	GET  /v1/watch                                      watches any number of documents on one connection (WebSocket)
//	GET  /v1/spaces/{space}/documents                   lists documents
//	GET  /v1/spaces                                     lists spaces
//	GET  /v1/runs                                       finds runs of workflows, in one space or several
//
// and it answers questions about spaces:
//
//	GET  /v1/spaces/{space}/why/{name}                     why a node, a document or an event is as it is
//	GET  /v1/spaces/{space}/lane                           what waits, and why
//	GET  /v1/spaces/{space}/graph                          the nodes, and their edges
//	GET  /v1/spaces/{space}/log                            the newest commits
//	GET  /v1/spaces/{space}/documents/{document}/history   the past values of a document
//	GET  /v1/top                                           which spaces and nodes take most time, on all workers
//
// A get returns the document's JSON. The ETag is its revision and a print of its content, so If-None-Match saves the body; the
// header Settle-Stale, if present, is the reason why the value is out of date. ?timeout=5s bounds
// the wait. Errors are problems (RFC 9457, application/problem+json), of the types of docs/problems.md.
//
// ?path=lines&path=17 returns what is at a path in the document. With ?limit=100, ?after=KEY or ?order=desc the answer is a page of the members of
// the object, by name, or of the elements of the array there, whose keys are their indices:
//
//	200 {"revision":41,"size":3,"entries":[{"key":"a","value":1},{"key":"b","value":2}],"next":"b"}
//
// The parameter after, with the next of an answer, gets the page behind it; limit is 100, at most 1000.
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
// # Watches on a WebSocket
//
// A browser opens few connections to one server, and a watch by server-sent events needs one. On a WebSocket, the client opens and closes watches under numbers of its choice:
//
//	{"open":1,"space":"alice","document":"total","from":"16-07ee7e07b4b1"}
//	{"close":1}
//
// and gets
//
//	{"watch":1,"event":"value","id":"17-0c85d1734a16","data":{"n":1}}
//	{"watch":1,"event":"deleted","id":"18-cbf29ce48422"}
//	{"watch":1,"event":"stale","data":"total could not be computed: no light"}
//	{"watch":1,"event":"current"}
//	{"watch":1,"event":"rewound"}
//	{"watch":1,"event":"problem","data":{"type":"...","status":403,...}}
//	{"event":"heartbeat"}
//
// The parameter from, which may be left out, is the id of the last value that the client has; the events mean what they do above. A problem ends its watch: with a
// status of 500 or more, open it again. There is a heartbeat every second. A socket has at most 1000 watches, each counts as an open watch of its principal, and a principal has
// no more sockets than watches. When its token ends, a watch ends with status 401, and a socket without watches is closed. Browsers send the token as the cookie or as ?access_token=.
//
// # Events
//
// The body of a POST is JSON, of at most 1 MiB, with Content-Type: application/json; without a body the event has no payload.
// The header Idempotency-Key names the event: sending it again, to any worker, has no further effect within the
// deployment's horizon. Without it the event has a new id, which the answer names.
//
//	202 {"event":"order-17","duplicate":false}
//
// means that the event is stored and will be handled exactly once. ?after=90s has it handled after that time, ?expires=1h lets it expire.
// With ?wait=receipt the answer waits for the receipt, for 10 s or for ?timeout= (at most 1 min):
//
//	200 {"event":"order-17","duplicate":false,"outcome":"handled","result":7}
//
// The status is 422, without an "outcome", if an event was sent under that key before, with another payload: nothing is stored, and the
// earlier event counts.
//
//	422 {"type":"...#key-reused","status":422,"detail":"event order-17 to shop/pay: an event of this id was sent before, with another payload; ...",...}
//
// The status is 422 as well if the event was rejected by its handler or refused, has failed or expired, or was cancelled; "outcome" and "detail" say how and
// why. A rejection has "code" and, if its handler has given some, "data" as well:
//
//	422 {"type":"...#rejected","status":422,"detail":"no place is left","event":"order-17","duplicate":false,"outcome":"rejected","code":"full","data":{"free":0},...}
//
// The status is
// 202, with "pending", if there is no receipt by then. What is wrong with a request is said before anything is stored: 400 for
// names, parameters, JSON, and a payload that does not fit the type or the schema that the handler declares, with the place in it; 404 if the program of the space does not handle the stream, 410 for a key that carries a time beyond the horizon
// (settle.TimedID), 413 and 415 for the size and the type of the body. After a status of 500 or more, or no answer at all, the event may be
// stored: send it again with the same key.
//
// # Questions
//
// Answers are those of the commands settle why, lane, graph, log, history and top with --json, in one object: a log is {"entries": [...]}, with the
// lines of settle log, and a history {"changes": [...]}. Parameters are those of the commands: as, stream, limit, load (why); after, limit, load (lane);
// node, depth, after, limit, load (graph); document, before, limit (log); path, for each key, before, limit (history); interval (2s; 100ms to 10s),
// sort, limit (top). A log has at most 200 commits. Other parameters are refused. A gateway works on 16 questions at a time; to others, and when an answer takes
// longer than 30 s, it answers with 503 or 504.
//
// An answer shows values of many documents, so that the caller needs the right to read all of the space: the pattern SPACE/*, or */* for /v1/top.
//
// # Events for all spaces of a pattern
//
// POST /v1/streams/migrate?spaces=lot-* stores the event for each of the first 1000 spaces whose names match, once under the Idempotency-Key, which has to be there:
//
//	200 {"event":"migrate-2","sent":1000,"before":0,"next":"lot-1789"}
//
// The parameter from, with the next of an answer, goes on; without a next, all have it. A request can be repeated. Spaces that the caller may not send to, and those whose
// program refuses the event, are listed under refused, with the reason.
//
// # Lists of documents
//
// GET /v1/spaces/shop/documents?prefix=order-&after=order-17&limit=100&order=desc lists documents of a space as they are in the log, in
// the order of their names:
//
//	200 {"documents":[{"document":"order-16","revision":41,"value":{"cents":1250}}],"next":"order-16"}
//
// All parameters are optional; limit is 100, at most 1000, and order is asc or desc. The parameter after, with the next of an answer, gets
// the page behind it; without a next, the page is the last one. "derived":true marks documents that are known to be derived: they have
// the value from when they were last observed. Documents that the caller may not read are left out, and a space that does not exist has none. A
// worker answers four lists and searches at a time; beyond that the answer is 429.
//
// # Lists of spaces
//
// GET /v1/spaces?spaces=lot-*&after=lot-17&limit=100 lists the spaces of which the caller may read something, by name; the newest may be missing:
//
//	200 {"spaces":["lot-18","lot-19"],"next":"lot-19"}
//
// All parameters are optional, and those of a list of documents.
//
// # Runs
//
// GET /v1/runs?space=order-*&workflow=order&state=running&since=24h&attribute.customer=c7&limit=20 finds runs of workflows, the one
// started last first:
//
//	200 {"runs":[{"space":"order-7","run":"o7","workflow":"order","state":"running","started":1790000000000}],"searched":12,"next":"order-7.1790000000000.o7"}
//
// All parameters are optional. space is a name or a pattern, and can be repeated; without it, all spaces are searched. before and since are times (RFC 3339)
// or durations before now; the value of an attribute is JSON, or else a text. The parameter after, with the next of an answer, gets the page behind it.
// Spaces whose list of runs (document runs, and runs_attributes_0 to runs_attributes_3) the caller may not read are left out. A worker answers
// four searches at a time; beyond that the answer is 429.
//
// # Access
//
// On a loopback address without a token and without principals, all programs of this machine may read and send. Then only requests
// for a host name of this machine, or a configured one, are answered: a page of another site whose name
// resolves to 127.0.0.1 is refused. Any other address requires a token or principals, or the gateway does not
// start. A token is sent as "Authorization: Bearer", as the cookie settle_token or, since
// EventSource cannot set headers, as ?access_token=, which a POST does not accept. In that form proxies see it, and it ends up in
// their logs and in browser histories.
//
// The token of the configuration gives read access to all documents, and sends nothing. Principals have tokens of their own, in a
// file of which the gateway keeps the SHA-256 sums only, and which it reads again when it changes:
//
//	{"principals": [{
//	  "name": "shop",
//	  "tokens_sha256": ["2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"],
//	  "send": ["cart-*/add", "cart-*/pay"],
//	  "read": ["cart-*/total"],
//	  "requests_per_second": 100, "requests_at_a_time": 64, "watches": 64
//	}]}
//
// The file may name an identity provider, whose tokens (JWT) stand for the principal in them:
//
//	{"jwt": {"jwks_file": "keys.json", "issuer": "https://id.example", "audience": "settle", "principal_claim": "sub"}, "principals": [...]}
//
// A token is accepted if one of the public keys of the file has signed it (RS, PS, ES or EdDSA), issuer and audience are those, and it has an end
// that is not over. The claim, by default sub, is the name of the principal: its entry, which needs no tokens then, says what it may do, or else the rules do.
// The file of keys is read again when it changes.
//
// Once the deployment has a rule about access (package access), it decides as well: what no rule allows is answered with 403. The entry of a
// principal without "send" and "read" then leaves its rights to the rules, and the token of the configuration is subject to the rule about
// what has no principal.
//
// A pattern is SPACE/STREAM or SPACE/DOCUMENT, in which * stands for any characters of a name; what no pattern covers is answered
// with 403. The limits are those of one worker, and their defaults are the figures above; beyond them the answer is 429, with
// Retry-After. The principal is part of the ids of its events, which receipts and trees show and handlers see as Event.By: those of
// two principals are two events, even if both have chosen the same key.
//
// With a certificate and its key the gateway speaks HTTPS, and reads both files again when they change: connections made
// from then on get the new certificate, and those that are open stay open. Without, it speaks plain HTTP.
//
// Pages of other origins are refused unless their origin is configured (CORS).
package gateway
