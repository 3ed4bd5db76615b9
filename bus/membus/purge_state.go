package membus

import (
	"context"

	"github.com/settlehq/settle/model"
)

// PurgeState removes the marker of a deleted item, if it is still what is stored.
func (s *stateStore) PurgeState(space string, marker model.StateDoc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.of(space).state
	if d, there := st.spaces[space][marker.Doc]; there && d.Data == nil && d.Rev == marker.Rev {
		delete(st.spaces[space], marker.Doc)
		if st.remember {
			st.history = append(st.history, put{space, model.StateDoc{Doc: marker.Doc, Rev: purgedRev}})
		}
	}
}

// purgedRev marks a removal in a bucket's history.
const purgedRev = 0

// PurgeState removes markers of deleted items.
func (c *stateClient) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	if err := checkState(space, markers); err != nil {
		return err
	}
	for _, m := range markers {
		_, err := ask(ctx, c.client, Op{Label: "purge-state", Space: space, Key: m.Doc}, func(int) bool {
			c.server.PurgeState(space, m)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}
