package membus

import (
	"context"

	"github.com/settlehq/settle/model"
)

// FindEvents returns the events of an id, of a space or of all if it is "".
func (s *laneStore) FindEvents(space, id string) []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []model.Message
	for _, p := range s.partitions {
		for _, m := range p.lane.messages {
			if m.ID == id && s.of(m.Space) == p && (space == "" || m.Space == space) {
				found = append(found, m)
			}
		}
	}
	return cloneMessages(found)
}

// FindEvents returns the events of an id, of a space or of all if it is "".
func (c *laneClient) FindEvents(ctx context.Context, space, id string) ([]model.Message, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	if err := model.CheckAnyEventID(id); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "find-events", Space: space, Key: id}, func(int) []model.Message {
		return c.server.FindEvents(space, id)
	})
}
