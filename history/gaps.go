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

// A space is read from its checkpoint and the log after it. The log may be purged up to a newer checkpoint at
// any time; a reader of the older one then finds a gap: the next commit follows one that the reader has not
// seen. The reader discards its state and reads the newer checkpoint.

// maxLoads limits how often a checkpoint is read again because the log after it was purged, before the log is
// considered damaged: each time, a newer checkpoint must have been saved.
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
			if err := replayEntry(ctx, bus, r, &entries[i]); err != nil {
				return err
			}
		}
		if len(entries) < readPage {
			return nil
		}
	}
}

func replayEntry(ctx context.Context, bus port.Client, r *replica.Replica, e *model.LogEntry) error {
	if err := e.Follows(r.Seq); err != nil {
		return err
	}
	err := applyEntry(r, e)
	if _, is := errors.AsType[*model.UnreadableError](err); !is {
		return err
	}
	c, decided := Substitute(ctx, bus, e)
	if decided != nil {
		return decided
	}
	if c == nil {
		return err
	}
	_, err = r.Apply(e.Seq, c)
	return err
}

func applyEntry(r *replica.Replica, e *model.LogEntry) error {
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

// Substitute returns the commit that an operator has chosen to replace one that cannot be decoded, nil if there
// is none.
func Substitute(ctx context.Context, bus port.Client, e *model.LogEntry) (*model.Commit, error) {
	item, err := bus.LoadItem(ctx, e.Space, model.StateKeyOfQuarantine(e.Seq))
	if err != nil || len(item.Data) == 0 || item.Seq == 0 { // without a sequence it is not one of Settle's
		return nil, err
	}
	q, err := model.DecodeQuarantined(item.Data)
	if err != nil {
		return nil, fmt.Errorf("space %s: %w", e.Space, err)
	}
	return q.Substitute(e)
}

// ReadCommit decodes the commit of an entry, or returns the one that an operator has chosen to replace it.
func ReadCommit(ctx context.Context, bus port.Client, e *model.LogEntry) (*model.Commit, error) {
	c, err := e.Commit()
	if err == nil {
		return c, nil
	}
	stand, decided := Substitute(ctx, bus, e)
	if stand != nil || decided != nil {
		return stand, decided
	}
	return nil, err
}
