// Package bus is Settle's NATS: the connection, the streams and subjects, the messages written
// to them and the interpretation of answers. It satisfies port.Bus over JetStream. No package of the library
// outside of this directory imports nats.go. Package membus has the same semantics in memory; buscontract checks both.
//
// # Parts
//
//	internal/wire   streams below the meaning of their messages: definite answers, reads, follows, rewinds
//	provision       the streams of a deployment and their settings
//	bus             on these two: lanes, logs, states, records, dead letters, rewinds, members, observers and
//	                services, each in a type of its own; Bus is all of them
//	survey          everything that can be found out about a deployment, for `settle doctor`
//	streamcopy      copies of streams, and how they are restored, for backups
//	roles, faults   what each kind of user may do; requests that fail on purpose, for tests
//	embedded        a NATS server in the process
//
// # Assets
//
// One set per partition p, plus two buckets for the deployment. "settle" and
// "SETTLE" are Config.Prefix.
//
//	LANE   stream SETTLE_LANE_<p>    settle.send.<p>.<space>.<stream>.<event id>
//	                                 what clients send, with .<principal> behind it
//	                                 if they send in the name of one
//	                                 settle.lane.<p>.<space>.<stream>.<event id>
//	                                 what coordinators and workers send
//	                                 exactly these tokens: a message published to
//	                                 another subject has no responders
//	LOG    stream SETTLE_LOG_<p>     settle.log.<p>.<space>
//	       republished to            settle.feed.<p>.<space>
//	STATE  bucket SETTLE_STATE_<p>   <space>.<doc>         a document, plain JSON
//	                                 <space>.=checkpoint   the checkpoint mark
//	                                 <space>.=origins.<n>  positions, if they are many
//	                                 =pos.<name>           a position, a number
//	       bucket SETTLE_WORKERS     <worker id>           an announcement, JSON
//	       bucket SETTLE_PROGRAMS    version.<program>.<n> a program, immutable
//	                                 rule.<spaces>         the version that those spaces run
//	                                 dead.totals           the number of dead letters
//	                                 rewind.<stream>       its rewinds, and the processes that detected them
//	                                 backup.newest         the newest backup
//	DEAD   stream SETTLE_DEAD        settle.dead.<space>.<stream>.<event id>
//	                                 one for the deployment: letters are rare
//
// And core NATS, where messages are not stored:
//
//	settle.demand.<p>     leases of observers
//	settle.attached.<p>   leases of runtimes that are attached to a space
//	settle.rollcall.<p>   a new owner requests the leases again
//	settle.ping.<id>      answered by the process of that id
//	settle.api.<name>     a request; one of the processes that serve it answers, as
//	                      a NATS micro service
//
// An event and a commit are one message each. Metadata of a message
// travels in headers: Settle-Commit (the append's id), Settle-Position, Settle-Term and
// Settle-Prev-Term (the terms of an event that a space has sent, and of the one before it), Settle-Replay-Key
// (the identity of the send, independent of the transaction), Settle-Depth, Settle-Not-Before, Settle-Invalid (the message is a tombstone, with the reason), Settle-Seq (the
// log sequence that a document reflects), traceparent, tracestate and baggage. Nats-Msg-Id is never
// set: its window forgets.
//
// # What each guarantee rests on
//
//	an event is stored once    one message per subject, new ones refused (for all
//	                           clients, by LANE's configuration), and for our own
//	                           sends also an expected last sequence of 0
//	commits are serial         expected last sequence of the space's log subject;
//	                           exact subjects only, wildcards are unsound on R3
//	nothing acknowledged is    file storage, no limits by age, count or size that
//	lost or forgotten          evict, no rollup, no deletes, no TTL; replication in
//	                           a cluster, fsync on a single server
//	the feed has only          LOG republishes a message after it was stored, on R3
//	committed entries          after the quorum has it, and names the sequence that
//	                           preceded it on its subject
//	unhandled events stay      a purge of LANE names a sequence up to which everything
//	                           is done; the age of the removed events is decided by the
//	                           server's clock, and the last message always stays
//	a purged log does not pass a commit carries the sequence that it was appended
//	for a whole one            behind, and a purge of a space's log never takes its
//	                           head, with which the next append is compared
//	an old state never covers  expected last sequence of the bucket's key, and the
//	a newer one                Settle-Seq found there when that is refused
//
// Each of these settings is checked when the assets are opened, and an
// altered one is refused with a *provision.AssetError. See provision/assets.go, which gives the reasons
// next to the settings.
//
// Users with the right to publish to the LANE, LOG and feed subjects or to $KV are trusted:
// headers alone can do damage there. All other users go through a service.
//
// # When an answer is missing
//
// A request that changes something is sent again until the answer is definite:
//
//	send --> stored                                --> done
//	     --> refused                               --> done, unless in doubt
//	     --> no leader, in flight, no room         --> wait, send again
//	     --> silence, disconnected  (in doubt now) --> send again
//	     in doubt and refused: read the stored message; ours --> done, stored
//
// Every attempt is the identical message under the identical condition, so of all
// attempts at most one is stored. No read ever proves that a message is absent: a
// deposed leader answers from an earlier state. For the same reason a refusal that names
// a head older than the one expected is not believed in a cluster, until it has
// been repeated for longer than any election takes.
//
// An event that is "refused: one message per subject" is no duplicate yet: on R3
// the server may answer so while the other message is still on its way to the quorum, and may
// be lost. Only the refused expectation proves that it is stored.
//
// # Failures
//
//   - The connection breaks: requests wait and are sent again on the next one, all
//     of them in doubt. Nothing is buffered in between. Subscriptions continue after
//     the last message that they delivered.
//   - A stream has no leader, or no room: requests wait; a send into a full lane
//     gets model.ErrLaneFull.
//   - A stream is gone: requests wait, with a warning in the log; subscriptions end with
//     an error after a while.
//   - Close: waits for requests in flight, then ends the rest with
//     model.ErrStopped. Kill: ends everything with it at once.
//
// # Feeds
//
// FollowSpace needs no consumer, so any number of spaces can be followed. It
// subscribes to the space's feed, reads the earlier entries from the log, and
// from then on delivers a feed message if its predecessor is the entry that was
// delivered last. If not, the log is read again. A feed message that was lost
// without a successor is noticed when the leader is asked for the next entry: every few
// seconds, after each reconnect, and after messages were dropped here.
//
// FollowLog and FollowLane use an ephemeral push consumer in memory, without
// acknowledgements, whose sequence numbers show a gap at once; after a gap, a
// missing heartbeat or a reconnect it is replaced by one that starts behind the
// last message delivered.
package bus
