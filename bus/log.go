package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// Head returns the sequence of the space's last commit, 0 if it has none. See
// port.Log.
func (l *logs) Head(ctx context.Context, space string) (uint64, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	last, _, err := l.lastCommit(ctx, space)
	return last.Seq, err
}

// lastCommit returns the last commit of a space, if it has one, from the leader.
func (l *logs) lastCommit(ctx context.Context, space string) (last wire.StoredMsg, there bool, err error) {
	p := l.PartitionOf(space)
	last, err = l.LeaderGet(ctx, l.Names.LogStream(p), wire.GetRequest{LastFor: l.Names.Log(p, space)})
	switch {
	case errors.Is(err, wire.ErrNoMessage):
		return wire.StoredMsg{}, false, nil
	case err != nil:
		return wire.StoredMsg{}, false, fmt.Errorf("head of space %s: %w", space, err)
	}
	l.Past.Note(l.Names.LogStream(p), wire.AnchorOf(&last))
	return last, true, nil
}

// ReadLog returns up to limit entries of the space after a sequence. See
// port.Log.
func (l *logs) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	p := l.PartitionOf(space)
	found, all, err := l.endAfter(ctx, space, after)
	if err != nil {
		return nil, err
	}
	if !all {
		if found, err = l.ReadPages(ctx, l.Names.LogStream(p), l.Names.Log(p, space), after, limit); err != nil {
			return nil, fmt.Errorf("log of space %s after %d: %w", space, after, err)
		}
	}
	if n := len(found); n > 0 {
		l.Past.Note(l.Names.LogStream(p), wire.AnchorOf(&found[n-1]))
	}
	entries := make([]model.LogEntry, len(found))
	for i, m := range found {
		entries[i] = entryOf(space, m.Seq, m.Time, m.Header, m.Data)
	}
	return entries, nil
}

// entryOf returns the entry that a message of a log is.
func entryOf(space string, seq uint64, stored time.Time, h nats.Header, data []byte) model.LogEntry {
	return model.LogEntry{
		Space: space, Seq: seq, ID: wire.Header(h, wire.HeaderCommit), Data: data, Stored: stored, Prev: wire.Number(h, wire.HeaderExpect),
		Inert: wire.Header(h, wire.HeaderRelease) == wire.NothingToRelease, Trace: wire.Trace(h),
	}
}

// endAfter returns the commits of a space after a sequence, and true, if there are none or one. That is the usual case
// when a space is loaded: the server knows the last message of a subject, but would have to search the log to its end
// for a later one. The last commit names the one before it.
func (l *logs) endAfter(ctx context.Context, space string, after uint64) (found []wire.StoredMsg, all bool, err error) {
	if after == 0 {
		return nil, false, nil // a new space is not in the server's index, which answers at once
	}
	last, there, err := l.lastCommit(ctx, space)
	switch {
	case err != nil:
		return nil, false, err
	case !there || last.Seq <= after:
		return nil, true, nil
	}
	before := wire.Number(last.Header, wire.HeaderExpect) // 0 also if it has no readable headers
	return []wire.StoredMsg{last}, before > 0 && before <= after, nil
}

// FollowLog delivers the entries of all spaces of a partition. See port.Log.
func (l *logs) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	t := wire.Tail{Stream: l.Names.LogStream(partition), After: after}
	return l.Follow(ctx, t, func(m wire.Delivery) {
		deliver(entryOf(wire.LastToken(m.Subject), m.Seq, m.Time, m.Header, m.Data))
	})
}

// MayCommit returns model.ErrForbidden if the server reports that this user may not append to the log of a
// space, and nil if it may, or if that is not known.
func (l *logs) MayCommit(ctx context.Context, space string) error {
	if l.mayCommit.Load() {
		return nil
	}
	err := l.MayPublish(ctx, "writing to a space", roles.Worker, l.Names.Log(model.PartitionOf(space, l.Partitions()), space))
	l.mayCommit.Store(err == nil)
	return err
}

// LogTail returns the last entries of a partition's log. See port.Log.
func (l *logs) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	if err := l.CheckPartition(partition); err != nil {
		return nil, err
	}
	stream := l.Names.LogStream(partition)
	info, err := l.StreamInfo(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("end of log %d: %w", partition, err)
	}
	after := info.State.LastSeq - min(info.State.LastSeq, uint64(max(n, 0)))
	found, err := l.ReadPages(ctx, stream, l.Names.Logs(partition), after, n)
	if err != nil {
		return nil, fmt.Errorf("end of log %d: %w", partition, err)
	}
	entries := make([]model.LogEntry, len(found))
	for i, m := range found {
		entries[i] = entryOf(wire.LastToken(m.Subject), m.Seq, m.Time, m.Header, m.Data)
	}
	return entries, nil
}
