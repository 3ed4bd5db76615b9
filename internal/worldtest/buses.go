package worldtest

import (
	"context"
	"sync/atomic"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// LaneCount is a bus that counts the events that a process reads off its lanes.
type LaneCount struct {
	port.Bus
	Read *atomic.Int64
}

// FollowLane implements port.Bus.
func (c LaneCount) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	return c.Bus.FollowLane(ctx, partition, after, func(m model.Message) {
		c.Read.Add(1)
		deliver(m)
	})
}

// ReadLane implements port.Bus.
func (c LaneCount) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	events, err := c.Bus.ReadLane(ctx, space, after, limit)
	c.Read.Add(int64(len(events)))
	return events, err
}

// Elder is the bus of a process of an older version, which sets no spaces aside.
type Elder struct{ port.Bus }

// LoadAhead implements port.Bus: nothing is set aside.
func (Elder) LoadAhead(context.Context, int) (model.Ahead, error) { return model.Ahead{}, nil }

// SaveAhead implements port.Bus: nothing is saved.
func (Elder) SaveAhead(context.Context, int, model.Ahead) error { return nil }

// Only returns a hook that applies a fate to the requests of one kind, and delivers all others.
func Only(label string, fate membus.Fate) membus.Hook {
	return func(op membus.Op) membus.Fate {
		if op.Label == label {
			return fate
		}
		return membus.Deliver
	}
}
