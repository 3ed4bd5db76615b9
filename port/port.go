package port

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// Deployment describes the deployment behind a connection.
type Deployment interface {
	// Prefix returns the name of the deployment, with which its subjects begin.
	Prefix() string
	// Partitions returns the number of partitions of the deployment.
	Partitions() int
	// Horizon returns how long the deployment remembers events.
	Horizon() time.Duration
	// MaxPayload returns the size in bytes of the largest message that the server accepts, including headers.
	MaxPayload() int
	// Epoch counts how often the store was found to have gone back to an earlier state. What was read in one
	// epoch is not valid in the next: a follow that began in an earlier epoch ends with model.ErrRewound, and
	// so does a request to store anything that depends on it. See Session.
	Epoch() uint64
	// StaleWindow returns how long a leader may answer from an earlier state: StaleLeader, or 0 if there is
	// only one server.
	StaleWindow() time.Duration
}

// StaleLeader is how long the leader of a stream may answer from an earlier state because it does not know
// yet that it has been deposed. A caller that learns from a leader that something is absent, and is not
// notified of it in another way, must ask again after this time.
const StaleLeader = 30 * time.Second

// Client is what a client of a deployment needs: it sends events, reads the log, the lanes and the saved
// state, and asks the workers.
type Client interface {
	Deployment
	LogReader
	LaneReader
	Sender
	StateReader
	Observers
	DeadLetters
	Services
}

// Survey is what a tool that examines a whole deployment needs: its members, its partitions and how far they
// are processed, and its dead letters.
type Survey interface {
	Client
	PartitionReader
	Members
}

// Bus is everything that a process that hosts spaces or releases events needs.
type Bus interface {
	Survey
	Log
	Lanes
	State
}

// Observers carries leases from the observers of documents to the owners of their spaces. It is best effort:
// observers renew their leases, and a new owner requests them by a roll call.
type Observers interface {
	Observe(l model.Lease) error
	FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error
	CallRoll(partition int) error
	FollowRollCalls(ctx context.Context, deliver func(partition int)) error
}

// Members announces the processes of a deployment to each other.
type Members interface {
	Announce(ctx context.Context, m model.Member) error
	// FollowMembers delivers the last announcement of every member, calls ready once, and then
	// delivers each new announcement.
	FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error
	// AnswerPings makes Ping(id) return true until ctx ends. It returns once that is the case.
	AnswerPings(ctx context.Context, id string) error
	// Ping reports whether the process of a member is listening. A false result holds for that moment only.
	Ping(ctx context.Context, id string) (bool, error)
}

// DeadLetters stores the events that failed or were refused.
type DeadLetters interface {
	// StoreDead stores a letter. It also succeeds if there is a letter about that event already. It waits for room
	// and for an answer until ctx ends. The error is model.ErrTooLarge for a letter that will never fit.
	StoreDead(ctx context.Context, d *model.DeadLetter) error
	// ReadDead returns up to limit letters of a space after a sequence (see DeadLetter.Seq),
	// oldest first; of all spaces, if space is "". It may miss the newest.
	ReadDead(ctx context.Context, space string, after uint64, limit int) ([]model.DeadLetter, error)
	// FindDead returns the letters about an event, one for each stream of the space that has a letter with
	// that id.
	FindDead(ctx context.Context, space, id string) ([]model.DeadLetter, error)
	// ListDead returns the names of the letters of a space, or of all spaces if space is "", in no order and
	// without their contents. It costs one request, or a few, for any number of letters. It may miss the
	// newest.
	ListDead(ctx context.Context, space string) ([]model.DeadName, error)
	// GetDead returns the letters with the given names that exist, in no order, in a few requests.
	GetDead(ctx context.Context, names []model.DeadName) ([]model.DeadLetter, error)
}

// DeadCounter is implemented by a bus that counts dead letters without listing them. It is not part of
// Client: a caller without a DeadCounter lists the names.
type DeadCounter interface {
	// CountDead counts the letters of a space and of a stream, "" for any. It costs a few requests,
	// regardless of their number, as long as KeepDeadTotals is called periodically; otherwise it lists the
	// names, as it always does for one stream of one space. It may miss the newest.
	CountDead(ctx context.Context, space, stream string) (model.DeadCounts, error)
	// KeepDeadTotals counts the letters since the last call by any process, and stores the totals. If there
	// are few, it does nothing. The error is model.ErrOutdated if another process does the same at this
	// moment, or model.ErrForbidden.
	KeepDeadTotals(ctx context.Context) error
}

// Services are requests that any process which serves an endpoint can answer.
type Services interface {
	// Serve answers requests until ctx ends or the bus is stopped. It returns once requests can
	// arrive.
	Serve(ctx context.Context, s model.Service) error
	// Ask asks one of the processes that serve the endpoint. It returns the answer, or the
	// *model.ServiceError sent instead, or model.ErrNoResponder. A question may be asked more than once.
	Ask(ctx context.Context, endpoint string, request []byte) ([]byte, error)
	// Listen asks one of the processes that serve the endpoint and delivers the parts of its answer in order,
	// until ctx ends. The error is the one that ended the answer (a *model.ServiceError), or model.ErrNoResponder.
	// It asks once, and parts can be lost with the connection: an answer needs a heartbeat, and parts that
	// reveal what is missing.
	Listen(ctx context.Context, endpoint string, request []byte, deliver func(model.Part)) error
}

// Records are what a deployment stores besides its spaces: programs, and rules that choose the program of a
// space. Package program uses them; they are not part of Bus. A key consists of names, separated by dots.
type Records interface {
	// SaveRecord stores r if the record under its key still has the revision r.Rev, where 0 means none, and
	// returns the new revision. It also succeeds if the same data is stored already. The error is
	// model.ErrOutdated if other data is stored, or model.ErrTooLarge.
	SaveRecord(ctx context.Context, r model.Record) (rev uint64, err error)
	// LoadRecord returns the record under a key, with Rev 0 if there is none. It asks the leader,
	// and may be out of date.
	LoadRecord(ctx context.Context, key string) (model.Record, error)
	// ListRecords returns the records whose keys begin with under and a dot, sorted by key. It may miss the
	// newest.
	ListRecords(ctx context.Context, under string) ([]model.Record, error)
	// FollowRecords delivers the records whose keys begin with under and a dot, calls ready, and then
	// delivers records as they are stored: at least the last one for each key. A deleted one has no Data.
	FollowRecords(ctx context.Context, under string, deliver func(model.Record), ready func()) error
}
