package membus

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// records is the bucket of programs: the last record of every key.
type records struct {
	last     map[string]model.Record
	revision uint64
	stored   signal
}

func newRecords() records { return records{last: map[string]model.Record{}} }

// SaveRecord stores a record over the one of its revision, or answers model.ErrOutdated.
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

// LoadRecord returns what stands under a key.
func (s *recordStore) LoadRecord(key string) model.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, there := s.records.last[key]; there {
		return r
	}
	return model.Record{Key: key}
}

// ListRecords returns the records below a key, by key.
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

// FollowRecords returns the records below a key that were stored behind a revision, oldest
// first; more is closed by the next one.
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

// SaveRecord stores a record over its revision. When the answer is lost and it is asked again,
// it is its own record that stands there.
func (c *recordClient) SaveRecord(ctx context.Context, r model.Record) (uint64, error) {
	if err := model.CheckRecordKey(r.Key); err != nil {
		return 0, err
	}
	type answer struct {
		rev uint64
		err error
	}
	a, err := ask(ctx, c.client, Op{Label: "record", Key: r.Key}, func(try int) answer {
		rev, err := c.server.SaveRecord(r)
		if there := c.server.LoadRecord(r.Key); err == model.ErrOutdated && there.Rev > r.Rev && bytes.Equal(there.Data, r.Data) { //nolint:errorlint // as the server says it
			return answer{there.Rev, nil}
		}
		return answer{rev, err}
	})
	if err == nil {
		err = a.err
	}
	if err != nil {
		return 0, fmt.Errorf("save record %s: %w", r.Key, err)
	}
	return a.rev, nil
}

// LoadRecord returns what stands under a key, with Rev 0 if nothing does.
func (c *recordClient) LoadRecord(ctx context.Context, key string) (model.Record, error) {
	if err := model.CheckRecordKey(key); err != nil {
		return model.Record{}, err
	}
	return ask(ctx, c.client, Op{Label: "load-record", Key: key}, func(int) model.Record { return c.server.LoadRecord(key) })
}

// ListRecords returns the records whose keys begin with so many whole names, by key.
func (c *recordClient) ListRecords(ctx context.Context, under string) ([]model.Record, error) {
	if err := model.CheckRecordKey(under); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "list-records", Key: under}, func(int) []model.Record { return c.server.ListRecords(under) })
}

// FollowRecords delivers the records whose keys begin with so many whole names, calls ready,
// and goes on with new ones.
func (c *recordClient) FollowRecords(ctx context.Context, under string, deliver func(model.Record), ready func()) error {
	if err := model.CheckRecordKey(under); err != nil {
		return err
	}
	if err := c.awaitLink(ctx); err != nil {
		return err
	}
	op := c.following(Op{Label: "follow-records", Key: under})
	if err := c.underWay(ctx, Delivery{Op: op}, time.Now()); err != nil {
		return err
	}
	var after uint64
	known, _ := c.server.FollowRecords(under, after)
	for _, r := range known {
		deliver(r)
		after = r.Rev
	}
	ready()
	look := func(after uint64) ([]model.Record, <-chan struct{}) { return c.server.FollowRecords(under, after) }
	return follow(ctx, c.client, op, after, look, func(r model.Record) uint64 { return r.Rev }, deliver)
}
