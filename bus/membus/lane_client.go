package membus

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// laneClient sends and reads events.
type laneClient struct{ *client }

// Send stores an event unless its id is in the lane.
func (c *laneClient) Send(m model.Message, done func(model.SendResult, error)) {
	c.sendTo(model.PartitionOf(m.Space, c.Partitions()), Op{Label: "send", Space: m.Space}, m, done)
}

// SendAstray is Send to the lane of a partition that the space need not belong to: see Server.SendTo.
func (c *laneClient) SendAstray(partition int, m model.Message, done func(model.SendResult, error)) {
	c.sendTo(partition, Op{Label: "send-astray", Space: m.Space, Key: number(partition)}, m, done)
}

func (c *laneClient) sendTo(partition int, op Op, m model.Message, done func(model.SendResult, error)) {
	if err := checkMessage(m); err != nil {
		go done(model.SendResult{}, err) // ends when done returns
		return
	}
	if !model.IsMinted(m.ID) {
		m = m.Plain()
	}
	r := storing(op, func(op Op) func() {
		result, err := c.server.SendTo(partition, m)
		c.report(Step{Moment: Arrives, Op: op, Event: &m, Seq: result.Seq, Err: err})
		return func() { done(result, err) }
	}, func() { done(model.SendResult{}, model.ErrStopped) })
	if m.Bound {
		r.epoch, r.rewound = m.Epoch, func() { done(model.SendResult{}, fmt.Errorf("send event %s: %w", m.ID, model.ErrRewound)) }
	}
	m.Bound, m.Epoch = false, 0 // neither is stored
	c.submit(r)
}

// ReadLane returns up to limit events of one space after sequence after.
func (c *laneClient) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	return recall(ctx, c.client, Op{Label: "read-lane", Space: space}, func(behind int) []model.Message {
		return c.server.readLaneBehind(space, after, limit, behind)
	})
}

// CountLane counts the events of one space in a part of its lane.
func (c *laneClient) CountLane(ctx context.Context, space string, after, upTo uint64) (int, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	return recall(ctx, c.client, Op{Label: "count-lane", Space: space}, func(int) int { return c.server.CountLane(space, after, upTo) })
}

// FindEvent returns the named event, if the lane has it.
func (c *laneClient) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	if err := checkMessage(model.Message{Space: space, Stream: stream, ID: id}); err != nil {
		return model.Message{}, false, err
	}
	type answer struct {
		m  model.Message
		ok bool
	}
	a, err := recall(ctx, c.client, Op{Label: "find-event", Space: space, Key: stream + "." + id}, func(behind int) answer {
		m, ok := c.server.findEventBehind(space, stream, id, behind)
		return answer{m, ok}
	})
	return a.m, a.ok, err
}

// LaneEnd returns the last sequence of a partition's lane.
func (c *laneClient) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return 0, err
	}
	return recall(ctx, c.client, Op{Label: "lane-end", Key: number(partition)}, func(behind int) uint64 { return c.server.laneEndBehind(partition, behind) })
}

// FindEvents returns the events with an id, of a space or of all if space is "".
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

// FollowLane delivers the events of a partition after sequence after.
func (c *laneClient) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	look := func(after uint64) ([]model.Message, <-chan struct{}) {
		return c.server.FollowLane(partition, after, batch)
	}
	return follow(ctx, c.client, Op{Label: "follow-lane", Key: number(partition)}, after, look, func(m model.Message) uint64 { return m.Seq }, func(m model.Message) {
		if m.Space != "" { // filler messages are no events
			deliver(m)
		}
	})
}

// LaneEvent returns the message at a sequence of a partition's lane. See port.Lanes.
func (c *laneClient) LaneEvent(ctx context.Context, partition int, seq uint64) (model.Message, bool, error) {
	type found struct {
		m     model.Message
		there bool
	}
	if err := c.server.checkPartition(partition); err != nil {
		return model.Message{}, false, err
	}
	f, err := ask(ctx, c.client, Op{Label: "lane-event", Key: number(partition)}, func(int) (f found) {
		f.m, f.there = c.server.LaneEvent(partition, seq)
		return f
	})
	return f.m, f.there, err
}

// LaneBefore returns the highest sequence of a lane such that every message up to it is older than a time. See
// port.Lanes.
func (c *laneClient) LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return 0, err
	}
	return ask(ctx, c.client, Op{Label: "lane-before", Key: number(partition)}, func(int) uint64 { return c.server.LaneBefore(partition, at) })
}

// FillLane stores messages that are no events. See port.Lanes.
func (c *laneClient) FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	_, err := store(ctx, c.client, Op{Label: "fill-lane", Key: number(partition)}, func(Op) struct{} {
		c.server.FillLane(partition, upTo, names)
		return struct{}{}
	})
	return err
}

// PurgeLane removes old events of a partition.
func (c *laneClient) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (more bool, err error) {
	if err := c.server.checkPartition(partition); err != nil {
		return false, err
	}
	return ask(ctx, c.client, Op{Label: "purge-lane", Key: number(partition)}, func(int) bool { return c.server.PurgeLane(partition, upTo, age) })
}

func checkMessage(m model.Message) error {
	if err := model.CheckName("space", m.Space); err != nil {
		return err
	}
	if err := model.CheckName("stream", m.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(m.ID)
}
