package membus

import (
	"context"

	"github.com/settlehq/settle/model"
)

// batch is how many messages a follower fetches at a time: enough to be quick,
// few enough to notice soon that it should stop.
const batch = 256

// FollowSpace delivers the space's entries behind after.
func (b *Bus) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	look := func(after uint64) ([]model.LogEntry, <-chan struct{}) {
		return b.server.FollowSpace(space, after, batch)
	}
	return follow(ctx, b, after, look, entrySeq, deliver)
}

// FollowLog delivers the entries of a partition behind after.
func (b *Bus) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := b.server.checkPartition(partition); err != nil {
		return err
	}
	look := func(after uint64) ([]model.LogEntry, <-chan struct{}) {
		return b.server.FollowLog(partition, after, batch)
	}
	return follow(ctx, b, after, look, entrySeq, deliver)
}

// FollowLane delivers the events of a partition behind after.
func (b *Bus) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	if err := b.server.checkPartition(partition); err != nil {
		return err
	}
	look := func(after uint64) ([]model.Message, <-chan struct{}) {
		return b.server.FollowLane(partition, after, batch)
	}
	return follow(ctx, b, after, look, func(m model.Message) uint64 { return m.Seq }, deliver)
}

// FollowMembers delivers the last announcement of every member, calls ready, and
// goes on with new ones.
func (b *Bus) FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error {
	if err := b.awaitLink(ctx); err != nil {
		return err
	}
	var after uint64
	known, _ := b.server.FollowMembers(after)
	for _, a := range known {
		deliver(a.Member)
		after = a.Rev
	}
	ready()
	return follow(ctx, b, after, b.server.FollowMembers,
		func(a Announcement) uint64 { return a.Rev },
		func(a Announcement) { deliver(a.Member) })
}

// FollowLeases delivers the leases of a partition that are published while the
// client is connected.
func (b *Bus) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	if err := b.server.checkPartition(partition); err != nil {
		return err
	}
	open := func() *Subscription[model.Lease] { return b.server.SubscribeLeases(partition) }
	return listen(ctx, b, open, deliver)
}

// FollowRollCalls delivers the roll calls that are published while the client is
// connected.
func (b *Bus) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	return listen(ctx, b, b.server.SubscribeRollCalls, deliver)
}

func entrySeq(e model.LogEntry) uint64 { return e.Seq }

// follow delivers what look finds behind after, and waits for more, until ctx
// ends or the client stops. The sequence it has reached is all it needs to go on
// after a disconnection, with no gap and no repetition.
func follow[T any](ctx context.Context, b *Bus, after uint64, look func(after uint64) ([]T, <-chan struct{}), seq func(T) uint64, deliver func(T)) error {
	for {
		if err := b.awaitLink(ctx); err != nil {
			return err
		}
		found, more := look(after)
		for _, v := range found {
			if err := b.awaitLink(ctx); err != nil {
				return err
			}
			deliver(v)
			after = seq(v)
		}
		if len(found) > 0 {
			continue
		}
		if err := b.await(ctx, more); err != nil {
			return err
		}
	}
}

// listen delivers what a subscription collects, and subscribes anew after every
// disconnection: what was published in between is gone.
func listen[T any](ctx context.Context, b *Bus, open func() *Subscription[T], deliver func(T)) error {
	for {
		if err := b.awaitLink(ctx); err != nil {
			return err
		}
		up, changed := b.linkState()
		if !up {
			continue
		}
		if err := collect(ctx, b, open(), changed, deliver); err != nil {
			return err
		}
	}
}

// collect delivers until the connection changes, and returns nil then.
func collect[T any](ctx context.Context, b *Bus, sub *Subscription[T], changed <-chan struct{}, deliver func(T)) error {
	defer sub.Cancel()
	for {
		posted, more := sub.Take()
		for _, v := range posted {
			deliver(v)
		}
		select {
		case <-more:
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-b.stopped:
			return model.ErrStopped
		}
	}
}
