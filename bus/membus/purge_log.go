package membus

import (
	"context"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// LogState says how large the log of a partition is, and up to where it is older than age.
func (s *logStore) LogState(partition int, age time.Duration) model.LogState {
	return s.logStateBehind(partition, age, 0)
}

func (s *logStore) logStateBehind(partition int, age time.Duration, behind int) model.LogState {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	st := model.LogState{Last: less(log.end(), behind), Commits: uint64(log.left), Bytes: uint64(log.size), Now: s.time()}
	if first := log.from(0, 1); len(first) > 0 {
		st.First = first[0].Seq
	}
	oldest := st.Now.Add(-age)
	n, _ := slices.BinarySearchFunc(log.messages[:st.Last], oldest, func(e model.LogEntry, t time.Time) int { return e.Stored.Compare(t) })
	if st.Old = uint64(n); st.Old < st.First {
		st.Old = 0
	}
	return st
}

// LogSpaces lists the spaces that have more than one commit in the log.
func (s *logStore) LogSpaces(partition int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	var spaces []string
	for space := range log.spaces { // any order: sorted below
		if len(log.read(space, 0, 2)) > 1 {
			spaces = append(spaces, space)
		}
	}
	slices.Sort(spaces)
	return spaces
}

// PurgeLog removes the commits of a space below a sequence, but not the last one.
func (s *logStore) PurgeLog(space string, below uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(space).log.purge(space, below)
}

// History is the log of a space as if nothing had ever been purged.
func (s *logStore) History(space string) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(space).log
	return cloneEntries(log.of(space, 0, len(log.messages)))
}

// LogState says how large the log of a partition is.
func (c *logClient) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return model.LogState{}, err
	}
	return recall(ctx, c.client, Op{Label: "log-state", Key: number(partition)}, func(behind int) model.LogState {
		return c.server.logStateBehind(partition, age, behind)
	})
}

// LogSpaces lists the spaces that have more than one commit in the log.
func (c *logClient) LogSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "log-spaces", Key: number(partition)}, func(int) []string { return c.server.LogSpaces(partition) })
}

// PurgeLog removes the commits of a space below a sequence.
func (c *logClient) PurgeLog(ctx context.Context, space string, below uint64) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	_, err := ask(ctx, c.client, Op{Label: "purge-log", Space: space}, func(int) bool {
		c.server.PurgeLog(space, below)
		return true
	})
	return err
}

// LoadMark returns the mark of a space, and when it was stored.
func (c *stateClient) LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, time.Time{}, err
	}
	type answer struct {
		mark   model.StateDoc
		stored time.Time
	}
	a, err := recall(ctx, c.client, Op{Label: "load-mark", Space: space}, func(behind int) answer {
		st := c.server.loadStateBehind(space, behind)
		return answer{st.Mark, c.server.marked(space)}
	})
	return a.mark, a.stored, err
}

// ForgetState drops everything that is saved of a space, as the restore of an old backup
// does.
func (s *stateStore) ForgetState(space string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of(space).state.spaces, space)
}
