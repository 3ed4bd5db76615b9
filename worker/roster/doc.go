// Package roster is who is in a fleet and which of the partitions is whose, as one member
// knows it: what the others have said, who among them is to be suspected, what this one
// serves and asks for. It takes the time as an argument and does no I/O; packages worker and
// ordered carry its words to and from the bucket, and ping.
//
//	Hear, Suspect, Excuse       what the member learns       roster.go
//	Live, Staying, Share        what it believes
//	Beat, Leave                 what it says
//	May, Hold, LetGo            claims for partitions        claims.go
//	Older, Echoed, Replaced     others under its own id      twin.go
//	Divide, Explain             the division itself          placement.go
//
// # Nothing of it is a lock
//
// Every member computes the same division of the partitions, by rendezvous hashing, among
// those that it believes to be there. Beliefs may be wrong, and two members may believe
// differently: that costs a refused append, never a wrong one, so suspicion may be quick. A
// member is suspected when nobody answers its pings, until its beat moves again; it is gone
// when its beat has stood still for the TTL, by the clock of who listens, and back when it
// beats in time again.
//
// # From hand to hand
//
// So that members seldom disagree (docs/adr/0022), an announcement names the partitions that
// its member holds. A new owner asks for a partition in the bucket and begins when it hears
// itself there and nobody holds the partition or has asked before; one that is to give it up
// finishes what is under way, saves, and then lets go. Neither waits for one that is dead,
// nor longer than its Patience.
package roster
