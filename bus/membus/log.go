package membus

import (
	"bytes"

	"github.com/settlehq/settle/model"
)

// Append stores a commit if the head of the space is where a.Expect says, and
// answers with its sequence, model.ErrRefused or model.ErrTooLarge. The refusal
// does not say whose commit stands there: see Owned.
func (s *logStore) Append(a model.Append) (uint64, error) {
	if appendSize(a) > s.maxPayload {
		return 0, model.ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(a.Space).log
	if log.head(a.Space) != a.Expect {
		return 0, model.ErrRefused
	}
	return log.add(model.LogEntry{Space: a.Space, ID: a.ID, Data: bytes.Clone(a.Data), Stored: s.time(), Prev: a.Expect}), nil
}

// Owned reports whether the entry that follows a.Expect is a itself, and under
// which sequence. It is the second question after a refusal: at most one append
// can ever have followed there, so its id tells a lost acknowledgement from a
// lost race, however much was appended since.
func (s *logStore) Owned(a model.Append) (uint64, bool) {
	next := s.ReadLog(a.Space, a.Expect, 1)
	if len(next) == 0 || next[0].ID != a.ID || next[0].Prev != a.Expect {
		return 0, false
	}
	return next[0].Seq, true
}

// Head is the sequence of the space's last commit, 0 if it has none.
func (s *logStore) Head(space string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(space).log.head(space)
}

// ReadLog returns up to limit entries of the space behind after.
func (s *logStore) ReadLog(space string, after uint64, limit int) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneEntries(s.of(space).log.read(space, after, limit))
}

// FollowSpace is ReadLog for one who wants to know when to look again: more is
// closed by the partition's next append.
func (s *logStore) FollowSpace(space string, after uint64, limit int) (entries []model.LogEntry, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(space).log
	return cloneEntries(log.read(space, after, limit)), log.grown.wait()
}

// FollowLog is FollowSpace for all spaces of a partition.
func (s *logStore) FollowLog(partition int, after uint64, limit int) (entries []model.LogEntry, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	return cloneEntries(log.from(after, limit)), log.grown.wait()
}

// cloneEntries gives every reader bytes of its own, as a network would.
func cloneEntries(entries []model.LogEntry) []model.LogEntry {
	for i := range entries {
		entries[i].Data = bytes.Clone(entries[i].Data)
	}
	return entries
}
