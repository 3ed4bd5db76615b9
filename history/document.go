package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Read returns a document as the log has it now.
func Read(ctx context.Context, bus port.Client, space, doc string) (d *replica.Document, err error) {
	for {
		epoch := bus.Epoch()
		d, err = readUpTo(ctx, bus, space, doc, func() error {
			if bus.Epoch() != epoch {
				return model.ErrRewound
			}
			return nil
		})
		if !errors.Is(err, model.ErrRewound) || bus.Epoch() == epoch || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of space %s: %w", doc, space, err)
	}
	return d, nil
}

// readUpTo reads a document up to the head of the log at the time of the call.
func readUpTo(ctx context.Context, bus port.Client, space, doc string, holds func() error) (d *replica.Document, err error) {
	head, err := bus.Head(ctx, space) // the leader's: a replica that lags is read again
	if err != nil {
		return nil, err
	}
	load := bus.LoadPart
	err = OverGaps(ctx, space, func() error {
		d, err = readOnce(ctx, bus, load, space, doc, head, holds)
		load = func(ctx context.Context, space, key string) (model.SpaceState, error) {
			return loadNewest(ctx, bus, space, key, holds)
		}
		return err
	})
	return d, err
}

// loadNewest is LoadPart with a mark that is not older than the leader's. The log after an older one may be purged, and
// a replica that lags for long shows it for long.
func loadNewest(ctx context.Context, bus port.Client, space, key string, holds func() error) (model.SpaceState, error) {
	for try := 1; ; try++ {
		st, err := bus.LoadPart(ctx, space, key)
		if err != nil {
			return st, err
		}
		mark, _, err := bus.LoadMark(ctx, space)
		if err != nil || st.Mark.Rev >= mark.Rev {
			return st, err
		}
		_ = pause.For(ctx, pause.Backoff(try))
		if ctx.Err() != nil {
			return st, ctx.Err()
		}
		if err := holds(); err != nil {
			return st, err
		}
	}
}

// readOnce reads a document from a checkpoint and the log after it, at least up to head. It stops when holds
// returns an error, since a log that has gone back may never reach head.
//
// It reads the document and the mark, and not the space. The item of the document and the mark are of one moment, so
// that the item has every change up to the mark, and maybe some after it, which its sequence tells. The log supplies
// the others. Each commit names the one before it, so that one that is purged, or that a replica lacks, is missed.
func readOnce(ctx context.Context, bus port.Client, load func(ctx context.Context, space, key string) (model.SpaceState, error), space, doc string, head uint64, holds func() error) (*replica.Document, error) {
	st, err := load(ctx, space, doc)
	if err != nil {
		return nil, err
	}
	d, err := replica.LoadDocument(doc, st)
	if err != nil {
		return nil, err
	}
	if d.Read > 0 && d.Read >= head {
		return d, nil // usually: the checkpoint of a quiet space has all of its log
	}
	for {
		entries, err := bus.ReadLog(ctx, space, d.Read, readPage)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if _, err := d.Take(&e, func() (*model.Commit, error) { return ReadCommit(ctx, bus, &e) }); err != nil {
				return nil, err
			}
		}
		switch {
		case len(entries) == readPage:
		case d.Read >= head:
			return d, nil
		case len(entries) == 0:
			_ = pause.For(ctx, time.Millisecond)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := holds(); err != nil {
			return nil, err
		}
	}
}
