package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// FollowLane delivers the events of a partition. See port.Lanes.
func (l *lanes) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	t := wire.Tail{Stream: l.Names.LaneStream(partition), After: after}
	return l.Follow(ctx, t, func(d wire.Delivery) {
		s := wire.StoredMsg{Subject: d.Subject, Seq: d.Seq, Time: d.Time, Header: d.Header, Data: d.Data}
		m, ok := eventOf(s)
		if !ok && wire.Header(s.Header, wire.HeaderFill) != "" {
			return
		}
		if !ok {
			l.PassOver(t.Stream, s.Seq, s.Subject, "its subject is not that of an event; `settle where` prints the subject of a space's events")
			return
		}
		deliver(m)
	})
}

// ReadLane returns up to limit events of one space, fewer only if it has no more. See port.Lanes.
func (l *lanes) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	p := l.PartitionOf(space)
	var events []model.Message
	for {
		want := limit - len(events)
		found, err := l.ReadPages(ctx, l.Names.LaneStream(p), l.Names.LaneOfSpace(p, space), after, want)
		if err != nil {
			return nil, fmt.Errorf("lane of space %s after %d: %w", space, after, err)
		}
		events = slices.Grow(events, len(found))
		for _, s := range found {
			after = s.Seq
			if m, ok := l.event(p, s); ok {
				events = append(events, m)
			}
		}
		if len(found) < want || len(events) >= limit {
			return events, nil
		}
	}
}

// FindEvent returns the event of that name. See port.Lanes.
func (l *lanes) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	m := model.Message{Space: space, Stream: stream, ID: id}
	if err := wire.CheckMessage(&m); err != nil {
		return model.Message{}, false, err
	}
	p := l.PartitionOf(space)
	s, err := l.LeaderGet(ctx, l.Names.LaneStream(p), wire.GetRequest{LastFor: l.Names.EventsOf(p, space, stream, id)})
	switch {
	case errors.Is(err, wire.ErrNoMessage):
		return model.Message{}, false, nil
	case err != nil:
		return model.Message{}, false, fmt.Errorf("find event %s to stream %s of space %s: %w", id, stream, space, err)
	}
	m, ok := l.event(p, s)
	return m, ok, nil
}

// LaneEnd returns the last sequence of a partition's lane. See port.Lanes.
func (l *lanes) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	if err := l.CheckPartition(partition); err != nil {
		return 0, err
	}
	info, err := l.StreamInfo(ctx, l.Names.LaneStream(partition))
	if err != nil {
		return 0, fmt.Errorf("end of lane %d: %w", partition, err)
	}
	l.Past.Note(l.Names.LaneStream(partition), wire.Anchor{Seq: info.State.LastSeq})
	return info.State.LastSeq, nil
}

// CountLane counts the events of a space in a part of its lane. See port.Lanes.
func (l *lanes) CountLane(ctx context.Context, space string, after, upTo uint64) (int, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	p := l.PartitionOf(space)
	var n [2]int
	for i, behind := range []uint64{after, upTo} {
		if behind == math.MaxUint64 {
			continue
		}
		var err error
		if n[i], err = l.CountFrom(ctx, l.Names.LaneStream(p), l.Names.LaneOfSpace(p, space), behind+1); err != nil {
			return 0, fmt.Errorf("count the events of space %s: %w", space, err)
		}
	}
	return max(0, n[0]-n[1]), nil
}

// event decodes an event of a partition from its lane; ok is false if the message is not an event. An event
// of another partition is not found here: the lane's owner forwards it to the right one.
func (l *lanes) event(partition int, s wire.StoredMsg) (model.Message, bool) {
	m, ok := eventOf(s)
	return m, ok && l.PartitionOf(m.Space) == partition
}

// eventOf reads an event. Clients can store a message under an invalid name, which could never be handled; whatever the
// headers of a client's message say, only the system gives an event a position, a term or a depth, or makes it a tombstone. A
// client that calls its own message one that fills the lane has sent no event.
func eventOf(s wire.StoredMsg) (model.Message, bool) {
	m, sent, ok := wire.ParseEvent(s.Subject)
	if !ok || wire.Header(s.Header, wire.HeaderFill) != "" {
		return model.Message{}, false
	}
	m.Seq, m.Stored, m.Payload = s.Seq, s.Time, s.Data
	m.Trace = wire.Trace(s.Header)
	if !sent {
		readSystem(&m, s.Header)
	}
	m.NotBefore, m.Expires = wire.Millis(s.Header, wire.HeaderNotBefore), wire.Millis(s.Header, wire.HeaderExpires)
	return m, true
}

// readSystem reads what only the system says of an event.
func readSystem(m *model.Message, h nats.Header) {
	m.Position, m.Depth = wire.Number(h, wire.HeaderPosition), wire.Number(h, wire.HeaderDepth)
	if m.Position > 0 { // only events sent by a space have a position
		m.Invalid = wire.Reason(h)
		m.Term, m.PrevTerm, m.ReplayKey = wire.Number(h, wire.HeaderTerm), wire.Number(h, wire.HeaderPrevTerm), wire.Hash(h, wire.HeaderReplay)
	}
}

// LaneEvent returns the message at a sequence of a partition's lane. See port.Lanes.
func (l *lanes) LaneEvent(ctx context.Context, partition int, seq uint64) (m model.Message, there bool, err error) {
	if err := l.CheckPartition(partition); err != nil {
		return model.Message{}, false, err
	}
	if seq == 0 {
		return model.Message{}, false, nil
	}
	s, err := l.LeaderGet(ctx, l.Names.LaneStream(partition), wire.GetRequest{Seq: seq})
	switch {
	case errors.Is(err, wire.ErrNoMessage):
		return model.Message{}, false, nil
	case err != nil:
		return model.Message{}, false, fmt.Errorf("lane %d at %d: %w", partition, seq, err)
	}
	m, ok := eventOf(s)
	if !ok {
		m = model.Message{Seq: s.Seq, Stored: s.Time} // a filling message, or one with an invalid name
	}
	return m, true, nil
}

// LaneBefore returns the last sequence of a lane up to which everything was stored before a time.
// See port.Lanes.
func (l *lanes) LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error) {
	if err := l.CheckPartition(partition); err != nil {
		return 0, err
	}
	stream := l.Names.LaneStream(partition)
	info, err := l.StreamInfo(ctx, stream)
	if err == nil && info.State.Msgs > 0 {
		return l.LastBefore(ctx, stream, info.State.FirstSeq, info.State.LastSeq, at)
	}
	if err != nil {
		return 0, fmt.Errorf("lane %d before %s: %w", partition, at.Format(time.RFC3339), err)
	}
	return info.State.LastSeq, nil
}
