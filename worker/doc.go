// Package worker hosts spaces: it steps the deterministic core of each, and does
// all that the core must not do: it waits, reads the clock, speaks to the bus.
//
//	Worker        one per process: membership, placement
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
// Workers announce themselves in a bucket and ping each other; every one computes
// the same division of the partitions by rendezvous hashing. None of this is a
// lock. Taking a space over is a commit; from then on the appends of the earlier
// owner are refused, it reads why, and stands down. Two workers that disagree
// cost each other refused appends and nothing else, so suspicion may be quick.
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
// newer: see read.go.
//
// What nodes have read, and fingerprints of what they saw there, is saved with the
// checkpoint, so that the next owner runs only what has changed since. It holds for the
// code that made it (Config.Build, NodeSpec.Version), and losing it costs runs only.
//
// Two positions tell a new owner where to begin: a space's cursor, in its
// commits, and the partition's lane position, saved now and then, before which no
// space of the partition has anything left to do. The latter only spares reading.
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
// Of a dormant space the worker knows nothing at all. Worker.Stats says how many there are of
// the others.
//
// # Observation
//
// Demand from outside comes as leases (Watch): soft state, renewed by the
// observer, lost with the owner, and asked for again by the next one's roll call.
// Who wants a document once, and up to date, asks the owner (Query), which observes it
// for that long.
package worker
