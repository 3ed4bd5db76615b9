package membus

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// batch is how many messages a follower fetches at a time: many for throughput, few enough to notice soon
// that it should stop.
const batch = 256

func entrySeq(e model.LogEntry) uint64 { return e.Seq }

// following names a follower, numbered among the client's earlier followers of the same subject.
func (cl *client) following(op Op) Op {
	if cl.net == nil || op.Nth > 0 {
		return op
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	op.Client = cl.id
	cl.count(&op)
	return op
}

// errOnTheWay reports a lost delivery that a stream still has.
var errOnTheWay = errors.New("lost on the way")

// underWay returns when a delivery that could leave at since has reached the client.
func (cl *client) underWay(ctx context.Context, d Delivery, since time.Time) error {
	if cl.net == nil {
		return nil
	}
	takes := cl.net.Delivery(d)
	if takes == Lost {
		return errOnTheWay
	}
	takes -= time.Since(since)
	if err := cl.pass(ctx, max(takes, time.Microsecond)); err != nil { // no two events at the same instant
		return err
	}
	return cl.awaitAwake(ctx, d.Op)
}

// follow delivers what look finds after sequence after, and waits for more, until ctx ends or the client
// stops. The last delivered sequence is all it needs to continue after a disconnection, without gap or
// repetition.
func follow[T any](ctx context.Context, c *client, op Op, after uint64, look func(after uint64) ([]T, <-chan struct{}), seq func(T) uint64, deliver func(T)) error {
	op = c.following(op)
	epoch := port.EpochOf(ctx, c.Epoch())
	for {
		if err := c.awaitLink(ctx); err != nil {
			return err
		}
		found, more := look(after)
		if c.Epoch() != epoch {
			return model.ErrRewound
		}
		since := time.Now()
		for i, v := range found {
			d := Delivery{op, seq(v)}
			err := c.underWay(ctx, d, since)
			if errors.Is(err, errOnTheWay) {
				op.Try++
				if err := c.noticeGap(ctx, i+1 < len(found), more); err != nil {
					return err
				}
				break
			}
			if err != nil {
				return err
			}
			if err := c.awaitLink(ctx); err != nil {
				return err
			}
			if c.Epoch() != epoch {
				return model.ErrRewound
			}
			deliver(v)
			after = seq(v)
			c.report(Step{Moment: Delivered, Op: op, Seq: after})
			if c.doubles(d) {
				op.Try++
				break
			}
		}
		if len(found) > 0 {
			continue
		}
		if err := c.await(ctx, more); err != nil {
			return err
		}
	}
}

// noticeGap returns when a client has noticed that a delivery is missing: with the next delivery, or when the
// idle consumer reports its position.
func (cl *client) noticeGap(ctx context.Context, next bool, more <-chan struct{}) error {
	if next {
		return cl.err(ctx)
	}
	t := time.NewTimer(quiet)
	defer t.Stop()
	select {
	case <-more:
	case <-t.C:
	case <-ctx.Done():
	case <-cl.stopped:
	}
	return cl.err(ctx)
}

// doubles reports whether a delivery arrives twice.
func (cl *client) doubles(d Delivery) bool {
	n, can := cl.net.(Doubler)
	return can && n.Doubled(d)
}

// listen delivers what a subscription collects, and subscribes again after every disconnection: messages
// published in between are lost.
func listen[T any](ctx context.Context, c *client, op Op, open func() *Subscription[T], deliver func(T)) error {
	l := listener[T]{client: c, op: c.following(op), deliver: deliver}
	for {
		if err := c.awaitLink(ctx); err != nil {
			return err
		}
		up, changed := c.linkState()
		if !up {
			continue
		}
		if err := l.collect(ctx, open(), changed); err != nil {
			return err
		}
	}
}

// listener is a subscription to messages that no stream stores.
type listener[T any] struct {
	client    *client
	op        Op
	delivered uint64
	deliver   func(T)
}

// collect delivers until the connection changes, and then returns nil.
func (l *listener[T]) collect(ctx context.Context, sub *Subscription[T], changed <-chan struct{}) error {
	defer sub.Cancel()
	for !isClosed(changed) { // messages that arrive together with the loss of the connection are lost
		posted, more := sub.Take()
		if err := l.deliverAll(ctx, posted, changed); err != nil {
			return err
		}
		select {
		case <-more:
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-l.client.stopped:
			return model.ErrStopped
		}
	}
	return nil
}

func (l *listener[T]) deliverAll(ctx context.Context, posted []T, changed <-chan struct{}) error {
	since := time.Now()
	for _, v := range posted {
		l.delivered++
		d := Delivery{l.op, l.delivered}
		switch err := l.client.underWay(ctx, d, since); {
		case errors.Is(err, errOnTheWay):
			continue
		case err == nil && l.client.net != nil && isClosed(changed):
			return nil
		case err != nil:
			return err
		}
		l.deliver(v)
		l.client.report(Step{Moment: Delivered, Op: l.op, Seq: l.delivered})
		if l.client.doubles(d) {
			l.deliver(v)
		}
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
