package membus

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/settlehq/settle/model"
)

// DueSpaces lists the spaces of a partition that want to be woken, by name.
func (s *stateStore) DueSpaces(partition int) []model.Due {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []model.Due
	for space, items := range s.partitions[partition].state.spaces { // any order: sorted below
		at, err := strconv.ParseInt(string(items[model.DueKey].Data), 10, 64)
		if err == nil && at > 0 {
			list = append(list, model.Due{Space: space, At: at})
		}
	}
	slices.SortFunc(list, func(a, b model.Due) int { return cmp.Compare(a.Space, b.Space) })
	return list
}

// DueSpaces lists the spaces of a partition that want to be woken.
func (c *stateClient) DueSpaces(ctx context.Context, partition int) ([]model.Due, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return recall(ctx, c.client, Op{Label: "due", Key: number(partition)}, func(behind int) []model.Due {
		return c.server.dueBehind(partition, behind)
	})
}

// dueBehind is DueSpaces as it was n changes of the bucket ago.
func (s *stateStore) dueBehind(number, n int) []model.Due {
	s.mu.Lock()
	st := &s.partitions[number].state
	if n <= 0 || !st.remember {
		s.mu.Unlock()
		return s.DueSpaces(number)
	}
	old := newPartition()
	for _, p := range st.history[:max(0, len(st.history)-n)] {
		old.state.keep(p.space, p.doc.Doc, p.doc)
	}
	s.mu.Unlock()
	return (&stateStore{&data{partitions: []*partition{old}}}).DueSpaces(0)
}

// LoadItem returns one item of a space, or its mark if key is "".
func (c *stateClient) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, err
	}
	if key != mark {
		if err := model.CheckStateKey(key); err != nil {
			return model.StateDoc{}, err
		}
	}
	return ask(ctx, c.client, Op{Label: "load-item", Space: space, Key: key}, func(int) model.StateDoc {
		d, _ := c.server.Saved(space, key)
		d.Doc, d.Data = key, bytes.Clone(d.Data)
		return d
	})
}
