// Package space is the deterministic core: one space, as one runtime hosts it. It
// takes events, log entries, answers and the time, and says what is to be appended,
// mirrored, read and woken for. It does no I/O and has no goroutine, clock or random
// number, so whatever it does can be replayed from its inputs.
//
// # Words
//
// The words are those of the design that this package makes real (seed 001).
//
//	document      one JSON value of the space, read and written in transactions.
//	address       a path in a document, of this space or another.
//	node          a function that is run when what it read has changed. A computation
//	              derives documents from others; an effect observes.
//	read set      the addresses that a node's last run read, deeply or shallowly.
//	surface       the places that a node says it writes, fixed when it is registered.
//	cause         an address whose change made a node invalid.
//	invalid       something the node read has changed since its last run began. Known
//	              elsewhere as stale or dirty.
//	live          the node is needed: see Demand. Known elsewhere as necessary or
//	              observed; the opposite is dormant.
//	gate          a time before which a node does not run.
//	due           live, and invalid or never run.
//	pass          one call of Settle: events, then runs, until nothing is due.
//	sweep         one way through what is due, from writers to readers.
//	cutoff        a run that comes to the value that was there changes nothing, so
//	              nothing downstream runs.
//	handler       changes documents in answer to an event. Not a node.
//	lane, receipt, follow-up, lineage
//	              see the packages lanes, receipts and lineage.
//	speculative   done here and not in the log yet; confirmed, when it is.
//	suffix        the transactions that are speculative.
//	attempt       one try at handling an event.
//
// # What is read
//
// A read makes an address part of the read set of the run; the read set of a node is that
// of its last run, so a condition that takes another way changes it. Four ways of reading
// differ in what counts as a change:
//
//	Get           the value at the path, and everything in it
//	GetShallow    the keys of an object, the length of an array, a scalar, or the target
//	              of a link; not what is inside
//	Peek          nothing: no dependency, no demand
//	Link          the link itself, which the others follow (docs/adr/0011)
//
// A change of a document concerns a reader if what it would read now differs, as a value,
// from what it would have read before: not because a path lies near a path, and not because
// it was written. Replacing an object by an equal one, or adding a sibling, concerns no
// node that did not read it. A path that leads nowhere before and after concerns its reader only if
// it leads nowhere at another place. A link on the way is read too: that it comes to point
// elsewhere concerns the reader, even if the same is found there. A node is not concerned by
// what its own run wrote.
//
// # What is written
//
//	tier 1   the output: one document, by the value that a computation returns. It belongs
//	         to that computation; nothing else writes it
//	tier 2   Writes: further places, written through the transaction. Others may write
//	         there too. A reader there makes the node live
//	tier 3   Envelope: somewhere in these places. The node is a materializer: always live,
//	         run when nothing else is due, or before a node or event that reads inside. The
//	         envelope orders and never invalidates; what is really written does
//
// A node that has declared Writes or an Envelope may write elsewhere, too, where no output
// is. Readers there are invalidated as by any write, but nothing is brought up to date for it;
// Stats.OutsideWrites counts such writes.
//
// A write that leaves things as they are is none. Functions must be idempotent: run again
// over the same documents, they come to the same. Config.CheckIdempotency tests it.
//
// # Demand
//
// A node is live if it is an effect, or a materializer, or a live node reads what it writes
// (tiers 1 and 2, where the places overlap), or an event waits for it, or a live run has just
// made it (provisional demand, until its first run and the end of that pass). A circle of
// computations does not keep itself live. Everything else is dormant: it is marked invalid
// when that is so, and costs nothing until it is wanted. A node that was never run has
// no read set; what it declares to read puts it behind its writers and triggers nothing.
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
// A run waits if it meets a document of another space that is not here yet; its readers run
// meanwhile, with the output that was there. A run that fails keeps that output too and is made
// again when something it read changes; an error that Transient marks is tried again by itself,
// at once and nine times. A run that is undone with a refused commit is made again, for the
// causes that it had. Invalid or not, and live or not, are independent of each other.
//
// # A pass
//
//	repeat at most MaxIterations times since the last event:
//	    handle events in lane order until one must wait or the commit is full
//	    sweep: take what is due by height, ties by registration; run each that is still
//	        due, ungated and within its budget; its change marks its readers at once, and
//	        those above join the sweep
//	    if nothing was due: the materializers that are
//	until nothing happened; gate what does not converge
//
// Heights put writers before readers (docs/adr/0005). A clean node is never looked at. In a
// circle one node is first, and what becomes due behind the sweep waits for the next one. A
// node that another has made comes after it, unless the maker reads what it makes.
//
// A read of an address that the node did not read last time brings its writers up to date
// first, within the run (docs/adr/0012): of a chain that is read for the first time, the far
// end runs first, and each node once.
//
// A node runs RunBudget times in a pass at most. What is still due then, or when the
// iterations are used up, is held for 250 ms, doubled for each such pass in a row up to 2 s.
//
// # Time
//
// Settle reads the time once. Debounce (from the last change on), throttle (from the last run
// on), backoff, and the hold of a node that answers another runtime's writes of a document with
// its own, twelve times within a minute: the latest of them says when a node may run. The first
// run of a computation that begins to be needed is not debounced; that of a node which is
// live when it is registered is. An effect whose runs take 50 ms on average gets a debounce of
// 100 ms. All that are held share one timer, Ready.Wake; a dormant node sets none.
//
// # Nodes that make nodes
//
// A run may register children with Tx.Node. Those that its next run does not register any more
// are removed, with theirs, and what they have written stays; those that it does stay as they
// are (docs/adr/0010).
//
// # Another program
//
// Change has the space go on with another program, between two groups of transactions: the
// documents, the lane and all that waits are not the program's. Nodes of the same id and shape
// stay; those whose Version is another, or that name none, run again when they are needed;
// those that have made nodes run again so that the children are the new program's, of which
// those of the same Version do not run. What a node that is gone has written stays, and
// belongs to no node (docs/adr/0026).
//
// # The suffix and group commit
//
// A transaction applies at once to the current documents and joins the open group.
// When no append is under way, Settle seals the group into one commit and asks for
// its append; while that is under way, the next group grows. So at most one append is
// under way, and whatever happens meanwhile shares the one after it.
//
//	log | sealed (under way) | open |
//	    ^ replica            ^      ^ current documents
//
// The replica is the confirmed state. The suffix is an overlay over it: on Refuse it
// is dropped whole, every document that it changed shows its confirmed value again
// (which invalidates readers like any change), events go back to the head of the
// lane, and what they had launched vanishes. Integrate then takes in what others have
// committed, Resume lets the space go on, and the events are handled again, under
// fresh ids: at once after the first conflict, then after 25 ms, doubled up to 1 s, for as long
// as it takes. Each of these pauses is shorter by up to a quarter, by which runtimes differ.
// When that has gone on for ConflictWindow it is reported, and goes on once a second. What
// Transact wrote is not written again; Ready.Undone names it.
//
// # The consistency gate
//
// A handler must not act on a derived document that is out of date, and only the
// handler knows what it reads. So it is run: an attempt that reads what a node writes
// that is not clean, or has anything upstream that is not, or that reads a
// foreign document that is not here, is abandoned without a trace. What it lacked is
// demanded on the event's behalf, the event stays at the head of its lane, and is
// tried again when that is there. An attempt that lacks nothing has read only what is
// up to date, as of its beginning: what it writes itself reaches derived documents when
// it has come to its end. What was demanded stays demanded until the event is handled,
// so each attempt gets further than the one before.
//
// That holds for what converges. A computation that has been gated five passes in a row
// has no value to wait for; an event then takes the one that is there (I6).
//
// # Rest
//
// Idle says that nothing is left to do; Durable, that it is in the log too. A node that is held
// counts if something waits for what it will come to: an effect, a materializer, a first run, and
// for three passes one that does not converge. The re-run of a computation that is debounced or
// throttled does not.
//
// # What the host must do
//
//  1. Call Settle after every input (Offer, Confirm, Refuse with Integrate and Resume,
//     Mirror, Observe, Register, Transact), at Ready.Wake, and again while Ready.More. One
//     caller at a time.
//  2. Append Ready.Append with its expectation, and answer with one Confirm or one
//     Refuse, when the answer is definite. If it is in doubt, the space waits. Its
//     Commit is the host's until that answer; the space uses it again afterwards.
//  3. After Refuse, pass every log entry behind Seq to Integrate, in order, and call
//     Resume. There is at least one.
//  4. Offer lane events in order and without gaps: those that are in the lane behind
//     ReadLaneAfter, then those that come. Stop a reading of the past at the first that
//     is not taken; Ready.Refill says where to go on. Answer one Refill at a time.
//  5. Begin to mirror what is in Ready.Follow, and deliver its confirmed value through
//     Mirror once (absent too) and at every change, until it is in Ready.Unfollow.
//     Observe it where its space is hosted: to mirror a document is no demand for it.
//  6. Save Checkpoint from time to time, documents before the mark, and hand it back
//     with SpoilCheckpoint if that failed. Save Observations with it, and hand all that
//     are saved to Rehydrate when the space is made anew.
//  7. Stop hosting the space when it is Deposed.
//
// # What holds
//
// The invariants of seed 001, section 11, and what keeps them here. The tests are named
// after them; with the build tag invariants they are checked after every step.
//
//	I1   live consistency    Settle runs until no live node is due. A node that reads what
//	                         it writes is excepted for its own writes (docs/adr/0007), and
//	                         one that fails keeps its last output.
//	I2   dormancy            what is due is live; registering reads nothing. Liveness is
//	                         counted per surface, and a circle does not keep itself live.
//	I3   value-gated runs    one door for changes (changes.change), which compares the
//	                         values at the addresses that were read.
//	I4   order, consistency  the lane decides the order, the gate above the rest.
//	I5   self-stability      a run's change does not mark the node that made it.
//	I6   bounded             iterations per event and runs per pass and node are
//	                         bounded; what wants more is gated, 250 ms doubled to 2 s.
//	                         An event waits for such a node during five exhausted
//	                         passes and is then handled with what is there.
//	I7   restart equivalence checkpoint plus log is the log (package replica), and what an
//	                         observation says is clean runs when it would have run anyway.
//	I8   provenance          every transaction in the log names its handler or node,
//	                         or what Transact was told, and a run its causes. The
//	                         first commit of a life with a program names its version.
//	I9   order within a pass heights: graph.audit compares them with the edges.
//	I10  lineage             what a transaction launched lies behind it in the same
//	                         suffix, and is dropped with it (package lineage).
//	I11  exactly once        a receipt is in the commit that has the handler's writes
//	                         and the lane cursor, and the commit is a compare-and-set.
//
// # Where things are
//
// Each file calls only those before it:
//
//	words     spec, rejection, trace, errors, config, match (what a change concerns), task and
//	          cancel (documents with a meaning), autodebounce, echo
//	records   node (nodes, surfaces, reads, documents), index and causes
//	graph     documents, nodes, queue, height (order), gates, liveness, preflight (what is not up
//	          to date), invalidation and reads are its parts; graph brings nodes and edges in and
//	          out of all of them; audit compares them with a rebuild
//	upkeep    convergence (budgets), echoguard, overruns, observations, undo, needs, cron: each owns
//	          what it is about
//	code      tx with overlay, txread, txwrite, txsend, txtask and children is what functions of a
//	          program see; program, action and clash are programs
//	pass      rehearsals, runner (nodes), handling (events) and sweep
//	space     space with host, direct, upgrade, idle, ready, settle, freshness and introspection is what
//	          the host talks to; publish, before them, writes how the space stands into tables
//
// Package inspect, below this one, explains a space by snapshots of those tables. Transactions in
// the log and the lane are package ledger's.
package space
