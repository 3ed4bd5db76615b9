package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// DueSpaces returns the spaces of a partition that must be woken at a time. See port.State.
func (s *states) DueSpaces(ctx context.Context, partition int) ([]model.Due, error) {
	if err := s.CheckPartition(partition); err != nil {
		return nil, err
	}
	bucket := s.Names.StateBucket(partition)
	var list []model.Due
	err := s.Persist(ctx, func(ctx context.Context) error {
		pattern := wire.BucketSubject(bucket, "*."+model.DueKey)
		found, more, err := s.BatchGet(ctx, wire.BucketStream(bucket), wire.GetRequest{MultiLast: []string{pattern}, MaxBytes: wire.StateBytes})
		if more || errors.Is(err, wire.ErrTooMany) {
			found, err = s.Scan(ctx, wire.BucketStream(bucket), pattern)
		}
		if err == nil {
			list = dues(found, wire.BucketSubject(bucket, ""))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("spaces of partition %d that want to be woken: %w", partition, err)
	}
	return list, nil
}

func dues(found []wire.StoredMsg, prefix string) []model.Due {
	list := make([]model.Due, 0, len(found))
	for _, m := range found {
		space := strings.TrimSuffix(strings.TrimPrefix(m.Subject, prefix), "."+model.DueKey)
		at, err := strconv.ParseInt(string(stateDoc(m).Data), 10, 64)
		_, known := wire.Decimal(m.Header, wire.HeaderSeq)
		if err == nil && known && at > 0 && at <= model.MaxMillis && model.CheckName("space", space) == nil {
			list = append(list, model.Due{Space: space, At: at})
		}
	}
	return list
}
