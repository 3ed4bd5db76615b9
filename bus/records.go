package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// The records of a deployment are in one bucket, each under its key: programs, and
// the rules that assign them to spaces.

// records are the deployment's data outside of its spaces.
type records struct{ *wire.Streams }

// SaveRecord stores r over the revision r.Rev, and returns the new one. See port.Records.
func (rs *records) SaveRecord(ctx context.Context, r model.Record) (uint64, error) {
	if err := model.CheckRecordKey(r.Key); err != nil {
		return 0, err
	}
	type answer struct {
		rev uint64
		err error
	}
	h := make(nats.Header, 1)
	wire.SetNumber(h, wire.HeaderExpect, r.Rev)
	stored := make(chan answer, 1)
	under := rs.Pub.Start(wire.Task{
		Op: faults.OpRecord, Msg: &nats.Msg{Subject: rs.KV + wire.BucketSubject(rs.Names.ProgramsBucket(), r.Key), Header: h, Data: r.Data},
		Judge: rs.judgeRecord(r), Holder: wire.BucketStream(rs.Names.ProgramsBucket()),
		Done: func(rev uint64, err error) { stored <- answer{rev, err} },
	})
	select {
	case a := <-stored:
		if a.err != nil {
			return 0, fmt.Errorf("save record %s: %w", r.Key, a.err)
		}
		return a.rev, nil
	case <-ctx.Done():
		rs.Pub.Withdraw(under)
		return 0, ctx.Err()
	}
}

// judgeRecord is judgePut, and reads the present record if that has moved.
func (rs *records) judgeRecord(r model.Record) func(wire.Answer, bool) wire.Ruling {
	whose := func(ctx context.Context) wire.Ruling {
		there, err := rs.readRecord(ctx, r.Key)
		switch {
		case err != nil: // errNoMessage, too: that answer came from a deposed leader
			return wire.Ruling{Again: true}
		case bytes.Equal(there.Data, r.Data):
			return wire.Ruling{Seq: there.Rev}
		}
		return wire.Ruling{Err: model.ErrOutdated}
	}
	return func(a wire.Answer, doubt bool) wire.Ruling {
		switch v := judgePut(a, doubt); {
		case a.Outcome == wire.Forbidden:
			return wire.Ruling{Err: model.ErrForbidden}
		case errors.Is(v.Err, errMoved): // in doubt or not
			return wire.Ruling{Lookup: whose}
		default:
			return v
		}
	}
}

// LoadRecord returns the record under a key. See port.Records.
func (rs *records) LoadRecord(ctx context.Context, key string) (model.Record, error) {
	if err := model.CheckRecordKey(key); err != nil {
		return model.Record{}, err
	}
	r, err := rs.readRecord(ctx, key)
	if errors.Is(err, wire.ErrNoMessage) {
		return model.Record{Key: key}, nil
	}
	return r, err
}

func (rs *records) readRecord(ctx context.Context, key string) (model.Record, error) {
	bucket := rs.Names.ProgramsBucket()
	m, err := rs.LeaderGet(ctx, wire.BucketStream(bucket), wire.GetRequest{LastFor: wire.BucketSubject(bucket, key)})
	if err != nil {
		return model.Record{}, err
	}
	return recordOf(key, m), nil
}

// recordOf reads a record. A record deleted with a tool counts as absent, except for its
// revision, over which the next one is stored.
func recordOf(key string, m wire.StoredMsg) model.Record {
	r := model.Record{Key: key, Data: m.Data, Rev: m.Seq, Stored: m.Time}
	if isDeleted(m.Header) {
		r.Data = nil
	}
	return r
}

// ListRecords returns the records below a key. See port.Records.
func (rs *records) ListRecords(ctx context.Context, under string) ([]model.Record, error) {
	if err := model.CheckRecordKey(under); err != nil {
		return nil, err
	}
	bucket := rs.Names.ProgramsBucket()
	var found []wire.StoredMsg
	err := rs.Persist(ctx, func(ctx context.Context) (err error) {
		found, err = rs.Scan(ctx, wire.BucketStream(bucket), wire.BucketSubject(bucket, under+".>"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list records under %s: %w", under, err)
	}
	var records []model.Record
	for _, m := range found {
		if r := recordOf(strings.TrimPrefix(m.Subject, wire.BucketSubject(bucket, "")), m); r.Data != nil {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b model.Record) int { return strings.Compare(a.Key, b.Key) })
	return records, nil
}

// FollowRecords delivers the records below a key, calls ready, and then delivers each that is
// stored. See port.Records.
func (rs *records) FollowRecords(ctx context.Context, under string, deliver func(model.Record), ready func()) error {
	if err := model.CheckRecordKey(under); err != nil {
		return err
	}
	bucket := rs.Names.ProgramsBucket()
	t := wire.Tail{Stream: wire.BucketStream(bucket), Pattern: wire.BucketSubject(bucket, under+".>"), Latest: true, Reached: ready}
	return rs.Follow(ctx, t, func(d wire.Delivery) {
		key := strings.TrimPrefix(d.Subject, wire.BucketSubject(bucket, ""))
		deliver(recordOf(key, wire.StoredMsg{Subject: d.Subject, Seq: d.Seq, Time: d.Time, Header: d.Header, Data: d.Data}))
	})
}

// noteTries is how often a note is stored again after a conflict with the note of another backup.
const noteTries = 5
