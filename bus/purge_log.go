package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// LogState returns the size of a partition's log. See port.Log. Old commits are found by
// bisection, as for the lane: the server stores messages in the order of their times.
func (l *logs) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	if err := l.CheckPartition(partition); err != nil {
		return model.LogState{}, err
	}
	stream := l.Names.LogStream(partition)
	info, err := l.StreamInfo(ctx, stream)
	if err != nil {
		return model.LogState{}, fmt.Errorf("state of stream %s: %w", stream, err)
	}
	s := &info.State
	l.Past.Note(stream, wire.Anchor{Seq: s.LastSeq})
	st := model.LogState{Last: s.LastSeq, Commits: s.Msgs, Bytes: s.Bytes, Now: info.TimeStamp.UTC()}
	if s.Msgs == 0 {
		return st, nil
	}
	st.First = s.FirstSeq
	oldest := info.TimeStamp.Add(-age)
	if !s.FirstTime.Before(oldest) {
		return st, nil
	}
	old, err := l.LastBefore(ctx, stream, s.FirstSeq, s.LastSeq, oldest)
	if err != nil {
		return model.LogState{}, err
	}
	if old >= s.FirstSeq {
		st.Old = old
	}
	return st, nil
}

// LogSpaces returns the spaces that have more than one commit in the log. See port.Log.
func (l *logs) LogSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := l.CheckPartition(partition); err != nil {
		return nil, err
	}
	stream := l.Names.LogStream(partition)
	info, err := l.StreamInfo(ctx, stream, jetstream.WithSubjectFilter(l.Names.Logs(partition)))
	if err != nil {
		return nil, fmt.Errorf("subjects of stream %s: %w", stream, err)
	}
	var spaces []string
	for subject, n := range info.State.Subjects { // any order: sorted below
		if space := wire.LastToken(subject); n > 1 && model.CheckName("space", space) == nil {
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
func (l *logs) PurgeLog(ctx context.Context, space string, below uint64) error {
	p := l.PartitionOf(space)
	if err := l.Steady(ctx, l.Names.LogStream(p), port.EpochOf(ctx, l.Past.Now())); err != nil {
		return err
	}
	head, err := l.Head(ctx, space)
	if err != nil {
		return err
	}
	if below = min(below, head); below <= 1 { // 0 means everything to the server
		return nil
	}
	req := wire.PurgeRequest{Subject: l.Names.Log(p, space), Sequence: below}
	if err := l.Persist(ctx, func(ctx context.Context) error { return l.PurgeSubject(ctx, l.Names.LogStream(p), &req) }); err != nil {
		return fmt.Errorf("purge the log of space %s below %d: %w", space, below, err)
	}
	return nil
}
