package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// A space is read from its checkpoint and the log after it. The log may be purged up to a newer
// checkpoint at any moment; a reader of the older one then finds a gap: the next commit was
// appended after one that the reader has not seen. Its state is useless then, and it reads the
// newer checkpoint.

// maxLoads is how often a checkpoint is read again because the log after it was purged, before the
// log is considered damaged: each time, a newer checkpoint must have been saved.
const maxLoads = 20

// OverGaps repeats a read that met a gap.
func OverGaps(ctx context.Context, space string, read func() error) error {
	for try := 1; ; try++ {
		err := read()
		switch {
		case !errors.Is(err, model.ErrPurged) || ctx.Err() != nil:
			return err
		case try == maxLoads:
			return &model.LossError{Kind: model.LossOfState, Space: space}
		}
		_ = pause.For(ctx, pause.Backoff(try))
	}
}

// Replay applies the visible log after the replica's sequence. The error is model.ErrPurged if a
// part of it is gone.
func Replay(ctx context.Context, bus port.Client, r *replica.Replica) error {
	for {
		entries, err := bus.ReadLog(ctx, r.Space, r.Seq, readPage)
		if err != nil {
			return fmt.Errorf("read log after %d: %w", r.Seq, err)
		}
		for i := range entries {
			if err := replayEntry(r, &entries[i]); err != nil {
				return err
			}
		}
		if len(entries) < readPage {
			return nil
		}
	}
}

func replayEntry(r *replica.Replica, e *model.LogEntry) error {
	if err := e.Follows(r.Seq); err != nil {
		return err
	}
	c, err := e.Commit()
	if err == nil {
		err = r.Accepts(e, c)
	}
	if err != nil {
		return err
	}
	if _, err = r.Apply(e.Seq, c); err != nil {
		return e.Unreadable(err)
	}
	return nil
}
