package settle

import (
	"context"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// Reading returns a reader of those documents of the space for whose names among is true: of several that belong together, again and again.
// What has not changed between two readings costs nothing.
func (s Space) Reading(ctx context.Context, among func(doc string) bool) (*history.Documents, error) {
	if err := model.CheckName("space", s.name); err != nil {
		return nil, err
	}
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	return history.NewDocuments(s.client.bus, s.name, among), nil
}
