package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// DueSpaces returns the spaces of a partition that must be woken at a time. See port.State.
func (b *Bus) DueSpaces(ctx context.Context, partition int) ([]model.Due, error) {
	if err := b.checkPartition(partition); err != nil {
		return nil, err
	}
	bucket := b.names.stateBucket(partition)
	var list []model.Due
	err := b.persist(ctx, func(ctx context.Context) error {
		pattern := bucketSubject(bucket, "*."+model.DueKey)
		found, more, err := b.batchGet(ctx, bucketStream(bucket), getRequest{MultiLast: []string{pattern}, MaxBytes: stateBytes})
		if more || errors.Is(err, errTooMany) {
			found, err = b.scan(ctx, bucketStream(bucket), pattern)
		}
		if err == nil {
			list = dues(found, bucketSubject(bucket, ""))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("spaces of partition %d that want to be woken: %w", partition, err)
	}
	return list, nil
}

func dues(found []storedMsg, prefix string) []model.Due {
	list := make([]model.Due, 0, len(found))
	for _, m := range found {
		space := strings.TrimSuffix(strings.TrimPrefix(m.Subject, prefix), "."+model.DueKey)
		at, err := strconv.ParseInt(string(stateDoc(m).Data), 10, 64)
		if err == nil && at > 0 && model.CheckName("space", space) == nil {
			list = append(list, model.Due{Space: space, At: at})
		}
	}
	return list
}

// LoadItem returns one item of a space, or its mark. See port.State.
func (b *Bus) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, err
	}
	name := key
	if key == "" {
		name = markKey
	} else if err := model.CheckStateKey(key); err != nil {
		return model.StateDoc{}, err
	}
	d, err := b.readItem(ctx, b.partitionOf(space), space+"."+name)
	if err != nil && !errors.Is(err, errNoMessage) {
		return model.StateDoc{}, fmt.Errorf("load %s of space %s: %w", name, space, err)
	}
	d.Doc = key
	return d, nil
}
