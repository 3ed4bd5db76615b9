package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/settlehq/settle/model"
)

// A position is an item of the STATE bucket that reflects the log sequence which
// it is. Its text is for people; what counts is the Settle-Seq header, as with
// every item.

// LoadPosition returns the number kept for a partition under a name, 0 if there is
// none. See worker.State.
func (b *Bus) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	there, err := b.position(ctx, partition, name)
	return there.Seq, err
}

// SavePosition keeps seq if it is larger than what is kept. See worker.State.
func (b *Bus) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	epoch := b.past.now()
	there, err := b.position(ctx, partition, name)
	if err != nil || there.Seq >= seq {
		return err
	}
	d := model.StateDoc{Data: strconv.AppendUint(nil, seq, 10), Seq: seq, Rev: there.Rev}
	err = b.saveItems(ctx, partition, epoch, []item{{positionPrefix + name, &d}})
	if errors.Is(err, model.ErrOutdated) {
		return nil
	}
	return err
}

func (b *Bus) position(ctx context.Context, partition int, name string) (model.StateDoc, error) {
	if err := b.checkPartition(partition); err != nil {
		return model.StateDoc{}, err
	}
	if err := model.CheckName("position", name); err != nil {
		return model.StateDoc{}, err
	}
	there, err := b.readItem(ctx, partition, positionPrefix+name)
	if err != nil && !errors.Is(err, errNoMessage) {
		return model.StateDoc{}, fmt.Errorf("position %s of partition %d: %w", name, partition, err)
	}
	return there, nil
}
