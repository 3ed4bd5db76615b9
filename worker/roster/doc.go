// Package roster keeps the members of a fleet and the division of its partitions, as one member
// knows them: the announcements of the others, which of them are suspected, and what this member
// serves and claims. It takes the time as an argument and does no I/O; packages worker and
// ordered write and read the announcements in the bucket, and ping.
//
//	Hear, Suspect, Excuse       inputs of the member         roster.go
//	Live, Staying, Share        its view of the fleet
//	Beat, Leave                 its announcements
//	May, Hold, LetGo            claims for partitions        claims.go
//	Older, Echoed, Replaced     others under its own id      twin.go
//	Divide, Explain             the division itself          placement.go
//
// # No locks
//
// Every member computes the same division of the partitions, by rendezvous hashing, among
// the members that it believes to be live. Views may be wrong, and two members' views may
// differ: that costs a refused append and never leads to a wrong one, so suspicion may be quick. A
// member is suspected when its pings have no responder, until its beat moves again; it is gone
// when its beat has stood still for the TTL, by the observer's clock, and back when it
// beats in time again.
//
// # Handovers
//
// To keep members in agreement (docs/adr/0022), an announcement names the partitions that
// its member holds. A new owner requests a partition in the bucket and begins when it reads
// its own request there and no other member holds the partition or has requested it before; the former
// owner finishes running work, saves, and then releases the partition. Neither waits for a dead member,
// nor longer than its Patience.
package roster
