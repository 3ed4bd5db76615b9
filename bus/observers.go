package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// topicRoom is how many leases or roll calls may wait to be delivered. More are
// dropped: they are renewed anyway.
const topicRoom = 4096

// Observe notifies the owner of a space that one of its documents is watched.
// See port.Observers. An error means that nothing was sent.
func (b *Bus) Observe(l model.Lease) error {
	if err := l.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("observe %s of space %s: %w", l.Doc, l.Space, err)
	}
	return b.say(b.names.demand(b.partitionOf(l.Space)), body)
}

// CallRoll asks the observers of spaces of a partition to repeat their leases.
func (b *Bus) CallRoll(partition int) error {
	if err := b.checkPartition(partition); err != nil {
		return err
	}
	return b.say(b.names.rollCall(partition), nil)
}

// say publishes a message without acknowledgement.
func (b *Bus) say(subject string, body []byte) error {
	if err := b.over(context.Background()); err != nil {
		return err
	}
	if err := b.nc.Publish(subject, body); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, err)
	}
	return nil
}

// FollowLeases delivers the leases of a partition. See port.Observers.
func (b *Bus) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	if err := b.checkPartition(partition); err != nil {
		return err
	}
	return b.listen(ctx, b.names.demand(partition), func(m *nats.Msg) {
		var l model.Lease
		if err := json.Unmarshal(m.Data, &l); err != nil || b.partitionOf(l.Space) != partition {
			b.log.Warn("lease passed over: it is not the JSON of a lease of this partition", "subject", m.Subject, "error", err)
			return
		}
		deliver(l)
	})
}

// FollowRollCalls delivers the numbers of partitions whose roll is called. See
// port.Observers.
func (b *Bus) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	return b.listen(ctx, b.names.rollCalls(), func(m *nats.Msg) {
		p, err := strconv.Atoi(lastToken(m.Subject))
		if err != nil || b.checkPartition(p) != nil {
			b.log.Warn("roll call passed over: there is no such partition", "subject", m.Subject)
			return
		}
		deliver(p)
	})
}

// listen delivers the messages of a subject on the caller's goroutine, until ctx
// ends or the bus is stopped. The connection renews the subscription by itself.
func (b *Bus) listen(ctx context.Context, subject string, deliver func(*nats.Msg)) error {
	messages := make(chan *nats.Msg, topicRoom)
	sub, err := b.nc.ChanSubscribe(subject, messages)
	if err != nil {
		if over := b.over(ctx); over != nil {
			return over
		}
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	for {
		select {
		case m := <-messages:
			deliver(m)
		case <-ctx.Done():
			return ctx.Err()
		case <-b.stopped:
			return model.ErrStopped
		}
	}
}
