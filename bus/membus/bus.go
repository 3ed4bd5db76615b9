package membus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
)

// Partitions is the number of partitions of the deployment.
func (b *Bus) Partitions() int { return b.server.Partitions() }

// Horizon is for how long the deployment remembers events.
func (b *Bus) Horizon() time.Duration { return b.server.Horizon() }

// MaxPayload is the largest message in bytes, headers included.
func (b *Bus) MaxPayload() int { return b.server.MaxPayload() }

// Append appends a commit if the space's head is where a.Expect says.
func (b *Bus) Append(a model.Append, done func(seq uint64, err error)) {
	if err := model.CheckName("space", a.Space); err != nil {
		go done(0, err) // ends when done returns
		return
	}
	r := storing(Op{Label: "append", Space: a.Space}, func(op Op) func() {
		seq, err := b.server.Append(a)
		b.tell(Step{Moment: Arrives, Op: op, Append: &a, Seq: seq, Err: err})
		if b.net != nil && errors.Is(err, model.ErrRefused) && b.server.Head(a.Space) > a.Expect {
			return func() { b.askOwner(a, err, done) }
		}
		return func() { done(b.classify(a, seq, err)) } // a log that ends before a.Expect has nothing to tell
	}, func() { done(0, model.ErrStopped) })
	r.epoch, r.rewound = a.Epoch, func() { done(0, fmt.Errorf("append %s of space %s: %w", a.ID, a.Space, model.ErrRewound)) }
	b.submit(r)
}

// askOwner is classify for a client that is connected through a network: a request of
// its own. There is a commit behind a.Expect, so an answer without one is from the past.
func (b *Bus) askOwner(a model.Append, refused error, done func(seq uint64, err error)) {
	b.submit(&request{
		op: Op{Label: "owned", Space: a.Space},
		recall: func(behind int) func() {
			next := b.server.readLogBehind(a.Space, a.Expect, 1, behind)
			return func() {
				switch {
				case len(next) == 0:
					b.askOwner(a, refused, done)
				case next[0].ID == a.ID && next[0].Prev == a.Expect:
					done(next[0].Seq, nil)
				default:
					done(0, fmt.Errorf("append %s of space %s behind %d: %w", a.ID, a.Space, a.Expect, refused))
				}
			}
		},
		stopped: func() { done(0, model.ErrStopped) },
	})
}

// classify finds out whose commit a refused append has lost against. It asks
// after every refusal, not only after a second try: a duplicate on the network
// may have brought the refusal of a first one.
func (b *Bus) classify(a model.Append, seq uint64, err error) (uint64, error) {
	if !errors.Is(err, model.ErrRefused) {
		return seq, err
	}
	if own, stored := b.server.Owned(a); stored {
		return own, nil
	}
	return 0, fmt.Errorf("append %s of space %s behind %d: %w", a.ID, a.Space, a.Expect, err)
}

// Head is the sequence of the space's last commit.
func (b *Bus) Head(ctx context.Context, space string) (uint64, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	return recall(ctx, b, Op{Label: "head", Space: space}, func(behind int) uint64 { return b.server.headBehind(space, behind) })
}

// ReadLog returns up to limit entries of the space behind after.
func (b *Bus) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	return recall(ctx, b, Op{Label: "read-log", Space: space}, func(behind int) []model.LogEntry {
		return b.server.readLogBehind(space, after, limit, behind)
	})
}

// Send stores an event unless its id is in the lane.
func (b *Bus) Send(m model.Message, done func(model.SendResult, error)) {
	b.sendTo(model.PartitionOf(m.Space, b.Partitions()), Op{Label: "send", Space: m.Space}, m, done)
}

// SendAstray is Send to the lane of a partition that need not be its own: see Server.SendTo.
func (b *Bus) SendAstray(partition int, m model.Message, done func(model.SendResult, error)) {
	b.sendTo(partition, Op{Label: "send-astray", Space: m.Space, Key: number(partition)}, m, done)
}

func (b *Bus) sendTo(partition int, op Op, m model.Message, done func(model.SendResult, error)) {
	if err := checkMessage(m); err != nil {
		go done(model.SendResult{}, err) // ends when done returns
		return
	}
	r := storing(op, func(op Op) func() {
		result, err := b.server.SendTo(partition, m)
		b.tell(Step{Moment: Arrives, Op: op, Event: &m, Seq: result.Seq, Err: err})
		return func() { done(result, err) }
	}, func() { done(model.SendResult{}, model.ErrStopped) })
	if m.Bound {
		r.epoch, r.rewound = m.Epoch, func() { done(model.SendResult{}, fmt.Errorf("send event %s: %w", m.ID, model.ErrRewound)) }
	}
	m.Bound, m.Epoch = false, 0 // neither is stored
	b.submit(r)
}

func checkMessage(m model.Message) error {
	if err := model.CheckName("space", m.Space); err != nil {
		return err
	}
	if err := model.CheckName("stream", m.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(m.ID)
}

// ReadLane returns up to limit events of one space behind after.
func (b *Bus) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	return recall(ctx, b, Op{Label: "read-lane", Space: space}, func(behind int) []model.Message {
		return b.server.readLaneBehind(space, after, limit, behind)
	})
}

// CountLane counts the events of one space in a part of its lane.
func (b *Bus) CountLane(ctx context.Context, space string, after, upTo uint64) (int, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	return recall(ctx, b, Op{Label: "count-lane", Space: space}, func(int) int { return b.server.CountLane(space, after, upTo) })
}

// FindEvent returns the event of that name, if the lane has one.
func (b *Bus) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	if err := checkMessage(model.Message{Space: space, Stream: stream, ID: id}); err != nil {
		return model.Message{}, false, err
	}
	type answer struct {
		m  model.Message
		ok bool
	}
	a, err := recall(ctx, b, Op{Label: "find-event", Space: space, Key: stream + "." + id}, func(behind int) answer {
		m, ok := b.server.findEventBehind(space, stream, id, behind)
		return answer{m, ok}
	})
	return a.m, a.ok, err
}

// LaneEnd is the last sequence of a partition's lane.
func (b *Bus) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	if err := b.server.checkPartition(partition); err != nil {
		return 0, err
	}
	return recall(ctx, b, Op{Label: "lane-end", Key: number(partition)}, func(behind int) uint64 { return b.server.laneEndBehind(partition, behind) })
}

// Observe tells the owner of a space that somebody watches one of its documents.
func (b *Bus) Observe(l model.Lease) error {
	if err := l.Check(); err != nil {
		return err
	}
	return b.publish(Op{Label: "observe", Space: l.Space, Key: l.Doc}, func() { b.server.Observe(l) })
}

// CallRoll asks those who observe spaces of a partition to say so again.
func (b *Bus) CallRoll(partition int) error {
	if err := b.server.checkPartition(partition); err != nil {
		return err
	}
	return b.publish(Op{Label: "call-roll", Key: number(partition)}, func() { b.server.CallRoll(partition) })
}

func number(partition int) string { return strconv.Itoa(partition) }

// publish submits a message that nobody acknowledges: it is sent at most once,
// and its answer is that there is none.
func (b *Bus) publish(op Op, arrive func()) error {
	if err := b.err(context.Background()); err != nil {
		return err
	}
	if b.net != nil {
		b.post(op, arrive)
		return nil
	}
	b.submit(&request{
		op: op,
		arrive: func(try int) func() {
			if try == 1 {
				arrive()
			}
			return func() {}
		},
		stopped: func() {},
	})
	return nil
}

// Announce says that a member is there.
func (b *Bus) Announce(ctx context.Context, m model.Member) error {
	if err := model.CheckName("worker", m.ID); err != nil {
		return err
	}
	_, err := ask(ctx, b, Op{Label: "announce"}, func(int) bool { b.server.Announce(m); return true })
	return err
}

// AnswerPings makes Ping(id) true until ctx ends.
func (b *Bus) AnswerPings(ctx context.Context, id string) error {
	if err := model.CheckName("worker", id); err != nil {
		return err
	}
	if err := b.awaitLink(ctx); err != nil {
		return err
	}
	context.AfterFunc(ctx, b.server.Answer(id, b.online))
	return nil
}

// Ping reports whether somebody answers for id.
func (b *Bus) Ping(ctx context.Context, id string) (bool, error) {
	if err := model.CheckName("worker", id); err != nil {
		return false, err
	}
	return ask(ctx, b, Op{Label: "ping", Key: id}, func(int) bool { return b.server.Answering(id) })
}
