package membus

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// memberClient announces members, and sends leases.
type memberClient struct{ *client }

// Observe notifies the owner of a space that one of its documents is watched.
func (c *memberClient) Observe(l model.Lease) error {
	if err := l.Check(); err != nil {
		return err
	}
	return c.publish(Op{Label: "observe", Space: l.Space, Key: l.Doc}, func() { c.server.Observe(l) })
}

// CallRoll asks the observers of spaces of a partition to renew their leases.
func (c *memberClient) CallRoll(partition int) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	return c.publish(Op{Label: "call-roll", Key: number(partition)}, func() { c.server.CallRoll(partition) })
}

// Announce publishes a member.
func (c *memberClient) Announce(ctx context.Context, m model.Member) error {
	if err := model.CheckName("worker", m.ID); err != nil {
		return err
	}
	_, err := ask(ctx, c.client, Op{Label: "announce"}, func(int) bool { c.server.Announce(m); return true })
	return err
}

// AnswerPings makes Ping(id) return true until ctx ends.
func (c *memberClient) AnswerPings(ctx context.Context, id string) error {
	if err := model.CheckName("worker", id); err != nil {
		return err
	}
	if err := c.awaitLink(ctx); err != nil {
		return err
	}
	context.AfterFunc(ctx, c.server.Answer(id, c.online))
	return nil
}

// Ping reports whether a process answers as id.
func (c *memberClient) Ping(ctx context.Context, id string) (bool, error) {
	if err := model.CheckName("worker", id); err != nil {
		return false, err
	}
	return ask(ctx, c.client, Op{Label: "ping", Key: id}, func(int) bool { return c.server.Answering(id) })
}

// FollowMembers delivers the last announcement of every member, calls ready, and
// then delivers new ones.
func (c *memberClient) FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error {
	if err := c.awaitLink(ctx); err != nil {
		return err
	}
	op := c.following(Op{Label: "follow-members"})
	if err := c.underWay(ctx, Delivery{Op: op}, time.Now()); err != nil {
		return err
	}
	var after uint64
	known, _ := c.server.FollowMembers(after)
	for _, a := range known {
		deliver(a.Member)
		after = a.Rev
	}
	ready()
	return follow(ctx, c.client, op, after, c.server.FollowMembers,
		func(a Announcement) uint64 { return a.Rev },
		func(a Announcement) { deliver(a.Member) })
}

// FollowLeases delivers the leases of a partition that are published while the
// client is connected.
func (c *memberClient) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	open := func() *Subscription[model.Lease] { return c.server.SubscribeLeases(partition) }
	return listen(ctx, c.client, Op{Label: "follow-leases", Key: number(partition)}, open, deliver)
}

// FollowRollCalls delivers the roll calls that are published while the client is
// connected.
func (c *memberClient) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	return listen(ctx, c.client, Op{Label: "follow-rolls"}, c.server.SubscribeRollCalls, deliver)
}
