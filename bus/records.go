package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// The records of a deployment are in one bucket, each under its key: programs, and
// the rules that assign them to spaces.

// records are what a deployment keeps beside its spaces.
type records struct{ *streams }

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
	setNumber(h, headerExpect, r.Rev)
	stored := make(chan answer, 1)
	under := rs.pub.start(task{
		op: OpRecord, msg: &nats.Msg{Subject: rs.kv + bucketSubject(rs.names.programsBucket(), r.Key), Header: h, Data: r.Data},
		judge: rs.judgeRecord(r), holder: bucketStream(rs.names.programsBucket()),
		done: func(rev uint64, err error) { stored <- answer{rev, err} },
	})
	select {
	case a := <-stored:
		if a.err != nil {
			return 0, fmt.Errorf("save record %s: %w", r.Key, a.err)
		}
		return a.rev, nil
	case <-ctx.Done():
		rs.pub.withdraw(under)
		return 0, ctx.Err()
	}
}

// judgeRecord is judgePut, and reads the present record if that has moved.
func (rs *records) judgeRecord(r model.Record) func(answer, bool) ruling {
	whose := func(ctx context.Context) ruling {
		there, err := rs.readRecord(ctx, r.Key)
		switch {
		case err != nil: // errNoMessage, too: that answer came from a deposed leader
			return ruling{again: true}
		case bytes.Equal(there.Data, r.Data):
			return ruling{seq: there.Rev}
		}
		return ruling{err: model.ErrOutdated}
	}
	return func(a answer, doubt bool) ruling {
		switch v := judgePut(a, doubt); {
		case a.outcome == forbidden:
			return ruling{err: model.ErrForbidden}
		case errors.Is(v.err, errMoved): // in doubt or not
			return ruling{lookup: whose}
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
	if errors.Is(err, errNoMessage) {
		return model.Record{Key: key}, nil
	}
	return r, err
}

func (rs *records) readRecord(ctx context.Context, key string) (model.Record, error) {
	bucket := rs.names.programsBucket()
	m, err := rs.leaderGet(ctx, bucketStream(bucket), getRequest{LastFor: bucketSubject(bucket, key)})
	if err != nil {
		return model.Record{}, err
	}
	return recordOf(key, m), nil
}

// recordOf reads a record. A record deleted with a tool counts as absent, except for its
// revision, over which the next one is stored.
func recordOf(key string, m storedMsg) model.Record {
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
	bucket := rs.names.programsBucket()
	var found []storedMsg
	err := rs.persist(ctx, func(ctx context.Context) (err error) {
		found, err = rs.scan(ctx, bucketStream(bucket), bucketSubject(bucket, under+".>"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list records under %s: %w", under, err)
	}
	var records []model.Record
	for _, m := range found {
		if r := recordOf(strings.TrimPrefix(m.Subject, bucketSubject(bucket, "")), m); r.Data != nil {
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
	bucket := rs.names.programsBucket()
	t := tail{stream: bucketStream(bucket), pattern: bucketSubject(bucket, under+".>"), latest: true, reached: ready}
	return rs.follow(ctx, t, func(d delivery) {
		key := strings.TrimPrefix(d.Subject, bucketSubject(bucket, ""))
		deliver(recordOf(key, storedMsg{Subject: d.Subject, Seq: d.seq, Time: d.time, Header: d.Header, Data: d.Data}))
	})
}

// noteTries is how often a note is stored again after a conflict with the note of another backup.
const noteTries = 5
