// Package space is the deterministic core: one space, as one runtime hosts it. Its inputs are events, log
// entries, answers to its requests, and the time; its outputs are requests to append, to mirror, to read and
// to be woken. It does no I/O and has no goroutine, clock or random number, so everything it does can be
// replayed from its inputs.
//
// # Terms
//
//	document      one JSON value of the space, read and written in transactions.
//	address       a path in a document, of this space or another.
//	node          a function that runs when one of its reads has changed. A computation
//	              derives documents from others; an effect observes.
//	read set      the addresses that a node's last run read, deeply or shallowly.
//	surface       the places that a node declares to write, fixed when it is registered.
//	cause         an address whose change made a node invalid.
//	invalid       one of the node's reads has changed since its last run began. Known
//	              elsewhere as stale or dirty.
//	live          the node is needed: see Demand. Known elsewhere as necessary or
//	              observed; the opposite is dormant.
//	gate          a time before which a node does not run.
//	due           live, and invalid or never run.
//	pass          one call of Settle: events, then runs, until nothing is due.
//	sweep         one traversal of the nodes that are due, from writers to readers.
//	cutoff        a run with the same result as before changes nothing, so
//	              nothing downstream runs.
//	handler       changes documents in answer to an event. Not a node.
//	lane, receipt, follow-up, lineage
//	              see the packages lanes, receipts and lineage.
//	speculative   applied here and not in the log yet; confirmed, when it is.
//	suffix        the transactions that are speculative.
//	attempt       one try at handling an event.
//
// # Reads
//
// A read adds an address to the read set of the run. The read set of a node is that of its last run, so a
// condition that takes another branch changes it. Four ways of reading differ in what counts as a change:
//
//	Get           the value at the path, and everything in it
//	GetShallow    the keys of an object, the length of an array, a scalar, or the target
//	              of a link; not the values inside
//	Peek          nothing: no dependency, no demand
//	Link          the link itself, which the others follow (docs/adr/0011)
//
// A change of a document concerns a reader if the same read would now return a different value. A write by
// itself does not count, and neither do nearby paths: replacing an object by an equal one, or adding a
// sibling, concerns no node that did not read it. If a path leads nowhere both before and after, its reader
// is concerned only if the path ends at a different place. A link on the way is read, too: a change of its
// target concerns the reader, even if the value there is the same. A run's own writes do not concern its
// node.
//
// # Writes
//
//	tier 1   the output: one document, by the value that a computation returns. The
//	         computation is its only writer
//	tier 2   Writes: further places, written through the transaction. Others may write
//	         there too. A reader there makes the node live
//	tier 3   Envelope: somewhere in these places. The node is a materializer: always live,
//	         run when no other node is due, or before a node or event that reads inside. The
//	         envelope orders and never invalidates; actual writes do
//
// A node with declared Writes or an Envelope may write elsewhere, too, except to outputs. Such a write
// invalidates readers like any other, but the node is not brought up to date for them; Stats.OutsideWrites
// counts such writes.
//
// A write of an equal value has no effect. Functions must be idempotent: run again over the same documents,
// they produce the same results. Config.CheckIdempotency tests it.
//
// # Demand
//
// A node is live if it is an effect or a materializer, or a live node reads its surfaces (tiers 1 and 2,
// where the places overlap), or an event waits for it, or a live run has just registered it (provisional
// demand, until its first run and the end of that pass). A circle of computations does not keep itself live.
// All other nodes are dormant: they are marked invalid when a read changes, and otherwise cost nothing until
// they are needed. A node that never ran has no read set; its declared reads order it behind their writers
// and trigger nothing.
//
// # A node
//
//	                 live, ungated                 something it
//	              .------ run ------> Clean         read changes
//	              |                    | ^  '--------------------.
//	register      |                    | |                        v
//	-------> NeverRan                  | '-- run (live, ungated) -- Invalid --.
//	    |         |                    |                           ^ ^        |
//	    |         '--- run, waits -----|---------------------------' '--------'
//	    |                              '--- its transaction is undone    run, waits, or no
//	    '- resumed: Clean or Invalid                                     room in the commit
//
// A run waits if it reads a document of another space that has not arrived; until it arrives, the node's
// readers run with its previous output. A run that fails also keeps the previous output, and is repeated when
// one of its reads changes; after an error marked by Transient it is retried at once, up to nine times. A run
// that is undone with a refused commit is repeated for the same causes. Status and liveness are independent
// of each other.
//
// # A pass
//
//	repeat at most MaxIterations times since the last event:
//	    handle events in lane order until one must wait or the commit is full
//	    sweep: take due nodes by height, ties by registration; run each that is still
//	        due, ungated and within its budget; its changes mark its readers at once, and
//	        those above join the sweep
//	    if none was due: sweep the materializers that are
//	until nothing happened; gate nodes that do not converge
//
// Heights put writers before readers (docs/adr/0005). Clean nodes are never visited. In a circle some node is
// first, and nodes that become due behind the sweep wait for the next one. A node comes after its maker,
// unless the maker reads its output.
//
// A read of an address that the node did not read last time first brings the writers of that address up to
// date, within the run (docs/adr/0012): when a chain is read for the first time, its far end runs first, and
// each node runs once. Runs that would nest deeper than a thousand are abandoned, and the next sweep begins at the
// far end of what they have found.
//
// A node runs at most RunBudget times in a pass. A node that is still due then, or when the
// iterations are used up, is held for 250 ms, doubled for each such pass in a row up to 2 s.
//
// # Time
//
// Settle reads the time once. A node may run when all of its gates are open: debounce (since the last
// change), throttle (since the last run), backoff, and the deferral of a node that has answered another
// runtime's writes of a document with its own twelve times within a minute: 500 ms, doubled with each further
// answer up to 30 s. The first run of a computation that becomes needed is not debounced; the first run of a node that is live when it is registered is. An
// effect whose runs take 50 ms on average gets a debounce of 100 ms. All held nodes share one timer,
// Ready.Wake; a dormant node sets none. The times from which debounce and throttle count are saved with the
// observations (docs/adr/0083).
//
// # Circles over spaces
//
// A change that comes through documents of other spaces carries their names, its trail, and the number of those
// through which it has come again. From a hundred on, the space holds the values back before they arrive, each
// for 500 ms at first, doubled up to 30 s: the nodes that read them stay clean, and no event waits for them. A
// change with another origin passes at once (docs/adr/0068).
//
// # Nodes that make nodes
//
// A run may register children with Tx.Node. Children that its next run does not register are removed,
// together with their own children, but their writes stay; all others are unaffected (docs/adr/0010).
//
// # Another program
//
// Change makes the space run another program, between two groups of transactions. The documents, the lane and
// all waiting events are independent of the program. Nodes with the same id and shape stay; those whose
// Version differs or is missing run again when they are needed. Nodes that have made others run again to make
// the children of the new program; children with the same Version do not run. The writes of a removed node
// stay, and belong to no node (docs/adr/0026).
//
// # The suffix and group commit
//
// A transaction applies at once to the current documents and joins the open group. When no append is under
// way, Settle seals the group into one commit and requests its append; the next group grows until that is
// confirmed. So at most one append is under way, and all transactions made during it share the next one.
//
//	log | sealed (under way) | open |
//	    ^ replica            ^      ^ current documents
//
// The replica is the confirmed state, the suffix an overlay over it. Refuse drops the whole suffix: every
// document that it changed shows its confirmed value again (which invalidates readers like any change),
// events return to the head of the lane, and everything that they launched vanishes. Integrate then applies
// the commits of other runtimes, Resume lets the space continue, and the events are handled again, under
// fresh ids: at once after the first conflict, then after 25 ms, doubled up to 1 s, for as long as necessary.
// Each of these pauses is shortened by up to a quarter, by a different amount in each runtime. Conflicts that
// last for ConflictWindow are reported, and retried once a second. Writes by Transact are not repeated;
// Ready.Undone lists them.
//
// # The consistency gate
//
// A handler must not act on a derived document that is out of date, and only running the handler reveals its
// reads. So it is run: an attempt that reads a foreign document that has not arrived, or the output of a node
// that is not clean or has an upstream node that is not, is abandoned without a trace. The event then demands
// what the attempt lacked, stays at the head of its lane, and is retried when that is available. An attempt
// that lacks nothing has read only values that were up to date when it began. What follows from its own writes
// is computed within the attempt, without runs (docs/adr/0070). The demand lasts until the event is handled, so each attempt gets
// further than the one before.
//
// That holds for nodes that converge. A computation that has been gated five passes in a row has no value to
// wait for and is given up; an event then reads its present value (I6). Later events wait for one pass of it if a change
// has reached it from outside, and for no time. All events of a lane together wait 4 s for such nodes, until none
// has for a minute (docs/adr/0082).
//
// # Rest
//
// Idle reports that nothing is left to do; Durable, that everything is in the log, too. A held node keeps the
// space from being idle if something waits for its result: an effect, a materializer, a first run and, for
// three passes, a node that does not converge. The re-run of a debounced or throttled computation does not.
//
// # What the host must do
//
//  1. Call Settle after every input (Offer, Confirm, Refuse with Integrate and Resume,
//     Mirror, Observe, Register, Transact), at Ready.Wake, and again while Ready.More. Make one
//     call at a time.
//  2. Append Ready.Append with its expectation, and answer with one Confirm or one
//     Refuse once the outcome is certain. While it is in doubt, the space waits. The
//     Commit belongs to the host until then; the space reuses it afterwards.
//  3. After Refuse, pass every log entry after Seq to Integrate, in order, and call
//     Resume. There is at least one.
//  4. Offer lane events in order and without gaps: those in the lane after
//     ReadLaneAfter, then new ones. Stop reading at the first event that
//     is not accepted; Ready.Refill says where to continue. Answer one Refill at a time.
//  5. Mirror the documents in Ready.Follow: deliver the confirmed value through
//     Mirror once, even if absent, and at every change, until the document is in
//     Ready.Unfollow. Observe the document in the space that owns it, since mirroring
//     creates no demand there.
//  6. Save Checkpoint periodically, documents before the mark, and return it
//     with SpoilCheckpoint if that failed. Save Observations with it, and pass all saved
//     ones to Rehydrate when the space is loaded.
//  7. Stop hosting the space when it is Deposed.
//
// # Invariants
//
// The invariants and the code that maintains them. The tests are named after them; with the build tag
// invariants they are checked after every step.
//
//	I1   live consistency    Settle runs until no live node is due. A node's own writes
//	                         are excepted (docs/adr/0007), and a node that fails keeps
//	                         its last output.
//	I2   dormancy            due nodes are live; registering reads nothing. Liveness is
//	                         counted per surface, and a circle does not keep itself live.
//	I3   value-gated runs    a single path for changes (changes.change), which compares
//	                         the values at the addresses that were read.
//	I4   order, consistency  the lane decides the order, the gate above everything else.
//	I5   self-stability      a run's change does not invalidate its own node.
//	I6   bounded             iterations per event and runs per pass and node are
//	                         bounded; beyond that a node is gated, 250 ms doubled to 2 s.
//	                         An event waits for such a node during five exhausted
//	                         passes and then reads its present value; see patience.
//	I7   restart equivalence checkpoint plus log equal the log (package replica), and a node
//	                         that an observation resumes runs when it would have run anyway.
//	I8   provenance          every transaction in the log names its handler or node,
//	                         or the writer of Transact, and a run its causes. The first
//	                         commit of an incarnation with a program names its version.
//	I9   order within a pass heights: graph.audit compares them with the edges.
//	I10  lineage             what a transaction launches follows it in the same suffix,
//	                         and is dropped with it (package lineage).
//	I11  exactly once        the receipt is in the same commit as the handler's writes
//	                         and the lane cursor, and the commit is a compare-and-set.
//
// # Files
//
// Each file calls only those before it:
//
//	words     spec, rejection, trace, errors, config, match (which readers a change concerns), task and
//	          cancel (documents with a meaning), autodebounce, echo
//	records   node (nodes, surfaces, reads, documents), index and causes
//	graph     documents, nodes, queue, height (order), gates, failures, liveness, preflight (stale nodes),
//	          invalidation, gatetimes and reads are its parts; graph adds nodes and edges to
//	          all of them and removes them; audit compares them with a rebuild
//	upkeep    patience, convergence (budgets), echoguard, rounds, overruns, observations, undo, needs, cron: each owns
//	          its state
//	code      tx with overlay, txread, txwrite, txsend, txtask and children are for functions of a
//	          program; program, action and clash are programs
//	pass      rehearsals, diagnosis, runner (nodes), handling (events) and sweep
//	space     space with host, direct, upgrade, idle, ready, settle, freshness and introspection are the
//	          host's interface; publish, before them, writes the state of the space into tables
//
// Package inspect, below this one, explains a space through snapshots of those tables. Package ledger owns
// the lane and the transactions in the log.
package space
