package membus

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// What a replica answers that is behind: the same questions, put to a stream that ends n
// messages earlier. A deposed leader answers like that, too.

// less is end without n, and not below zero.
func less(end uint64, n int) uint64 { return end - min(end, uint64(max(n, 0))) }

// ofUntil is of, in a stream that ends at end.
func (s *stream[T]) ofUntil(space string, seq uint64, limit int, end uint64) []T {
	seqs := s.spaces[space]
	start, _ := slices.BinarySearch(seqs, seq+1)
	stop, _ := slices.BinarySearch(seqs, end+1)
	var found []T
	for _, n := range first(seqs[start:max(start, stop)], limit) {
		found = append(found, s.at(n))
	}
	return found
}

func (s *logStore) headBehind(space string, n int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.of(space).log
	seqs := log.spaces[space] // no purge takes the last one
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
		return model.Message{}, false // the name is taken by what fills the lane
	}
	return cloneMessages([]model.Message{l.at(seq)})[0], true
}

func (s *laneStore) laneEndBehind(partition, n int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return less(s.partitions[partition].lane.end(), n)
}

// Remember keeps everything that is put into the STATE buckets from here on, so that
// replicas of them can be behind. Without it they never are.
func (s *stateStore) Remember() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		p.state.remember = true
	}
}

// put is an entry of a bucket's history.
type put struct {
	space string
	doc   model.StateDoc // its name is the key: mark for the mark
}

func (s *stateStore) loadStateBehind(space string, n int) model.SpaceState {
	if n <= 0 || !s.remembers(space) {
		return s.LoadState(space)
	}
	return s.stateBehind(space, n).LoadState(space)
}

// stateBehind is a store of one partition that holds what was in the space's bucket n
// changes ago.
func (s *stateStore) stateBehind(space string, n int) *stateStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.of(space).state
	old := newPartition()
	for _, p := range st.history[:max(0, len(st.history)-n)] {
		if p.doc.Rev == purgedRev {
			delete(old.state.spaces[p.space], p.doc.Doc)
			continue
		}
		old.state.keep(p.space, p.doc.Doc, p.doc)
	}
	return &stateStore{&data{partitions: []*partition{old}}}
}

func (s *stateStore) remembers(space string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(space).state.remember
}
