package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// feedRoom is how many messages of a feed may wait to be delivered. More are
// dropped, which shows as a gap and is read from the log.
const feedRoom = 256

// fillPage is how many entries of a gap are read at a time.
const fillPage = 512

// FollowSpace delivers the entries of one space. See port.Log, and the package
// comment for how it works. It runs on the caller's goroutine.
func (l *logs) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	messages := make(chan *nats.Msg, feedRoom)
	sub, err := l.NC.ChanSubscribe(l.Names.Feed(l.PartitionOf(space), space), messages)
	if err != nil {
		return l.followError(ctx, space, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	p := l.PartitionOf(space)
	f := &feed{
		logs: l, space: space, last: after, deliver: deliver, sub: sub, messages: messages,
		stream: l.Names.LogStream(p), subject: l.Names.Log(p, space), epoch: port.EpochOf(ctx, l.Past.Now()),
	}
	if err = f.run(ctx); errors.Is(err, wire.ErrNoStream) {
		l.Suspect(f.stream)
	}
	return l.followError(ctx, space, err)
}

// followError returns the error that a subscription ends with: the reason why it must end, if there is one.
func (l *logs) followError(ctx context.Context, space string, err error) error {
	if over := l.Over(ctx); over != nil {
		return over
	}
	return fmt.Errorf("follow space %s: %w", space, err)
}

// feed is one FollowSpace. last only grows, and every entry passes through next,
// so nothing is delivered twice or out of order.
type feed struct {
	logs    *logs
	space   string
	last    uint64 // the sequence that was delivered last
	deliver func(model.LogEntry)

	stream, subject string
	epoch           uint64 // the store's epoch at the start

	sub      *nats.Subscription
	messages <-chan *nats.Msg
	dropped  int // as many messages of sub as are accounted for
}

func (f *feed) run(ctx context.Context) error {
	check := time.NewTicker(f.logs.Timing.HeadCheck)
	defer check.Stop()
	reconnected := f.logs.Reconnects.Wait()
	if err := f.logs.Steady(ctx, f.stream, f.epoch); err != nil {
		return err
	}
	if err := f.fill(ctx); err != nil {
		return err
	}
	for {
		changed := f.logs.Past.Changed.Wait()
		err := f.logs.Steady(ctx, f.stream, f.epoch)
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case m := <-f.messages:
			err = f.receive(ctx, m)
			if err == nil && f.missed() {
				err = f.fill(ctx)
			}
		case <-reconnected:
			reconnected = f.logs.Reconnects.Wait()
			err = f.compareHead(ctx)
		case <-check.C:
			err = f.compareHead(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		case <-f.logs.Stopped:
			err = model.ErrStopped
		}
		if err != nil {
			return err
		}
	}
}

// receive processes a message of the feed. The server names the entry of the space that
// preceded it; if that is not the one delivered last, entries are missing.
func (f *feed) receive(ctx context.Context, m *nats.Msg) error {
	seq := wire.AddedNumber(m.Header, wire.HeaderSequence)
	if seq <= f.last {
		return nil
	}
	if wire.AddedNumber(m.Header, wire.HeaderLastSequence) != f.last {
		return f.fillTo(ctx, seq)
	}
	return f.next(entryOf(f.space, seq, wire.AddedTime(m.Header), m.Header, m.Data))
}

// missed reports, once no message is waiting, whether some were dropped since the
// last call. If they were the last ones, no successor shows the gap.
func (f *feed) missed() bool {
	if len(f.messages) > 0 {
		return false
	}
	dropped, err := f.sub.Dropped()
	if err != nil || dropped == f.dropped {
		return false
	}
	f.dropped = dropped
	return true
}

func (f *feed) next(e model.LogEntry) error {
	if err := e.Follows(f.last); err != nil {
		return err
	}
	f.last = e.Seq
	f.logs.Past.Note(f.stream, wire.Anchor{Seq: e.Seq, Time: e.Stored, Subject: f.subject, Commit: e.ID})
	f.deliver(e)
	return nil
}

// compareHead detects an entry whose feed message was lost and that has no successor to reveal the gap. It
// asks the leader for the next entry; usually there is none.
func (f *feed) compareHead(ctx context.Context) error {
	p := f.logs.PartitionOf(f.space)
	next, err := f.logs.LeaderGet(ctx, f.logs.Names.LogStream(p), wire.GetRequest{Seq: f.last + 1, NextFor: f.logs.Names.Log(p, f.space)})
	if errors.Is(err, wire.ErrNoMessage) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.fillTo(ctx, next.Seq)
}

// fillTo delivers the missing entries from the log, up to a sequence that is known to exist. A lagging
// replica does not show it yet, so the read is repeated.
func (f *feed) fillTo(ctx context.Context, seq uint64) error {
	for try := 1; f.last < seq; try++ {
		if err := f.fill(ctx); err != nil {
			return err
		}
		if f.last >= seq {
			return nil
		}
		if err := f.logs.Sleep(ctx, wire.Pause(try)); err != nil {
			return err
		}
	}
	return nil
}

// fill delivers the entries of the log after the last delivery.
func (f *feed) fill(ctx context.Context) error {
	for {
		entries, err := f.logs.ReadLog(ctx, f.space, f.last, fillPage)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f.logs.Over(ctx); err != nil {
				return err
			}
			if err := f.next(e); err != nil {
				return err
			}
		}
		if len(entries) < fillPage {
			return nil
		}
	}
}
