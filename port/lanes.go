package port

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// Sender stores events in the lanes of their spaces.
type Sender interface {
	// Send stores an event unless its id is in the lane already. It calls done exactly once, from any
	// goroutine, with a definite answer, or with model.ErrLaneFull, model.ErrTooLarge, model.ErrForbidden or
	// model.ErrStopped, or with model.ErrRewound if m is bound. Sends of one caller to one space are stored
	// in the order of the calls if the caller waits for each answer before the next call.
	Send(m model.Message, done func(model.SendResult, error))
}

// LaneReader reads the events of single spaces.
type LaneReader interface {
	// ReadLane returns up to limit events of one space after a sequence.
	ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error)
	// FindEvent returns the event with a name. It returns false if the lane has none: the event was never
	// sent, or has been purged. It asks the leader, and may be out of date when it returns.
	FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error)
	// FindEvents returns the events with an id, one for each stream of the space that has one; those of all
	// spaces if space is "". It may miss the newest. If lanes are missing, it returns the events of the
	// others, with an error that is model.ErrNoStream and names the missing ones.
	FindEvents(ctx context.Context, space, id string) ([]model.Message, error)
	// CountLane counts the events of one space after a sequence, up to another. It may miss the
	// newest.
	CountLane(ctx context.Context, space string, after, upTo uint64) (int, error)
}

// Lanes are the queues of events.
type Lanes interface {
	Sender
	LaneReader
	// PurgeLane removes events of a partition, up to a sequence, that have been stored for longer than age by
	// the server's clock. It starts with the first event, removes a bounded number per call, and never
	// removes the last event of the lane. It reports whether more may be left to remove.
	PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (more bool, err error)
	// FillLane stores messages that are not events until a partition's lane reaches a sequence. They occupy
	// the names of the given events, where these are free. Without FillLane, a lane that has lost its end
	// would assign sequences again, and old events would count as new.
	FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error
}
