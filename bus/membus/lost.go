package membus

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/settlehq/settle/model"
)

// LoseLane takes the events behind a sequence out of a partition's lane, as a power cut does
// that costs one stream its end and others nothing.
func (s *laneStore) LoseLane(partition int, behind uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	for _, m := range l.truncate(behind) {
		delete(l.stored, eventKey{m.Space, m.Stream, m.ID})
	}
}

// LoseLog takes the commits behind a sequence out of a partition's log, likewise. Nothing of them
// may have been purged.
func (s *logStore) LoseLog(partition int, behind uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	for _, e := range log.truncate(behind) {
		log.size, log.left = log.size-entrySize(&e), log.left-1
	}
}

// truncate removes the messages behind a sequence, and returns them.
func (s *stream[T]) truncate(behind uint64) []T {
	behind = max(behind, s.purged)
	if behind >= s.end() {
		return nil
	}
	lost := slices.Clone(s.messages[behind-s.purged:])
	s.messages = slices.Clone(s.messages[:behind-s.purged])
	for space, seqs := range s.spaces { // any order: each on its own
		n, _ := slices.BinarySearch(seqs, behind+1)
		if s.spaces[space] = slices.Clone(seqs[:n]); n == 0 {
			delete(s.spaces, space)
		}
	}
	return lost
}

// LaneEvent returns the message at a sequence of a lane, if it is there.
func (s *laneStore) LaneEvent(partition int, seq uint64) (model.Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.partitions[partition].lane
	if seq <= l.purged || seq > l.end() {
		return model.Message{}, false
	}
	return cloneMessages([]model.Message{l.at(seq)})[0], true
}

// LaneBefore is the last sequence of a lane up to which everything was stored before a time.
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

// LogTail returns the last entries of a partition's log, n at most.
func (s *logStore) LogTail(partition, n int) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	return cloneEntries(log.from(log.end()-min(log.end(), uint64(max(n, 0))), n))
}

// MovePosition keeps a number under a name, whatever was kept.
func (s *stateStore) MovePosition(partition int, name string, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partitions[partition].positions[name] = position{seq, s.time()}
}

// LaneEvent returns the message at a sequence of a partition's lane. See worker.Lanes.
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

// LaneBefore is the last sequence of a lane up to which everything is older than a time. See
// worker.Lanes.
func (c *laneClient) LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return 0, err
	}
	return ask(ctx, c.client, Op{Label: "lane-before", Key: number(partition)}, func(int) uint64 { return c.server.LaneBefore(partition, at) })
}

// FillLane stores messages that are no events. See worker.Lanes.
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

// LogTail returns the last entries of a partition's log. See worker.Log.
func (c *logClient) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "log-tail", Key: number(partition)}, func(int) []model.LogEntry { return c.server.LogTail(partition, n) })
}

// MovePosition keeps a number that may be smaller than what is stored. See worker.State.
func (c *stateClient) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	_, err := store(ctx, c.client, Op{Label: "move-position", Key: number(partition)}, func(Op) struct{} {
		c.server.MovePosition(partition, name, seq)
		return struct{}{}
	})
	return err
}

// PositionStored is when a number was kept last. See worker.State.
func (c *stateClient) PositionStored(ctx context.Context, partition int, name string) (time.Time, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return time.Time{}, err
	}
	return ask(ctx, c.client, Op{Label: "position-stored", Key: number(partition)}, func(int) time.Time {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		return c.server.partitions[partition].positions[name].stored
	})
}

// SavedSpaces lists the spaces of a partition that have a mark. See worker.State.
func (c *stateClient) SavedSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "saved-spaces", Key: number(partition)}, func(int) []string {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		var spaces []string
		for space, items := range c.server.partitions[partition].state.spaces { // any order: sorted below
			if _, is := items[mark]; is {
				spaces = append(spaces, space)
			}
		}
		slices.Sort(spaces)
		return spaces
	})
}
