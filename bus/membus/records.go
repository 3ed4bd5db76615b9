package membus

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// recordStore stores the records.
type recordStore struct {
	*data
	records records
}

// records is the bucket of programs: the last record of every key.
type records struct {
	last     map[string]model.Record
	revision uint64
	stored   signal
}

func newRecords() records { return records{last: map[string]model.Record{}} }

// SaveRecord stores a record if the stored revision is r.Rev, or returns model.ErrOutdated.
func (s *recordStore) SaveRecord(r model.Record) (uint64, error) {
	if len(r.Data)+headerSize("Nats-Expected-Last-Subject-Sequence", "0") > s.maxPayload {
		return 0, model.ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.records.last[r.Key]
	if there.Rev != r.Rev {
		return 0, model.ErrOutdated
	}
	s.records.revision++
	s.records.last[r.Key] = model.Record{Key: r.Key, Data: bytes.Clone(r.Data), Rev: s.records.revision, Stored: s.time()}
	s.records.stored.raise()
	return s.records.revision, nil
}

// LoadRecord returns the record of a key.
func (s *recordStore) LoadRecord(key string) model.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, there := s.records.last[key]; there {
		return r
	}
	return model.Record{Key: key}
}

// ListRecords returns the records below a key, sorted by key.
func (s *recordStore) ListRecords(under string) []model.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []model.Record
	for _, key := range slices.Sorted(maps.Keys(s.records.last)) {
		if strings.HasPrefix(key, under+".") {
			found = append(found, s.records.last[key])
		}
	}
	return found
}

// FollowRecords returns the records below a key that were stored after a revision, oldest first; the next one
// closes more.
func (s *recordStore) FollowRecords(under string, after uint64) (found []model.Record, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// any order: sorted below
	for key, r := range s.records.last {
		if r.Rev > after && strings.HasPrefix(key, under+".") {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b model.Record) int { return cmp.Compare(a.Rev, b.Rev) })
	return found, s.records.stored.wait()
}
