package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// FindEvents returns the events of an id, of a space or of all of them. See
// port.Lanes.
func (l *lanes) FindEvents(ctx context.Context, space, id string) ([]model.Message, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	if err := model.CheckAnyEventID(id); err != nil {
		return nil, err
	}
	if space != "" {
		return l.findEvents(ctx, l.PartitionOf(space), space, id)
	}
	var all []model.Message
	var missing []error
	for p := range l.Partitions() {
		found, err := l.findEvents(ctx, p, space, id)
		if errors.Is(err, wire.ErrNoStream) {
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

func (l *lanes) findEvents(ctx context.Context, p int, space, id string) ([]model.Message, error) {
	found, err := l.ReadAll(ctx, l.Names.LaneStream(p), l.Names.EventsOf(p, space, "", id))
	if err != nil {
		return nil, fmt.Errorf("find events %s in lane %d: %w", id, p, err)
	}
	var events []model.Message
	for _, s := range found {
		if m, ok := l.event(p, s); ok {
			events = append(events, m)
		}
	}
	return events, nil
}
