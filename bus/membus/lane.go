package membus

import (
	"bytes"
	"math"
	"sort"
	"time"

	"github.com/settlehq/settle/model"
)

// lane is a LANE stream. It holds one message per subject, and the event id is part of the subject.
type lane struct {
	stream[model.Message]
	stored map[eventKey]uint64 // sequences by event
}

// laneStore are the lanes of all partitions.
type laneStore struct {
	*data
	laneLimit int // per partition, in messages; 0 for no limit
}

// eventKey identifies an event: an id is unique within its space and stream.
type eventKey struct{ space, stream, id string }

func newLane() lane {
	return lane{stream: newStream[model.Message](), stored: map[eventKey]uint64{}}
}

// Send stores an event unless one with its key is stored, and returns model.ErrTooLarge or model.ErrLaneFull
// if it cannot. A stored key is a duplicate even when the lane is full: nothing would have to be stored.
func (s *laneStore) Send(m model.Message) (model.SendResult, error) {
	return s.SendTo(model.PartitionOf(m.Space, len(s.partitions)), m)
}

// SendTo stores an event in the lane of a partition, even of one that the space does not belong to: a server
// does not check what a misconfigured client sends.
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

// LimitLanes limits each partition's lane to n events; 0 lifts the limit. Events that are already stored
// stay.
func (s *laneStore) LimitLanes(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.laneLimit = n
}

// LaneEnd returns the last sequence of a partition's lane, 0 if it is empty.
func (s *laneStore) LaneEnd(partition int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitions[partition].lane.end()
}

// CountLane counts the events of a space after sequence after, up to upTo.
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

// ReadLane returns up to limit events of the space after sequence after.
func (s *laneStore) ReadLane(space string, after uint64, limit int) []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneMessages(s.of(space).lane.of(space, after, limit))
}

// FindEvent returns the named event, if the lane has it.
func (s *laneStore) FindEvent(space, stream, id string) (model.Message, bool) {
	return s.findEventBehind(space, stream, id, 0)
}

// FollowLane returns up to limit events of a partition after sequence after; the next event closes more.
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

func (s *laneStore) readLaneBehind(space string, after uint64, limit, n int) []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.of(space).lane
	return cloneMessages(l.ofUntil(space, after, limit, less(l.end(), n)))
}

func (s *laneStore) findEventBehind(space, stream, id string, n int) (model.Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.of(space).lane
	seq := l.stored[eventKey{space, stream, id}]
	if seq == 0 || seq > less(l.end(), n) {
		return model.Message{}, false
	}
	if l.at(seq).Space == "" {
		return model.Message{}, false // a filler message has the name
	}
	return cloneMessages([]model.Message{l.at(seq)})[0], true
}

func (s *laneStore) laneEndBehind(partition, n int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return less(s.partitions[partition].lane.end(), n)
}

// FindEvents returns the events with an id, of a space or of all if space is "".
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

// LoseLane removes the events after a sequence from a partition's lane, like a power cut that truncates one
// stream and no other.
func (s *laneStore) LoseLane(partition int, behind uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	for _, m := range l.truncate(behind) {
		delete(l.stored, eventKey{m.Space, m.Stream, m.ID})
	}
}

// LaneEvent returns the message at a sequence of a lane, if it exists.
func (s *laneStore) LaneEvent(partition int, seq uint64) (model.Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	if seq <= l.purged || seq > l.end() {
		return model.Message{}, false
	}
	return cloneMessages([]model.Message{l.at(seq)})[0], true
}

// LaneBefore returns the last sequence of a lane up to which every message was stored before a time.
func (s *laneStore) LaneBefore(partition int, at time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	n := sort.Search(len(l.messages), func(i int) bool { return !l.messages[i].Stored.Before(at) })
	return l.purged + uint64(n)
}

// FillLane stores messages that are no events until a lane reaches a sequence.
func (s *laneStore) FillLane(partition int, upTo uint64, names []model.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	for i := range names {
		if key := (eventKey{names[i].Space, names[i].Stream, names[i].ID}); l.stored[key] == 0 {
			l.stored[key] = l.add("", numbered(model.Message{}, s.time()))
		}
	}
	for l.end() < upTo {
		l.add("", numbered(model.Message{}, s.time()))
	}
}

// PurgeLane removes events up to a sequence that are older than age, at most purgeStep of them and never the
// last one, and reports whether there may be more.
func (s *laneStore) PurgeLane(partition int, upTo uint64, age time.Duration) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	oldest := s.now().Add(-age)
	n := 0
	for n < min(len(l.messages)-1, purgeStep) && l.messages[n].Seq <= upTo && l.messages[n].Stored.Before(oldest) {
		m := &l.messages[n]
		delete(l.stored, eventKey{m.Space, m.Stream, m.ID})
		n++
	}
	l.purge(l.purged + uint64(n))
	return n == purgeStep
}

// purgeStep bounds what one request removes.
const purgeStep = 1000
