package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/port"
)

// purgeStep limits the messages that one PurgeLane removes. Most of the work is done by whole
// blocks of the file store, so a step should span some.
const purgeStep = 100_000

// PurgeLane removes events up to a sequence that have been stored for longer than
// age. See port.Lanes.
//
// The server has no purge by age. But it stores messages in the order of their times,
// so the last one that is old enough is found by bisection; the server's own clock
// is used. A repeated or late request does no harm:
// a purge names a sequence, and events up to it stay old and done.
func (l *lanes) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (more bool, err error) {
	if err := l.CheckPartition(partition); err != nil {
		return false, err
	}
	stream := l.Names.LaneStream(partition)
	if err = l.Steady(ctx, stream, port.EpochOf(ctx, l.Past.Now())); err == nil {
		more, err = l.purge(ctx, stream, upTo, age)
	}
	if err != nil {
		return false, fmt.Errorf("purge stream %s up to %d: %w", stream, upTo, err)
	}
	return more, nil
}

func (l *lanes) purge(ctx context.Context, stream string, upTo uint64, age time.Duration) (more bool, err error) {
	info, err := l.StreamInfo(ctx, stream)
	if err != nil {
		return false, err
	}
	first := info.State.FirstSeq
	oldest := info.TimeStamp.Add(-age) // the time by the leader's clock
	if info.State.Msgs < 2 || !info.State.FirstTime.Before(oldest) {
		return false, nil
	}
	// The last message stays, so that the stream keeps its last sequence.
	end := min(upTo, info.State.LastSeq-1, first+purgeStep-1)
	if end < first {
		return false, nil
	}
	last, err := l.LastBefore(ctx, stream, first, end, oldest)
	if err != nil || last < first {
		return false, err
	}
	err = l.Persist(ctx, func(ctx context.Context) error { return l.PurgeTo(ctx, stream, last) })
	return last == first+purgeStep-1, err
}
