package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// A lane that has lost its end would assign sequences again under which spaces have handled other
// events. It is filled up to the last known sequence to prevent that. See
// port.Lanes.

// The names of the messages that fill a lane, which no event can have.
const fillSpace, fillStream = "=", "="

// LaneEvent returns the message at a sequence of a partition's lane. See port.Lanes.
func (b *Bus) LaneEvent(ctx context.Context, partition int, seq uint64) (m model.Message, there bool, err error) {
	if err := b.checkPartition(partition); err != nil {
		return model.Message{}, false, err
	}
	if seq == 0 {
		return model.Message{}, false, nil
	}
	s, err := b.leaderGet(ctx, b.names.laneStream(partition), getRequest{Seq: seq})
	switch {
	case errors.Is(err, errNoMessage):
		return model.Message{}, false, nil
	case err != nil:
		return model.Message{}, false, fmt.Errorf("lane %d at %d: %w", partition, seq, err)
	}
	m, ok := eventOf(s)
	if !ok {
		m = model.Message{Seq: s.Seq, Stored: s.Time} // a filling message, or one with an invalid name
	}
	return m, true, nil
}

// LaneBefore returns the last sequence of a lane up to which everything was stored before a time.
// See port.Lanes.
func (b *Bus) LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error) {
	if err := b.checkPartition(partition); err != nil {
		return 0, err
	}
	stream := b.names.laneStream(partition)
	info, err := b.streamInfo(ctx, stream)
	if err == nil && info.State.Msgs > 0 {
		return b.lastBefore(ctx, stream, info.State.FirstSeq, info.State.LastSeq, at)
	}
	if err != nil {
		return 0, fmt.Errorf("lane %d before %s: %w", partition, at.Format(time.RFC3339), err)
	}
	return info.State.LastSeq, nil
}

// FillLane stores messages that are no events. See port.Lanes.
func (b *Bus) FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error {
	if err := b.checkPartition(partition); err != nil {
		return err
	}
	var taken []string
	for i := range names {
		if err := checkMessage(&names[i]); err != nil {
			return err
		}
		taken = append(taken, b.names.event(partition, &names[i]))
	}
	if err := b.fill(ctx, partition, taken); err != nil {
		return fmt.Errorf("take the names of %d events in lane %d: %w", len(names), partition, err)
	}
	for {
		end, err := b.LaneEnd(ctx, partition)
		if err != nil || end >= upTo {
			return err
		}
		window := make([]string, min(upTo-end, saveWindow))
		for i := range window {
			window[i] = b.names.laneOf(partition) + fillSpace + "." + fillStream + "." + shortID()
		}
		if err := b.fill(ctx, partition, window); err != nil {
			return fmt.Errorf("fill lane %d from %d to %d: %w", partition, end, upTo, err)
		}
	}
}

// fill stores a message that is no event under each free subject, in their
// order.
func (b *Bus) fill(ctx context.Context, partition int, subjects []string) error {
	for window := range slices.Chunk(subjects, saveWindow) {
		if err := b.fillWindow(ctx, partition, window); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bus) fillWindow(ctx context.Context, partition int, subjects []string) error {
	answers := make(chan error, len(subjects))
	requests := make([]*request, len(subjects))
	defer func() {
		for _, r := range requests {
			b.pub.withdraw(r)
		}
	}()
	for i, subject := range subjects {
		requests[i] = b.pub.start(task{
			op: OpSend, msg: &nats.Msg{Subject: subject, Header: nats.Header{headerExpect: expectNothing, headerFill: {"1"}}}, judge: judgeFill,
			done:   func(_ uint64, err error) { answers <- err },
			stream: b.names.laneStream(partition), subject: subject,
		})
	}
	for range subjects {
		select {
		case err := <-answers:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// judgeFill accepts any message at the subject.
func judgeFill(a answer, _ bool) ruling {
	switch a.outcome {
	case stored:
		return ruling{seq: a.seq}
	case moved, taken:
		return isThere
	case full, tooLarge, forbidden:
		return ruling{err: errors.New(a.why)}
	}
	return ruling{again: true}
}

// LogTail returns the last entries of a partition's log. See port.Log.
func (b *Bus) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	if err := b.checkPartition(partition); err != nil {
		return nil, err
	}
	stream := b.names.logStream(partition)
	info, err := b.streamInfo(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("end of log %d: %w", partition, err)
	}
	after := info.State.LastSeq - min(info.State.LastSeq, uint64(max(n, 0)))
	found, err := b.readPages(ctx, stream, b.names.logs(partition), after, n)
	if err != nil {
		return nil, fmt.Errorf("end of log %d: %w", partition, err)
	}
	entries := make([]model.LogEntry, len(found))
	for i, m := range found {
		entries[i] = model.LogEntry{
			Space: lastToken(m.Subject), Seq: m.Seq, ID: header(m.Header, headerCommit), Data: m.Data, Stored: m.Time,
			Prev: number(m.Header, headerExpect),
		}
	}
	return entries, nil
}

// MovePosition stores a number, even if it is smaller than the stored one. See port.State.
func (b *Bus) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	for try := 1; ; try++ {
		there, err := b.position(ctx, partition, name)
		if err != nil || there.Seq == seq {
			return err
		}
		bucket, key := b.names.stateBucket(partition), positionPrefix+name
		d := &model.StateDoc{Data: strconv.AppendUint(nil, seq, 10), Seq: seq, Rev: there.Rev}
		moved := make(chan put, 1)
		r := b.pub.start(task{
			op: OpSave, msg: b.putMessage(partition, item{key, d}), judge: judgePut,
			done:   func(rev uint64, err error) { moved <- put{item{key, d}, rev, err} },
			stream: bucketStream(bucket), subject: bucketSubject(bucket, key), bound: true, epoch: b.past.now(),
		})
		select {
		case p := <-moved:
			if p.err == nil {
				b.seen.note(key, p.rev, seq)
				return nil
			}
			if !errors.Is(p.err, errMoved) {
				return fmt.Errorf("move position %s of partition %d to %d: %w", name, partition, seq, p.err)
			}
		case <-ctx.Done():
			b.pub.withdraw(r)
			return ctx.Err()
		}
		if err := b.sleep(ctx, pause(try)); err != nil {
			return err
		}
	}
}
