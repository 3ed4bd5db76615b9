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
//	node          a function that is run when what it read has changed. A
//	              computation derives one document from others, its output; an
//	              effect observes, and writes nothing.
//	read set      the addresses that a node's last run read: documents and paths.
//	cause         an address whose change made a node invalid.
//	invalid       something the node read has changed since its last run began. Known
//	              elsewhere as stale or dirty.
//	live          an effect needs the node's output, directly or through other live
//	              nodes, or an event waits for it. Known elsewhere as necessary or
//	              observed; the opposite is dormant.
//	gate          a time before which a node does not run.
//	runnable      invalid (or never run), live, and not gated.
//	pass          one call of Settle: events, then runs, until nothing is runnable.
//	cutoff        a run that comes to the value that was there changes nothing, so
//	              nothing downstream runs.
//	handler       changes documents in answer to an event. Not a node.
//	lane, receipt, follow-up, lineage
//	              see the packages lanes, receipts and lineage.
//	speculative   done here and not in the log yet; confirmed, when it is.
//	suffix        the transactions that are speculative.
//	attempt       one try at handling an event.
//
// # A node
//
//	                 live, ungated                 something it
//	              .------ run ------> Clean         read changes
//	              |                    | ^  '--------------------.
//	register      |                    | |                        v
//	-------> NeverRan                  | '-- run (live, ungated) -- Invalid --.
//	              |                    |                           ^ ^        |
//	              '--- run, waits -----|---------------------------' '--------'
//	                                   '--- its output is undone     run, waits, or no
//	                                        or differs in the log    room in the commit
//
// A run waits if it meets a document of another space that is not here yet. A node is
// invalid or not, and live or not, independently: a dormant invalid node stays as it
// is, at no cost, until somebody wants it.
//
// # A pass
//
//	repeat at most MaxIterations times since the last event:
//	    handle events in lane order until one must wait or the commit is full
//	    work set: the runnable nodes, and what is live downstream of them
//	    order it: writers before their readers, ties by registration
//	    run each that is runnable at its turn; its change marks its readers at once
//	until nothing happened; gate what does not converge
//
// A node that reads the output of a dormant one pulls it: the dormant one runs first,
// and is live from then on.
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
// fresh ids.
//
// # The consistency gate
//
// A handler must not act on a derived document that is out of date, and only the
// handler knows what it reads. So it is run: an attempt that reads the output of a
// computation that is not clean, or has anything upstream that is not, or that reads a
// foreign document that is not here, is abandoned without a trace. What it lacked is
// demanded on the event's behalf, the event stays at the head of its lane, and is
// tried again when that is there. An attempt that lacks nothing has read only what is
// up to date. What was demanded stays demanded until the event is handled, so each
// attempt gets further than the one before.
//
// That holds for what converges. A computation that has been gated five passes in a row
// has no value to wait for; an event then takes the one that is there (I6).
//
// # What the host must do
//
//  1. Call Settle after every input (Offer, Confirm, Refuse with Integrate and Resume,
//     Mirror, Observe), at Ready.Wake, and again while Ready.More. One caller at a
//     time.
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
//  6. Save Checkpoint from time to time, documents before the mark, and hand it back
//     with SpoilCheckpoint if that failed.
//  7. Stop hosting the space when it is Deposed.
//
// # What holds
//
// The invariants of seed 001, section 11, and what keeps them here. The tests are named
// after them.
//
//	I1   live consistency    Settle runs until no live node is invalid. A node that
//	                         reads its own output is excepted for its own writes, and
//	                         one that fails keeps its last output.
//	I2   dormancy            the pass looks at live nodes only; registering reads
//	                         nothing. Liveness is counted per document, and a circle
//	                         of computations does not keep itself live.
//	I3   value-gated runs    one door for changes (graph.change), which compares the
//	                         values at the paths that were read.
//	I4   order, consistency  the lane decides the order, the gate above the rest.
//	I5   self-stability      a run's change does not mark the node that made it.
//	I6   bounded             iterations per event and runs per pass and node are
//	                         bounded; what wants more is gated, 250 ms doubled to 2 s.
//	                         An event waits for such a node during five exhausted
//	                         passes and is then handled with what is there.
//	I7   restart equivalence checkpoint plus log is the log (package replica). Nodes
//	                         start as never run: observations are not saved yet, so a
//	                         restart runs every observed node once.
//	I8   provenance          every transaction in the log names its handler or node,
//	                         and a run its causes.
//	I9   order within a pass Kahn's algorithm over the work set.
//	I10  lineage             what a transaction launched lies behind it in the same
//	                         suffix, and is dropped with it (package lineage).
//	I11  exactly once        a receipt is in the commit that has the handler's writes
//	                         and the lane cursor, and the commit is a compare-and-set.
package space
