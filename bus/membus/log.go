package membus

import (
	"bytes"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// logStore are the logs of all partitions.
type logStore struct{ *data }

// Append stores a commit if the head of the space is a.Expect. It returns the commit's sequence,
// model.ErrRefused or model.ErrTooLarge. A refusal does not reveal whose commit is there: see Owned.
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
	return log.add(model.LogEntry{Space: a.Space, ID: a.ID, Data: bytes.Clone(a.Data), Stored: s.time(), Prev: a.Expect, Inert: a.Inert, Trace: a.Trace}), nil
}

// Owned reports whether the entry that follows a.Expect is a itself, and returns its sequence. A client asks
// that after a refusal: at most one append can ever have followed a.Expect, so its id distinguishes a lost
// acknowledgement from a lost race, however much was appended since.
func (s *logStore) Owned(a model.Append) (uint64, bool) {
	next := s.ReadLog(a.Space, a.Expect, 1)
	if len(next) == 0 || next[0].ID != a.ID || next[0].Prev != a.Expect {
		return 0, false
	}
	return next[0].Seq, true
}

// Head returns the sequence of the space's last commit, 0 if it has none.
func (s *logStore) Head(space string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(space).log.head(space)
}

// ReadLog returns up to limit entries of the space after sequence after.
func (s *logStore) ReadLog(space string, after uint64, limit int) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneEntries(s.of(space).log.read(space, after, limit))
}

// FollowSpace is ReadLog for followers: the partition's next append closes more.
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

// cloneEntries gives every reader its own bytes, as a network would.
func cloneEntries(entries []model.LogEntry) []model.LogEntry {
	for i := range entries {
		entries[i].Data = bytes.Clone(entries[i].Data)
	}
	return entries
}

func (s *logStore) headBehind(space string, n int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(space).log
	seqs := log.spaces[space] // no purge removes the last one
	stop, _ := slices.BinarySearch(seqs, less(log.end(), n)+1)
	if stop == 0 {
		return 0
	}
	return seqs[stop-1]
}

func (s *logStore) readLogBehind(space string, after uint64, limit, n int) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(space).log
	return cloneEntries(log.readUntil(space, after, limit, less(log.end(), n)))
}

// LoseLog removes the commits after a sequence from a partition's log, as LoseLane does. None of them may
// have been purged.
func (s *logStore) LoseLog(partition int, behind uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	for _, e := range log.truncate(behind) {
		log.size, log.left = log.size-entrySize(&e), log.left-1
	}
}

// LogTail returns the last entries of a partition's log, at most n.
func (s *logStore) LogTail(partition, n int) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.partitions[partition].log
	return cloneEntries(log.from(log.end()-min(log.end(), uint64(max(n, 0))), n))
}

// LogState returns the size of a partition's log, and up to which sequence it is older than age.
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

// Spaces lists the spaces with a commit in the log, sorted.
func (s *logStore) Spaces() (spaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.partitions {
		for space := range s.partitions[i].log.spaces { // any order: sorted below
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

// History returns the log of a space as if it had never been purged.
func (s *logStore) History(space string) []model.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(space).log
	return cloneEntries(log.of(space, 0, len(log.messages)))
}
