// Package access has rules about principals: which events each may send, and which documents it may read.
//
// A deployment without rules is open: what the servers and the gateway let through is handled. With its first rule it
// is closed: an event that a client sends, and a read over HTTP or by the services of the workers, needs a rule that covers it. Rules are
// records of the deployment, which every process that hosts spaces follows; `settle allow` and `settle disallow` change
// them, and `settle who-may` prints them.
//
//	rule.go   one rule, its patterns, and its record
//	rules.go  what a set of rules decides
//	book.go   the rules of a deployment, kept up to date
//
// An event's principal is that of its id, which no client can choose freely (docs/adr/0042). What a space sends to another one, what becomes due, and what an
// operator redrives is not subject to rules: they follow from events that were. Rules are looked at when an event is taken from the
// lane, and the receipt of one that no rule covers is refused, with the reason. So a rule concerns the events that are handled from then on.
//
// See docs/adr/0049.
package access
