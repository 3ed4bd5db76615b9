package membus

import (
	"context"
	"time"
)

// purgeStep bounds what one request removes.
const purgeStep = 1000

// PurgeLane removes events up to a sequence that are older than age, up to purgeStep
// of them and never the last one, and reports whether there may be more.
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

// PurgeLane removes old events of a partition.
func (c *laneClient) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (more bool, err error) {
	if err := c.server.checkPartition(partition); err != nil {
		return false, err
	}
	return ask(ctx, c.client, Op{Label: "purge-lane", Key: number(partition)}, func(int) bool { return c.server.PurgeLane(partition, upTo, age) })
}
