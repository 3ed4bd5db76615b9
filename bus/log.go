package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
)

// Head returns the sequence of the space's last commit, 0 if it has none. See
// port.Log.
func (b *Bus) Head(ctx context.Context, space string) (uint64, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	p := b.partitionOf(space)
	last, err := b.leaderGet(ctx, b.names.logStream(p), getRequest{LastFor: b.names.log(p, space)})
	switch {
	case errors.Is(err, errNoMessage):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("head of space %s: %w", space, err)
	}
	b.past.note(b.names.logStream(p), anchorOf(&last))
	return last.Seq, nil
}

// ReadLog returns up to limit entries of the space after a sequence. See
// port.Log.
func (b *Bus) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	p := b.partitionOf(space)
	if none, err := b.endsAt(ctx, space, after); err != nil || none {
		return nil, err
	}
	found, err := b.readPages(ctx, b.names.logStream(p), b.names.log(p, space), after, limit)
	if err != nil {
		return nil, fmt.Errorf("log of space %s after %d: %w", space, after, err)
	}
	if n := len(found); n > 0 {
		b.past.note(b.names.logStream(p), anchorOf(&found[n-1]))
	}
	entries := make([]model.LogEntry, len(found))
	for i, m := range found {
		entries[i] = model.LogEntry{
			Space: space, Seq: m.Seq, ID: header(m.Header, headerCommit), Data: m.Data, Stored: m.Time, Prev: number(m.Header, headerExpect),
		}
	}
	return entries, nil
}

// endsAt reports whether a space has no commit after a sequence. That is the usual case when a space is
// loaded: the server knows the last message of a subject, and would have to search the
// log to its end for one behind it.
func (b *Bus) endsAt(ctx context.Context, space string, after uint64) (bool, error) {
	if after == 0 {
		return false, nil // a new space is not in the server's index, which answers at once
	}
	head, err := b.Head(ctx, space)
	return head <= after, err
}

// FollowLog delivers the entries of all spaces of a partition. See port.Log.
func (b *Bus) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := b.checkPartition(partition); err != nil {
		return err
	}
	t := tail{stream: b.names.logStream(partition), after: after}
	return b.follow(ctx, t, func(m delivery) {
		deliver(model.LogEntry{
			Space: lastToken(m.Subject), Seq: m.seq, ID: header(m.Header, headerCommit), Data: m.Data, Stored: m.time,
			Prev: number(m.Header, headerExpect),
		})
	})
}
