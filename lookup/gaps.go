package lookup

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Reading a space is its checkpoint and the log behind it. The log may be purged up to the
// checkpoint at any moment, and who has read an older one then finds a gap: the next commit
// was appended behind one that the reader has not seen. What it has is of no use then; it
// reads the checkpoint again, which is newer.

// maxLoads is how often a checkpoint is read again because the log behind it was purged,
// before that is taken for damage: every time, a newer checkpoint must have been saved.
const maxLoads = 20

// OverGaps repeats a reading that has met a gap.
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

// Replay applies the log after the replica's sequence, as far as it can be seen. The error is
// model.ErrPurged if a part of that is gone.
func Replay(ctx context.Context, bus Bus, r *replica.Replica) error {
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
	c, err := model.DecodeCommit(e.Data)
	if err != nil {
		return fmt.Errorf("log sequence %d: %w", e.Seq, err)
	}
	_, err = r.Apply(e.Seq, c)
	return err
}
