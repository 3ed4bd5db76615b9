// Package lanes keeps the lane of one space: the queue of its events, in order,
// between the partition's LANE stream and the handlers. It holds state and rules
// and does no I/O.
//
// # What a lane decides
//
// Which event is next, which is a duplicate, which must wait, and which cursor a commit carries so that the
// next owner continues from the right place. Events from the LANE stream are handled in the order of their
// lane sequence, with two exceptions. Both are part of the order, and every owner arrives at the same one:
//
//   - A follow-up, which a space sent to itself, never passes through LANE. It
//     queues behind the last event that was in memory when it was sent, and
//     remembers that event's sequence (Event.Behind). Follow-ups keep the order in
//     which they were sent.
//   - An event from another space carries a dense position. One that arrives
//     before its predecessor (two coordinators, a retried release) is held until
//     the predecessor has been taken; one that arrives again is dropped. A
//     release may therefore be repeated and reordered at will.
//
// # The life of an entry
//
//	          Offer                Take                    Confirm
//	stream ----------> waiting ----------> undecided ----------------> done
//	   ^                  ^  ^                 |
//	   |   lane full      |  '-----------------'
//	   '------------------'       Rewind (the commit was refused)
//
// An undecided entry has been given to a handler whose commit is not in the log yet. Refused commits return
// entries to their places; follow-ups of refused transactions vanish (I10).
//
// An event that was queued out of stream order, because it had waited for its predecessor, may be below a
// commit's cursor and not handled yet. The cursor then lists it as held, and the next owner reads it again
// before any later event.
//
// # Bounded memory
//
// A lane keeps at most a limit of waiting events. Further ones are left in the stream, and the lane reports
// where to read again (Refill). Only duplicates are dropped. Two kinds do not count toward the limit:
// follow-ups, which are bounded by their sender, and events that wait for a predecessor. A lane keeps
// DefaultHeld of the latter in memory, and only the sequences of the others, which are read from the stream
// again at their turn, before any later event.
//
// # Use without Settle
//
// A lane needs only the events and the cursor. Its owner may be any program with a log that refuses an append
// after its end has moved (such as package ordered). It has to:
//
//  1. create the lane from the state of its log (package replica computes that), and offer it the events of the
//     stream after ReadAfter, in order and without gaps;
//  2. handle what Peek returns, and Take it;
//  3. store the outcomes of the first n undecided events in one commit, with Cursor(n) and a receipt for
//     each (package receipts);
//  4. when that is accepted, Confirm it; when it is refused, Rewind, read the other runtimes' commits, and
//     Integrate the state after them;
//  5. read again whenever Refill reports it, from the sequence that it returns;
//  6. when Reissued returns positions, and everything that was confirmed is in the log, pass to Recall the
//     handled events of the origin (package history finds them).
//
// A lane has one owner and no locks. The example of the package is such a program.
package lanes
