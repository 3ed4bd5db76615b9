package history

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Recall returns the receipts of the events that a space has handled under positions that their origin has
// reissued: those that the origin had sent before, in commits that are lost. It searches the log of the space
// up to a sequence that is known to exist; purged receipts are not found. A lagging replica is asked again.
func Recall(ctx context.Context, bus port.Client, space string, of model.Reissued, upTo uint64) ([]model.Receipt, error) {
	for n := uint64(readPage); ; n *= 8 {
		after := upTo - min(upTo, n)
		found, whole, err := recallBehind(ctx, bus, space, of, after, upTo)
		if err != nil {
			return nil, fmt.Errorf("recall what space %s handled of space %s from position %d on: %w", space, of.Origin, of.First, err)
		}
		if whole || after == 0 {
			return found, nil
		}
	}
}

// recallBehind searches the log after a sequence. It reports whether nothing before that can match.
func recallBehind(ctx context.Context, bus port.Client, space string, of model.Reissued, after, upTo uint64) (found []model.Receipt, whole bool, err error) {
	for dry := 0; after < upTo; dry++ {
		_ = pause.For(ctx, pause.Backoff(dry))
		page, err := bus.ReadLog(ctx, space, after, readPage)
		switch {
		case err != nil:
			return nil, false, err
		case ctx.Err() != nil:
			return nil, false, ctx.Err()
		case len(page) > 0:
			dry = -1
		}
		for i := range page {
			c, err := ReadCommit(ctx, bus, &page[i])
			if err != nil {
				return nil, false, err
			}
			for j := range c.Txs {
				rc := handledOf(&c.Txs[j], of.Origin)
				switch {
				case rc == nil || rc.Term >= of.Term:
				case rc.Pos < of.First:
					whole = whole || len(found) == 0
				case rc.Pos <= of.Last:
					found = append(found, *rc)
				}
			}
			after = page[i].Seq
		}
	}
	return found, whole, nil
}

// handledOf returns the receipt of an event of an origin that was handled, or that has waited for its time
// since; nil for anything else.
func handledOf(tx *model.Tx, origin string) *model.Receipt {
	rc := tx.Receipt
	if w := tx.Later; w != nil {
		rc = &model.Receipt{Event: w.ID, Pos: w.Position, Term: w.Term, ReplayKey: w.ReplayKey, Outcome: model.Handled}
	}
	if rc == nil || rc.Pos == 0 || rc.Slot > 0 || rc.Outcome != model.Handled || rc.ReplayKey == 0 {
		return nil
	}
	if from, minted := model.OriginOf(rc.Event); !minted || from.Space != origin {
		return nil
	}
	return rc
}
