package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// MayErase returns an error if the server reports that this user may not delete a space.
func (b *Bus) MayErase(ctx context.Context, space string) error {
	n, p := b.streams.Names, b.streams.PartitionOf(space)
	subjects := []string{n.Log(p, space)}
	streams := []string{n.LogStream(p), n.DeadStream(), wire.BucketStream(n.StateBucket(p))}
	for q := range b.Partitions() { // events may have gone astray
		streams = append(streams, n.LaneStream(q))
	}
	for _, stream := range streams {
		subjects = append(subjects, b.streams.API+"STREAM.PURGE."+stream)
	}
	return b.streams.MayPublish(ctx, "deleting a space", roles.Administrator, subjects...)
}

// erasePage is how many messages of a lane are read at once.
const erasePage = 256

// EraseLane replaces the events of a space in its lane, up to a sequence, by messages that are no events, and returns how many
// there were. Their names stay occupied until the lane is purged, so that none of them can be sent again. In the lanes of
// other partitions, it replaces events of the space that were forwarded to its own lane. It needs the right to purge.
func (l *lanes) EraseLane(ctx context.Context, space string, upTo uint64) (n int, err error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	for p := range l.Partitions() {
		erased, err := l.eraseIn(ctx, p, space, upTo)
		if n += erased; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (l *lanes) eraseIn(ctx context.Context, p int, space string, upTo uint64) (n int, err error) {
	astray := p != l.PartitionOf(space)
	stream := l.Names.LaneStream(p)
	for after := uint64(0); ; {
		page, err := l.ReadPages(ctx, stream, l.Names.LaneOfSpace(p, space), after, erasePage)
		if err != nil {
			return n, fmt.Errorf("lane of space %s after %d: %w", space, after, err)
		}
		for i := range page {
			after = page[i].Seq
			if after > upTo && !astray {
				return n, nil
			}
			if isFill(&page[i]) {
				continue
			}
			if astray {
				switch forwarded, err := l.isForwarded(ctx, page[i].Subject); {
				case err != nil:
					return n, err
				case !forwarded:
					continue
				}
			}
			if err := l.eraseEvent(ctx, p, page[i].Subject); err != nil {
				return n, fmt.Errorf("event %s at %d: %w", page[i].Subject, after, err)
			}
			n++
		}
		if len(page) < erasePage {
			return n, nil
		}
	}
}

// isFill reports whether a message is one that only takes a name. A client may store one with that header, and a content.
func isFill(m *wire.StoredMsg) bool {
	if len(m.Data) > 0 || wire.Header(m.Header, wire.HeaderFill) == "" {
		return false
	}
	for h := range m.Header { // any order: all of them count
		if !slices.Contains(fillHeaders, h) {
			return false
		}
	}
	return true
}

// fillHeaders are those of a message that only takes a name, and what servers add to a message that is read.
var fillHeaders = []string{
	wire.HeaderFill, wire.HeaderExpect, "Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Num-Pending", "Nats-Last-Sequence", "Nats-UpTo-Sequence",
}

// isForwarded reports whether the lane that an event belongs to has it. It is true for what is no event, which is never forwarded.
func (l *lanes) isForwarded(ctx context.Context, astray string) (bool, error) {
	m, _, ok := wire.ParseEvent(astray)
	if !ok {
		return true, nil
	}
	p := l.PartitionOf(m.Space)
	_, err := l.LeaderGet(ctx, l.Names.LaneStream(p), wire.GetRequest{LastFor: l.Names.Event(p, &m)})
	if errors.Is(err, wire.ErrNoMessage) {
		return false, nil
	}
	return err == nil, err
}

// eraseEvent takes the place of an event. A client that sends it again at that moment, after it was removed and before its name was taken, has
// sent an event that was done before: it is removed as well.
func (l *lanes) eraseEvent(ctx context.Context, partition int, subject string) error {
	stream := l.Names.LaneStream(partition)
	for {
		err := l.Persist(ctx, func(ctx context.Context) error {
			return l.PurgeSubject(ctx, stream, &wire.PurgeRequest{Subject: subject})
		})
		if err != nil {
			return err
		}
		if err := l.fill(ctx, partition, []string{subject}); err != nil {
			return err
		}
		there, err := l.LeaderGet(ctx, stream, wire.GetRequest{LastFor: subject})
		if err != nil && !errors.Is(err, wire.ErrNoMessage) {
			return err
		}
		if err == nil && isFill(&there) {
			return nil
		}
		if err := l.Over(ctx); err != nil {
			return err
		}
	}
}

// EraseQuarantined removes the records about commits of a space that could not be read, of which some contain commits. It needs the right to
// purge documents.
func (l *lanes) EraseQuarantined(ctx context.Context, space string) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	bucket := l.Names.StateBucket(l.PartitionOf(space))
	err := l.Persist(ctx, func(ctx context.Context) error {
		return l.PurgeSubject(ctx, wire.BucketStream(bucket), &wire.PurgeRequest{Subject: wire.BucketSubject(bucket, space+"."+model.QuarantinePrefix+"*")})
	})
	if err != nil {
		return fmt.Errorf("records of unreadable commits of space %s: %w", space, err)
	}
	return nil
}

// EraseDead removes the dead letters of a space. It needs the right to purge them.
func (dl *deadLetters) EraseDead(ctx context.Context, space string) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	err := dl.Persist(ctx, func(ctx context.Context) error {
		return dl.PurgeSubject(ctx, dl.Names.DeadStream(), &wire.PurgeRequest{Subject: dl.Names.Dead(space, "", "")})
	})
	if err != nil {
		return fmt.Errorf("dead letters of space %s: %w", space, err)
	}
	return nil
}
