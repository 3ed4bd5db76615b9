package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// MayErase returns an error if the server reports that this user may not delete a space.
func (b *Bus) MayErase(ctx context.Context, space string) error {
	n, p := b.streams.Names, b.streams.PartitionOf(space)
	subjects := []string{n.Log(p, space)}
	for _, stream := range []string{n.LogStream(p), n.LaneStream(p), n.DeadStream()} {
		subjects = append(subjects, b.streams.API+"STREAM.PURGE."+stream)
	}
	return b.streams.MayPublish(ctx, "deleting a space", roles.Administrator, subjects...)
}

// erasePage is how many messages of a lane are read at once.
const erasePage = 256

// EraseLane replaces the events of a space in its lane, up to a sequence, by messages that are no events, and returns how many
// there were. Their names stay occupied until the lane is purged, so that none of them can be sent again. It needs the right to purge.
func (l *lanes) EraseLane(ctx context.Context, space string, upTo uint64) (n int, err error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	p := l.PartitionOf(space)
	stream := l.Names.LaneStream(p)
	for after := uint64(0); ; {
		page, err := l.ReadPages(ctx, stream, l.Names.LaneOfSpace(p, space), after, erasePage)
		if err != nil {
			return n, fmt.Errorf("lane of space %s after %d: %w", space, after, err)
		}
		for i := range page {
			after = page[i].Seq
			if after > upTo {
				return n, nil
			}
			if wire.Header(page[i].Header, wire.HeaderFill) != "" {
				continue
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
		if err == nil && wire.Header(there.Header, wire.HeaderFill) != "" {
			return nil
		}
		if err := l.Over(ctx); err != nil {
			return err
		}
	}
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
