package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
)

// FindEvents returns the events of an id, of a space or of all of them. See
// port.Lanes.
func (b *Bus) FindEvents(ctx context.Context, space, id string) ([]model.Message, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	if err := model.CheckAnyEventID(id); err != nil {
		return nil, err
	}
	if space != "" {
		return b.findEvents(ctx, b.partitionOf(space), space, id)
	}
	var all []model.Message
	var missing []error
	for p := range b.Partitions() {
		found, err := b.findEvents(ctx, p, space, id)
		if errors.Is(err, errNoStream) {
			missing = append(missing, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, errors.Join(missing...)
}

func (b *Bus) findEvents(ctx context.Context, p int, space, id string) ([]model.Message, error) {
	found, err := b.readAll(ctx, b.names.laneStream(p), b.names.eventsOf(p, space, id))
	if err != nil {
		return nil, fmt.Errorf("find events %s in lane %d: %w", id, p, err)
	}
	var events []model.Message
	for _, s := range found {
		if m, ok := b.event(p, s); ok {
			events = append(events, m)
		}
	}
	return events, nil
}

// readAll reads the one message of each subject of a pattern, of which there are few.
func (b *Bus) readAll(ctx context.Context, stream, pattern string) ([]storedMsg, error) {
	found, more, err := b.batchGet(ctx, stream, getRequest{MultiLast: []string{pattern}, MaxBytes: stateBytes})
	if err == nil && more {
		err = errTooMany
	}
	return found, err
}
