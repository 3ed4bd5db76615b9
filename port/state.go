package port

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// StateReader reads the saved documents of single spaces.
type StateReader interface {
	// LoadState returns everything that is saved for a space.
	LoadState(ctx context.Context, space string) (model.SpaceState, error)
	// LoadPart returns the mark of a space and one item, by its key (see model.StateDoc), both as one replica has
	// them at one moment, and nothing else. It costs the same for a space of any size. Any replica may answer, and
	// unlike LoadState, LoadPart does not notice one that lags: the log after an old mark may be purged.
	LoadPart(ctx context.Context, space, key string) (model.SpaceState, error)
	// LoadMark returns the checkpoint mark of a space, and when it was stored by the server's
	// clock. It asks the leader, and may be out of date.
	LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error)
	// LoadItem returns one item of a space, a document or anything else that has a key there (see
	// model.StateDoc), or the mark if key is "". If there is none, the result is zero except for its key. It
	// asks the leader.
	LoadItem(ctx context.Context, space, key string) (model.StateDoc, error)
}

// State is the projection of the log to documents.
type State interface {
	StateReader
	// SaveState writes the documents, then the mark. An item whose stored state is as new or newer (by Seq)
	// is not changed and is reported with model.ErrOutdated (a *model.OutdatedError); then the mark is not
	// written. An item with Kept replaces only the one with its Rev. Rev is updated in place.
	SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error
	// Forget drops what is cached about a space. It may be called at any time.
	Forget(space string)
	// PurgeState removes the markers of deleted items, provided that each marker is still stored under its
	// key with its Rev. The mark must cover them.
	PurgeState(ctx context.Context, space string, markers []model.StateDoc) error
	// SavePosition raises the number that LoadPosition returns. Saving a smaller number than the stored one
	// does nothing.
	SavePosition(ctx context.Context, partition int, name string, seq uint64) error
	// MovePosition stores such a number even if it is smaller than the stored one, for a stream that has lost
	// its end.
	MovePosition(ctx context.Context, partition int, name string, seq uint64) error
	// SaveAhead stores what LoadAhead returns. Saving one that reaches no further than the stored one does
	// nothing.
	SaveAhead(ctx context.Context, partition int, a model.Ahead) error
}

const (
	// PositionReleased is the name of the position in a partition's log up to which coordinators are done:
	// its sends to other spaces are released, their origins are notified of refusals, and dead letters are
	// written. The log is not purged beyond it.
	PositionReleased = "released"
	// PositionSent names the place that a partition's lane had reached, at least, when a coordinator stored
	// events there. A lane that ends before it, or holds another event there, has lost events that spaces had
	// sent. It is not a sequence; only coordinators read it.
	PositionSent = "sent"
)
