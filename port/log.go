package port

import (
	"context"

	"github.com/settlehq/settle/model"
)

// LogReader reads the commit log of single spaces.
type LogReader interface {
	// Head returns the sequence of the space's last commit, 0 if it has none. It asks the leader,
	// and may be out of date when it returns.
	Head(ctx context.Context, space string) (uint64, error)
	// ReadLog returns up to limit entries of the space after a sequence, oldest first. Fewer than
	// limit means that the reader saw the end as it was then. Purged entries are left out: see
	// model.LogEntry.Follows.
	ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error)
	// FollowSpace delivers the space's entries after a sequence, existing and future ones, without a consumer
	// on the server. It ends with model.ErrPurged rather than omit purged entries.
	FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error
}

// Log is the commit log of all spaces.
type Log interface {
	LogReader
	// Append appends a commit if the head of the space is still at a.Expect. It calls done exactly once, from
	// any goroutine, with a definite answer: the sequence, or model.ErrRefused, model.ErrTooLarge or
	// model.ErrStopped. A lost acknowledgement is resolved before done is called, by sending the identical
	// message again: no read proves that something is absent. Only one append per space may be under way.
	Append(a model.Append, done func(seq uint64, err error))
	// PurgeLog removes the commits of a space below a sequence, but never the last one, because appends are
	// compared with it. Any process may call it at any time, provided that a saved checkpoint covers the
	// removed commits; repeating the call does nothing.
	PurgeLog(ctx context.Context, space string, below uint64) error
}
