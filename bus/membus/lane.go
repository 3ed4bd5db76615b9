package membus

import (
	"bytes"
	"math"
	"time"

	"github.com/settlehq/settle/model"
)

// lane is a LANE stream: it holds one message per subject, and the event id is
// part of the subject.
type lane struct {
	stream[model.Message]
	stored map[eventKey]uint64 // their sequences
}

// eventKey is what makes an event the same event: an id counts within its space
// and stream.
type eventKey struct{ space, stream, id string }

func newLane() lane {
	return lane{stream: newStream[model.Message](), stored: map[eventKey]uint64{}}
}

// Send stores an event unless one of its name is there, and answers with
// model.ErrTooLarge or model.ErrLaneFull if it cannot. A name that is there is a
// duplicate even when the lane is full: nothing would have to be stored.
func (s *laneStore) Send(m model.Message) (model.SendResult, error) {
	return s.SendTo(model.PartitionOf(m.Space, len(s.partitions)), m)
}

// SendTo stores an event in the lane of a partition, which may be that of other spaces: as
// a client can that does not ask, a server does not know.
func (s *laneStore) SendTo(partition int, m model.Message) (model.SendResult, error) {
	if messageSize(m) > s.maxPayload {
		return model.SendResult{}, model.ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, key := &s.partitions[partition].lane, eventKey{m.Space, m.Stream, m.ID}
	switch {
	case l.stored[key] > 0:
		return model.SendResult{Duplicate: true}, nil
	case s.laneLimit > 0 && len(l.messages) >= s.laneLimit:
		return model.SendResult{}, model.ErrLaneFull
	}
	l.stored[key] = l.add(m.Space, numbered(m, s.time()))
	return model.SendResult{Seq: l.stored[key]}, nil
}

func numbered(m model.Message, now time.Time) func(uint64) model.Message {
	m.Payload, m.Stored = bytes.Clone(m.Payload), now
	return func(seq uint64) model.Message {
		m.Seq = seq
		return m
	}
}

// LimitLanes lets each partition's lane hold n events and no more; 0 lifts the
// limit. Events beyond it that are there already stay.
func (s *laneStore) LimitLanes(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.laneLimit = n
}

// LaneEnd is the last sequence of a partition's lane, 0 if it is empty.
func (s *laneStore) LaneEnd(partition int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitions[partition].lane.end()
}

// CountLane counts the events of a space behind after, up to upTo.
func (s *laneStore) CountLane(space string, after, upTo uint64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.of(space).lane.of(space, after, math.MaxInt) {
		if m.Seq <= upTo {
			n++
		}
	}
	return n
}

// ReadLane returns up to limit events of the space behind after.
func (s *laneStore) ReadLane(space string, after uint64, limit int) []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneMessages(s.of(space).lane.of(space, after, limit))
}

// FindEvent returns the event of that name, if the lane has one.
func (s *laneStore) FindEvent(space, stream, id string) (model.Message, bool) {
	return s.findEventBehind(space, stream, id, 0)
}

// FollowLane returns up to limit events of a partition behind after; more is
// closed by the next one.
func (s *laneStore) FollowLane(partition int, after uint64, limit int) (events []model.Message, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	return cloneMessages(l.after(after, limit)), l.grown.wait()
}

func cloneMessages(messages []model.Message) []model.Message {
	for i := range messages {
		messages[i].Payload = bytes.Clone(messages[i].Payload)
	}
	return messages
}
