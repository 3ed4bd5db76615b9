// Package host serves spaces, with or without a graph: it steps the deterministic core of each (Core), and does
// everything that a core must not do: waiting, reading the clock, using the bus. Package worker hosts cores with
// a graph by it, and package ordered cores that only handle events.
//
//	Worker        one per process: heartbeat, placement (by package worker/roster)
//	  partition   one per owned partition: lane reader, leases, saving, purging
//	    host      one per loaded space: a loop around its Core
//
// A core with a graph (Graph) has documents that are derived, observed and mirrored, transactions of the
// application, and tasks. What a host needs for that is in graphParts, which the host of another core does not have.
//
// # A host's loop
//
//	take inputs (events, answers, leases, mirrored documents)
//	Settle
//	carry out Ready: append a commit, mirror a document, read more of the lane
//	sleep until an input arrives, or a gate opens
//
// All inputs reach the loop through one inbox, so the core has one owner. Handling an
// event never blocks the loop on the store: the results of appends, saves and reads
// arrive through the inbox, and further events are handled meanwhile.
//
// # Components
//
// A component owns its state and knows neither host, partition nor worker. It gets what it needs as
// functions and as narrow interfaces of the core, and what it decides it returns.
//
//	Worker
//	  membership, roster      which workers there are, and which partitions this one serves
//	  residency               which spaces are in memory, and which leave
//	  sidecars                services of the process that answer from the worker's state
//	partition
//	  lanePosition            how far the lane is read, done and compared with the log
//	  leases, wakeups         observers, and times: why a space is loaded without an event
//	  retention               purging, and commits that no host has heard of (missedCommits)
//	  losses, stuckSpaces     what is refused, and what stands still
//	  failings, overruns      when a space that has failed is loaded again, and with what knowledge
//	  duels                   how long a space is left to another owner that takes it again and again
//	host
//	  lifetime                its beginning and end, and why it has ended
//	  inbox, laneReads        inputs, and how far the space is done with its lane
//	  appends, remoteCommits  its own commits on their way to the log, and those of other runtimes
//	  saver                   checkpoints: documents, observations, markers, when to wake the space
//	  runningCode             the code that runs, its limit, and giving it up
//	  graphParts              with a graph: documents for clients (reads), transactions of the application
//	                          (directs), documents of other spaces (mirrors), and work outside
//	  resident, idleness      whether the space stays in memory
//
// A partition gives its hosts an env, and serves them as their home; both are all that a host knows of
// what it may use of the host, and an attachment has no home.
//
// # Ownership
//
// Workers announce themselves in a bucket and ping each other. Package worker/roster derives
// from that which partitions a worker serves: all workers compute the same division, claims
// pass from worker to worker, and none of it is a lock. Taking a space over is a commit; from
// then on the appends of the earlier owner are refused; it reads why, and stops serving the space.
//
// A worker waits for a partition that another worker holds or has requested, for
// Config.Handover and two heartbeats, and not at all if the other worker is dead. In a planned
// handover no append is refused, and in tests on a network with one millisecond each way no
// space stands still for more than 100 ms.
//
//	crash                   the ping has no responder: at most one heartbeat until the others
//	                        know, and some round trips until they have taken over
//	a process that hangs    its pings are not answered: the member TTL, 15 s
//	a machine that is gone  treated as hung, until its server has noticed
//	SIGTERM, a new member   the draining of one partition; a handler that does not
//	                        return is cut off after Config.Handover, 5 s
//
// # Flow control
//
// Waiting events are bounded in number and in bytes: per space in the inbox of its host and
// in its core, and over all spaces of the worker (Config.BacklogBytes). The reader of a
// lane waits for spaces without room for 100 ms at a time, and for a tenth of the time in all; beyond
// that it leaves their events in the stream, to be read again later. Such spaces delay an event of
// another space of the partition by at most 200 ms.
//
// # Attachments
//
// Attach hosts one space in the process of an application, with a join instead of a
// takeover (docs/adr/0013). Such hosts follow the log of their space and integrate
// the commits of other runtimes when they have nothing in flight; the owner does the same
// while it has a lease of an attachment, which names no document.
//
// # A crash
//
// Nothing in a worker's memory is needed. The next owner loads the checkpoint,
// replays the log after it, appends its takeover, and reads the lane from the
// cursor. Events whose commit is in the log are below the cursor; the others are
// handled as if for the first time.
//
// The owner purges the part of the log that no restart needs (docs/adr/0019). A reader that
// finds commits missing before the next one loads the checkpoint again, which is
// newer: see history/gaps.go.
//
// The checkpoint includes what nodes have read, with fingerprints of the values,
// so that the next owner runs only nodes whose inputs have changed since. It is valid for the
// code that made it (worker.Config.Build, space.NodeSpec.Version); losing it only costs runs.
//
// Two positions tell a new owner where to begin: a space's cursor, in its
// commits, and the partition's lane position, saved periodically, before which no
// space of the partition has anything left to do, except for spaces that it names
// (docs/adr/0033). The latter only saves reading.
//
// # Loaded and dormant spaces
//
// A space is loaded for an event, an observer, a query or a timer, and leaves memory
// when it has been at rest for a while, or when others need the room (docs/adr/0020):
//
//	           requested        its turn             loaded
//	dormant ------------> waiting ------> being loaded ------> awake
//	   ^                (as a name)      (64 at a time)       |    |
//	   '------------------------------------------------------'    |
//	     asked to leave, at rest, all saved, inbox empty           '--> handed over, deposed
//
// The worker keeps no state of a dormant space, except, if an event waits in it for a
// time, when to load it: see wakeups.go (docs/adr/0018). Worker.Stats counts the spaces in
// the other states.
//
// # Work outside
//
// Tasks that a space has started are performed by its owner: the core finds them (package worker/tasks)
// in confirmed commits, and their results return through the inbox and the lane.
//
// # Another program
//
// Refresh looks up again which program each space runs. A loaded space changes over between two of
// its commits, in memory, and keeps all its state (docs/adr/0026).
//
// # Observation
//
// External demand arrives as leases (history.Lease): soft state, renewed by the
// observer, lost with the owner, and collected again by the next owner's roll call.
// A client that needs an up-to-date document asks the owner once (Read), which observes it
// for that long.
package host
