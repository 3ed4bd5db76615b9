package port

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// PartitionReader reads the streams of a whole partition, and how far each has been processed.
type PartitionReader interface {
	// FollowLog delivers the entries of all spaces of a partition after a sequence, existing and future ones.
	// It omits purged entries.
	FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error
	// FollowReleases is FollowLog for a coordinator: entries that are Inert may have no Data.
	FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error
	// LogState returns the size of a partition's log, and the sequence up to which its entries are older than
	// age by the server's clock. It asks the leader, and may be out of date.
	LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error)
	// LogTail returns the last n entries of a partition's log that were not purged. It may miss the newest.
	LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error)
	// LogSpaces returns the spaces of a partition with more than one commit in the log, sorted.
	LogSpaces(ctx context.Context, partition int) ([]string, error)
	// Spaces returns the spaces with a commit in the log, sorted. It asks the leaders, and may miss the newest. If logs are missing,
	// it returns the spaces of the other partitions, and the error is model.ErrNoStream.
	Spaces(ctx context.Context) ([]string, error)
	// FollowLane delivers the events in the lane of a partition after a sequence. Some may belong to spaces
	// of another partition, because any client can publish there.
	FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error
	// LaneEnd returns the last sequence of a partition's lane.
	LaneEnd(ctx context.Context, partition int) (uint64, error)
	// LaneEvent returns the message at a sequence of a partition's lane. It returns false if there is none,
	// or it was removed. A message that is not an event has no Space.
	LaneEvent(ctx context.Context, partition int, seq uint64) (model.Message, bool, error)
	// LaneBefore returns the last sequence of a partition's lane up to which every message was
	// stored before a time, by the server's clock.
	LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error)
	// DueSpaces returns the spaces of a partition that must be loaded at a time (see model.DueKey). It may
	// miss the newest.
	DueSpaces(ctx context.Context, partition int) ([]model.Due, error)
	// SavedSpaces lists the spaces of a partition that have a mark, sorted. It may miss the newest.
	SavedSpaces(ctx context.Context, partition int) ([]string, error)
	// LoadPosition returns the number that is stored for a partition under a name.
	LoadPosition(ctx context.Context, partition int, name string) (uint64, error)
	// PositionStored returns when a position was last saved, by the server's clock; the zero time if it never
	// was.
	PositionStored(ctx context.Context, partition int, name string) (time.Time, error)
	// LoadAhead returns how far a partition is done with its lane except for a few spaces. It returns the
	// zero Ahead if none was saved, or if it cannot be read.
	LoadAhead(ctx context.Context, partition int) (model.Ahead, error)
}
