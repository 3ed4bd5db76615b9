package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// LogState returns the size of a partition's log. See port.Log. Old commits are found by
// bisection, as for the lane: the server stores messages in the order of their times.
func (b *Bus) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	if err := b.checkPartition(partition); err != nil {
		return model.LogState{}, err
	}
	stream := b.names.logStream(partition)
	info, err := b.streamInfo(ctx, stream)
	if err != nil {
		return model.LogState{}, fmt.Errorf("state of stream %s: %w", stream, err)
	}
	s := &info.State
	b.past.note(stream, anchor{seq: s.LastSeq})
	st := model.LogState{Last: s.LastSeq, Commits: s.Msgs, Bytes: s.Bytes, Now: info.TimeStamp.UTC()}
	if s.Msgs == 0 {
		return st, nil
	}
	st.First = s.FirstSeq
	oldest := info.TimeStamp.Add(-age)
	if !s.FirstTime.Before(oldest) {
		return st, nil
	}
	old, err := b.lastBefore(ctx, stream, s.FirstSeq, s.LastSeq, oldest)
	if err != nil {
		return model.LogState{}, err
	}
	if old >= s.FirstSeq {
		st.Old = old
	}
	return st, nil
}

// LogSpaces returns the spaces that have more than one commit in the log. See port.Log.
func (b *Bus) LogSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := b.checkPartition(partition); err != nil {
		return nil, err
	}
	stream := b.names.logStream(partition)
	info, err := b.streamInfo(ctx, stream, jetstream.WithSubjectFilter(b.names.logs(partition)))
	if err != nil {
		return nil, fmt.Errorf("subjects of stream %s: %w", stream, err)
	}
	var spaces []string
	for subject, n := range info.State.Subjects { // any order: sorted below
		if space := lastToken(subject); n > 1 && model.CheckName("space", space) == nil {
			spaces = append(spaces, space)
		}
	}
	slices.Sort(spaces)
	return spaces, nil
}

// PurgeLog removes the commits of a space below a sequence. See port.Log.
//
// The next append is compared with the head, so the head must stay whatever the caller
// passes. A deposed leader may show an older one; then less is removed.
func (b *Bus) PurgeLog(ctx context.Context, space string, below uint64) error {
	p := b.partitionOf(space)
	if err := b.steady(ctx, b.names.logStream(p), b.past.now()); err != nil {
		return err
	}
	head, err := b.Head(ctx, space)
	if err != nil {
		return err
	}
	if below = min(below, head); below <= 1 { // 0 means everything to the server
		return nil
	}
	req := purgeRequest{Subject: b.names.log(p, space), Sequence: below}
	if err := b.persist(ctx, func(ctx context.Context) error { return b.purgeSubject(ctx, b.names.logStream(p), &req) }); err != nil {
		return fmt.Errorf("purge the log of space %s below %d: %w", space, below, err)
	}
	return nil
}

// purgeSubject makes the server remove messages of one subject.
func (b *Bus) purgeSubject(ctx context.Context, stream string, req *purgeRequest) error {
	var resp struct {
		Error   *jetstream.APIError `json:"error"`
		Success bool                `json:"success"`
	}
	err := b.request(ctx, "STREAM.PURGE."+stream, req, &resp)
	switch {
	case err != nil:
		return err
	case resp.Error != nil:
		return apiError(resp.Error)
	case !resp.Success:
		return errors.New("the server says that it has not")
	}
	return nil
}

// LoadMark returns the mark of a space and when it was stored. See port.State.
func (b *Bus) LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, time.Time{}, err
	}
	bucket := b.names.stateBucket(b.partitionOf(space))
	m, err := b.leaderGet(ctx, bucketStream(bucket), getRequest{LastFor: bucketSubject(bucket, space+"."+markKey)})
	switch {
	case errors.Is(err, errNoMessage):
		return model.StateDoc{}, time.Time{}, nil
	case err != nil:
		return model.StateDoc{}, time.Time{}, fmt.Errorf("mark of space %s: %w", space, err)
	}
	return stateDoc(m), m.Time, nil
}

// PurgeState removes markers of deleted items. See port.State. An item stored later
// under the same key has a higher revision, and stays.
func (b *Bus) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	items, err := stateItems(space, markers)
	if err != nil {
		return err
	}
	partition := b.partitionOf(space)
	bucket := b.names.stateBucket(partition)
	if err := b.steady(ctx, bucketStream(bucket), b.past.now()); err != nil {
		return err
	}
	for _, it := range items {
		there, err := b.readItem(ctx, partition, it.key)
		if errors.Is(err, errNoMessage) || err == nil && (there.Data != nil || there.Rev != it.Rev) {
			continue
		}
		if err == nil {
			req := purgeRequest{Subject: bucketSubject(bucket, it.key), Sequence: it.Rev + 1}
			err = b.persist(ctx, func(ctx context.Context) error { return b.purgeSubject(ctx, bucketStream(bucket), &req) })
		}
		if err != nil {
			return fmt.Errorf("purge the marker of %s: %w", it.key, err)
		}
	}
	return nil
}
