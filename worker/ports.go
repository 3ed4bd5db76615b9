package worker

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// Bus is everything that a worker and a coordinator need from the outside world.
// Package bus implements it over NATS JetStream and package bus/membus in memory;
// bus/buscontract is the suite that both pass, and the precise meaning of every
// method is what that suite checks.
//
// Follow methods block until ctx ends or the source is lost for good, deliver in
// order from one goroutine, and never deliver the same sequence twice in one call.
type Bus interface {
	Log
	Lanes
	State
	Observers
	Members
	DeadLetters
	Services
	// Partitions is the number of partitions of the deployment.
	Partitions() int
	// Horizon is for how long the deployment remembers events.
	Horizon() time.Duration
	// MaxPayload is the largest message in bytes, headers included, that the
	// server takes.
	MaxPayload() int
	// Epoch counts how often the store was found to have gone back to an earlier state.
	// What was read in one epoch says nothing in the next: follows that were begun before
	// end with model.ErrRewound, and so does what would be stored because of them. See
	// Session.
	Epoch() uint64
	// Hindsight is for how long a leader may answer from the past: StaleLeader, or 0 where there
	// is only one server.
	Hindsight() time.Duration
}

// StaleLeader is how long the leader of a stream may answer from the past, because it does
// not know yet that it is deposed. Who was told by it that something is not there, and
// hears of it in no other way, has to look once more after that time.
const StaleLeader = 30 * time.Second

// Log is the commit log of all spaces.
type Log interface {
	// Append appends a commit if the space's head is still where a.Expect says,
	// and calls done exactly once, from any goroutine, with a definite answer:
	// the sequence, or model.ErrRefused, model.ErrTooLarge or model.ErrStopped.
	// A lost acknowledgement is resolved before done is called, by sending the
	// identical message again: no read ever proves absence.
	// At most one append per space may be under way.
	Append(a model.Append, done func(seq uint64, err error))
	// Head is the sequence of the space's last commit, 0 if it has none. It asks
	// the stream's leader, and still may be out of date when it returns.
	Head(ctx context.Context, space string) (uint64, error)
	// ReadLog returns up to limit entries of the space after the given sequence,
	// oldest first. Fewer than limit means that the reader saw the end, as it was.
	// What was purged is left out: see model.LogEntry.Follows.
	ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error)
	// FollowSpace delivers the space's entries after the given sequence, those
	// that are there and those to come. It costs no server-side asset. It ends with
	// model.ErrPurged rather than leave out what was purged.
	FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error
	// FollowLog delivers the entries of all spaces of a partition likewise, and leaves out
	// what was purged.
	FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error
	// LogState says how large a partition's log is, and up to where it is older than age by
	// the server's clock. It asks the stream's leader, and may be out of date.
	LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error)
	// LogTail returns the last entries of a partition's log, n at most, of those that were not
	// purged. It may miss the newest.
	LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error)
	// LogSpaces lists the spaces of a partition of which the log holds more than one commit,
	// sorted.
	LogSpaces(ctx context.Context, partition int) ([]string, error)
	// PurgeLog removes the commits of a space below a sequence, and never the last one: an
	// append is compared with that. It may be called by anybody at any time, as long as a
	// saved checkpoint covers what is removed; asking again does nothing.
	PurgeLog(ctx context.Context, space string, below uint64) error
}

// Lanes are the queues of events.
type Lanes interface {
	// Send stores an event unless its id is in the lane already, and calls done
	// exactly once, from any goroutine, with a definite answer or model.ErrLaneFull,
	// model.ErrTooLarge, model.ErrForbidden, model.ErrStopped, or model.ErrRewound if m is bound. Sends of one caller to one space are
	// stored in the order of the calls if each waits for the one before it.
	Send(m model.Message, done func(model.SendResult, error))
	// FollowLane delivers the events that stand in the lane of a partition, after the given
	// sequence. There may be some of spaces of another one, as anybody can write there.
	FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error
	// ReadLane returns up to limit events of one space after the given sequence.
	ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error)
	// CountLane counts the events of one space after a sequence, up to another. It may miss the
	// newest.
	CountLane(ctx context.Context, space string, after, upTo uint64) (int, error)
	// FindEvent returns the event of that name, and false if the lane has none: it
	// was never sent, or has been purged. It asks the stream's leader, and still may
	// be out of date when it returns.
	FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error)
	// FindEvents returns the events of an id, one per stream of the space that has one;
	// if space is "", those of all spaces. It may miss the newest.
	FindEvents(ctx context.Context, space, id string) ([]model.Message, error)
	// PurgeLane removes events of a partition, up to a sequence, that have been stored
	// for longer than age by the server's clock: from the first one on, a bounded
	// number at a time, and never the last event of the lane. It reports whether
	// there may be more to remove.
	PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (more bool, err error)
	// LaneEnd is the last sequence of a partition's lane.
	LaneEnd(ctx context.Context, partition int) (uint64, error)
	// LaneEvent returns the message at a sequence of a partition's lane, and false if there is
	// none (any more). One that is no event has no Space.
	LaneEvent(ctx context.Context, partition int, seq uint64) (model.Message, bool, error)
	// LaneBefore is the last sequence of a partition's lane up to which everything was stored
	// before a time, by the server's clock.
	LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error)
	// FillLane stores messages that are no events until a partition's lane reaches a sequence,
	// and takes the names of these events with them, as far as they are free. A lane that has
	// lost its end would otherwise give sequences out again, and take old events for new.
	FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error
}

// State is the projection of the log to documents.
type State interface {
	LoadState(ctx context.Context, space string) (model.SpaceState, error)
	// LoadMark returns the mark of a space, and when it was stored by the server's clock. It
	// asks the leader, and may be out of date.
	LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error)
	// SaveState writes the documents, then the mark. Every item whose stored
	// state is as new or newer (by Seq) is left alone and reported with
	// model.ErrOutdated (a *model.OutdatedError); then the mark is not written. Rev is updated in place.
	SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error
	// Forget lets go of what is remembered about a space only to be quick. It may be
	// called at any time.
	Forget(space string)
	// LoadItem returns one item of a space, a document or anything else that has a key
	// there (see model.StateDoc), and the mark if key is ""; the zero StateDoc, but for
	// the key, if there is none. It asks the leader.
	LoadItem(ctx context.Context, space, key string) (model.StateDoc, error)
	// DueSpaces lists the spaces of a partition that want to be woken at a time (see
	// model.DueKey). It may miss the newest.
	DueSpaces(ctx context.Context, partition int) ([]model.Due, error)
	// SavedSpaces lists the spaces of a partition that have a mark, sorted. It may miss the newest.
	SavedSpaces(ctx context.Context, partition int) ([]string, error)
	// PurgeState removes the markers of deleted items, as far as each is still what is
	// stored under its key and its Rev. It is for those that the mark covers.
	PurgeState(ctx context.Context, space string, markers []model.StateDoc) error
	// LoadPosition and SavePosition keep a number per partition and name that
	// only grows: saving a smaller one than is stored does nothing.
	LoadPosition(ctx context.Context, partition int, name string) (uint64, error)
	SavePosition(ctx context.Context, partition int, name string, seq uint64) error
	// PositionStored is when a position was saved last, by the server's clock; the zero time if
	// it never was.
	PositionStored(ctx context.Context, partition int, name string) (time.Time, error)
	// LoadAhead and SaveAhead keep how far a partition is done with its lane but for a few
	// spaces: saving one that reaches no further than what is stored does nothing. One that
	// was never saved, or cannot be read, is the zero Ahead.
	LoadAhead(ctx context.Context, partition int) (model.Ahead, error)
	SaveAhead(ctx context.Context, partition int, a model.Ahead) error
	// MovePosition keeps a number that may be smaller than what is stored: for a stream that
	// has lost its end.
	MovePosition(ctx context.Context, partition int, name string, seq uint64) error
}

// Records are what a deployment keeps beside its spaces: programs, and which space runs which.
// They are no part of Bus, since neither a worker nor a coordinator looks at them: package
// program does. Their keys are names, separated by dots.
type Records interface {
	// SaveRecord stores r if what stands under its key still has the revision r.Rev, 0
	// meaning nothing, and returns the new revision. That the same data stand there already
	// is a success as well. The error is model.ErrOutdated if something else stands there, or
	// model.ErrTooLarge.
	SaveRecord(ctx context.Context, r model.Record) (rev uint64, err error)
	// LoadRecord returns what stands under a key, with Rev 0 if nothing does. It asks the
	// leader, and may be out of date.
	LoadRecord(ctx context.Context, key string) (model.Record, error)
	// ListRecords returns the records whose keys begin with under and a dot, by key. It may
	// miss the newest.
	ListRecords(ctx context.Context, under string) ([]model.Record, error)
	// FollowRecords delivers the records whose keys begin with under and a dot, calls ready,
	// and then delivers each that is stored, the last of each key at the least. One that was
	// deleted has no Data.
	FollowRecords(ctx context.Context, under string, deliver func(model.Record), ready func()) error
}

// Observers carries leases from those who watch to those who own. It is best
// effort: leases are renewed, and a new owner asks for them by a roll call.
type Observers interface {
	Observe(l model.Lease) error
	FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error
	CallRoll(partition int) error
	FollowRollCalls(ctx context.Context, deliver func(partition int)) error
}

// Members is how workers know of each other.
type Members interface {
	Announce(ctx context.Context, m model.Member) error
	// FollowMembers delivers the last announcement of every member, then each new
	// one. ready is called once after the former.
	FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error
	// AnswerPings makes Ping(id) true until ctx ends; it returns once that is so.
	AnswerPings(ctx context.Context, id string) error
	// Ping reports whether a member's process is there. False is certain only of
	// the moment: nobody listens under that id.
	Ping(ctx context.Context, id string) (bool, error)
}

// DeadLetters are the events that did not end well.
type DeadLetters interface {
	// Bury stores a letter, unless there is one about that event: that is a success as
	// well. It waits for room and for an answer until ctx ends. The error is
	// model.ErrTooLarge for a letter that will never fit.
	Bury(ctx context.Context, d *model.DeadLetter) error
	// ReadDead returns up to limit letters of a space after the given sequence (see
	// DeadLetter.Seq), oldest first; of all spaces, if space is "". It may miss the
	// newest.
	ReadDead(ctx context.Context, space string, after uint64, limit int) ([]model.DeadLetter, error)
	// FindDead returns the letters about an event, one per stream of the space that
	// has one of that id.
	FindDead(ctx context.Context, space, id string) ([]model.DeadLetter, error)
	// ListDead returns the names of the letters of a space, or of all of them if space is "", in
	// no order and without what is in them: however many there are, that is one question, or a
	// few. It may miss the newest.
	ListDead(ctx context.Context, space string) ([]model.DeadName, error)
	// GetDead returns the letters of those names that there are, in no order: a few questions for
	// all of them.
	GetDead(ctx context.Context, names []model.DeadName) ([]model.DeadLetter, error)
}

// Services are questions that any one of those who serve them answers.
type Services interface {
	// Serve answers requests until ctx ends or the bus is stopped. It returns when
	// they can come.
	Serve(ctx context.Context, s model.Service) error
	// Ask asks one of those who serve the endpoint, and returns its answer or its
	// *model.ServiceError, or model.ErrNobody. A question may be asked more than once.
	Ask(ctx context.Context, endpoint string, request []byte) ([]byte, error)
	// Listen asks one of those who serve the endpoint and delivers the parts of its answer,
	// in order, until ctx ends. The error is what the answer ended with (a
	// *model.ServiceError), or model.ErrNobody. It asks once, and parts may get lost with
	// the connection: whoever answers has to say something now and then, and in a way that
	// shows what is missing.
	Listen(ctx context.Context, endpoint string, request []byte, deliver func(model.Part)) error
}
