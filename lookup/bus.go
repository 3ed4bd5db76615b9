package lookup

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// Bus is the part of port.Bus that this package needs; the methods are documented there.
type Bus interface {
	Head(ctx context.Context, space string) (uint64, error)
	ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error)
	FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error
	LoadState(ctx context.Context, space string) (model.SpaceState, error)
	LoadItem(ctx context.Context, space, key string) (model.StateDoc, error)
	ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error)
	FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error)
	Horizon() time.Duration
	Epoch() uint64
}

const (
	// readPage is the number of log or lane entries read per request.
	readPage = 512
	// dryReads is how often a reader that expects an entry may read nothing before it asks the
	// leader whether the log still reaches that far.
	dryReads = 5
)
