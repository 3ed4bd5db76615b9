// Package worker hosts spaces: it steps the deterministic core of each, and does
// all that the core must not do: it waits, reads the clock, speaks to the bus.
//
//	Worker        one per process: heartbeat, placement (by package worker/roster)
//	  partition   one per partition that is ours: lane reader, leases, saving, purging
//	    host      one per space that is awake: a loop around space.Space
//
// # A host's loop
//
//	take in what has come (events, answers, leases, mirrored documents)
//	Settle
//	carry out Ready: append a commit, mirror a document, read more of the lane
//	sleep until something comes, or a gate opens
//
// Everything reaches the loop through one inbox, so the core has one owner. The
// loop never waits for the store on the way of an event: appends, saves and reads
// are answered through the inbox, and further events are handled meanwhile.
//
// # Who owns what
//
// Workers announce themselves in a bucket and ping each other. What one makes of that, and
// which partitions it serves, is package worker/roster: the same division for all, claims
// that go from hand to hand, and none of it a lock. Taking a space over is a commit; from
// then on the appends of the earlier owner are refused, it reads why, and stands down.
//
// A partition that another worker holds or has asked for is waited for as long as
// Config.Handover and two heartbeats, and not at all if that one is dead. In a planned
// handover no append is refused, and in tests on a network with one millisecond each way no
// space stands still for more than 100 ms.
//
//	crash                   the ping finds nobody: at most one heartbeat until the others
//	                        know, and some round trips until they have taken over
//	a process that hangs    its pings are not answered: the member TTL, 15 s
//	a machine that is gone  as one that hangs, until its server has noticed
//	SIGTERM, a new member   the draining of one partition; a handler that does not
//	                        return is cut off after Config.Handover, 5 s
//
// # A flood
//
// What waits is bounded in numbers and in bytes: per space in the inbox of its host and
// in its core, and over all spaces of the worker (Config.BacklogBytes). The reader of a
// lane waits for spaces that have no room 100 ms at once and a tenth of the time; beyond
// that it leaves their events in the stream, to be read again later. So an event of
// another space of the partition waits 200 ms at the most on their account.
//
// # Beside the owner
//
// Attach hosts one space in the process of an application, with a join instead of a
// takeover (docs/adr/0013). Such hosts follow the log of their space and integrate what
// others commit when nothing of their own is under way; the owner does so, too, as long
// as it knows of one, by a lease that names no document.
//
// # A crash
//
// Nothing in a worker's memory is needed. The next owner loads the checkpoint,
// replays the log after it, appends its takeover, and reads the lane from the
// cursor. Events whose commit is in the log are below the cursor; the others are
// handled as if for the first time.
//
// The owner purges the log of what no restart needs (docs/adr/0019). Whoever reads it and
// finds that commits are missing before the next one loads the checkpoint again, which is
// newer: see lookup/gaps.go.
//
// What nodes have read, and fingerprints of what they saw there, is saved with the
// checkpoint, so that the next owner runs only what has changed since. It holds for the
// code that made it (Config.Build, NodeSpec.Version), and losing it costs runs only.
//
// Two positions tell a new owner where to begin: a space's cursor, in its
// commits, and the partition's lane position, saved now and then, before which no
// space of the partition has anything left to do, but for some that it names
// (docs/adr/0033). The latter only spares reading.
//
// # Awake and dormant
//
// A space is loaded for an event, an observer, a question or a timer, and leaves memory
// when it has been at rest for a while, or when others need the room (docs/adr/0020):
//
//	            wanted          its turn             loaded
//	dormant ------------> waiting ------> being loaded ------> awake
//	   ^                (as a name)      (64 at a time)       |    |
//	   '------------------------------------------------------'    |
//	     asked to leave, at rest, all saved, and nothing has come  '--> handed over, deposed
//
// Of a dormant space the worker knows nothing at all, or, if something waits in it for a
// time, when to wake it: see due.go (docs/adr/0018). Worker.Stats says how many there are of
// the others.
//
// # Work outside
//
// Tasks that a space has started are performed by its owner: package worker/tasks looks for them
// in what is confirmed, and comes back through inbox and lane.
//
// # Another program
//
// Refresh asks again what each space is to run. One that is awake changes over between two of
// its commits, in memory, and goes on with all that it has (docs/adr/0026).
//
// # Observation
//
// Demand from outside comes as leases (Watch): soft state, renewed by the
// observer, lost with the owner, and asked for again by the next one's roll call.
// Who wants a document once, and up to date, asks the owner (Query), which observes it
// for that long.
package worker
