package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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
func (b *Bus) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (more bool, err error) {
	if err := b.checkPartition(partition); err != nil {
		return false, err
	}
	stream := b.names.laneStream(partition)
	if err = b.steady(ctx, stream, b.past.now()); err == nil {
		more, err = b.purge(ctx, stream, upTo, age)
	}
	if err != nil {
		return false, fmt.Errorf("purge stream %s up to %d: %w", stream, upTo, err)
	}
	return more, nil
}

func (b *Bus) purge(ctx context.Context, stream string, upTo uint64, age time.Duration) (more bool, err error) {
	info, err := b.streamInfo(ctx, stream)
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
	last, err := b.lastBefore(ctx, stream, first, end, oldest)
	if err != nil || last < first {
		return false, err
	}
	err = b.persist(ctx, func(ctx context.Context) error { return b.purgeTo(ctx, stream, last) })
	return last == first+purgeStep-1, err
}

// lastBefore returns the last sequence in [first, end] up to which everything was stored
// before a time; first-1 if there is none.
func (b *Bus) lastBefore(ctx context.Context, stream string, first, end uint64, before time.Time) (uint64, error) {
	low, high := first-1, end+1 // old enough up to low, and not from high on
	for low+1 < high {
		mid := low + (high-low)/2
		m, err := b.leaderGet(ctx, stream, getRequest{Seq: mid, NextFor: ">"})
		switch {
		case errors.Is(err, errNoMessage):
			high = mid // the leader is behind the one that was asked first
		case err != nil:
			return 0, err
		case m.Time.Before(before):
			low = mid
		default:
			high = mid
		}
	}
	return low, nil
}

func (b *Bus) purgeTo(ctx context.Context, name string, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.AckTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return apiTransient(err)
	}
	return apiTransient(stream.Purge(ctx, jetstream.WithPurgeSequence(last+1)))
}
