package membus

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// recordClient stores and reads records.
type recordClient struct{ *client }

// SaveRecord stores a record if the stored revision is r.Rev. On a retry after a lost answer, it recognizes
// its own record.
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

// LoadRecord returns the record of a key, with Rev 0 if there is none.
func (c *recordClient) LoadRecord(ctx context.Context, key string) (model.Record, error) {
	if err := model.CheckRecordKey(key); err != nil {
		return model.Record{}, err
	}
	return ask(ctx, c.client, Op{Label: "load-record", Key: key}, func(int) model.Record { return c.server.LoadRecord(key) })
}

// ListRecords returns the records below a key, which is a prefix of whole names, sorted by key.
func (c *recordClient) ListRecords(ctx context.Context, under string) ([]model.Record, error) {
	if err := model.CheckRecordKey(under); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "list-records", Key: under}, func(int) []model.Record { return c.server.ListRecords(under) })
}

// FollowRecords delivers the records below a key, which is a prefix of whole names, calls ready, and then
// delivers new ones.
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
