package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// A position is an item of the STATE bucket whose reflected log sequence is the
// position. Its text is for people; the Settle-Seq header is decisive, as with
// every item.

// LoadPosition returns the number stored for a partition under a name, 0 if there is
// none. See port.State.
func (s *states) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	there, err := s.position(ctx, partition, name)
	return there.Seq, err
}

// SavePosition stores seq if it is larger than the stored number. See port.State.
func (s *states) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	return s.savePosition(ctx, partition, name, seq, strconv.AppendUint(nil, seq, 10))
}

func (s *states) savePosition(ctx context.Context, partition int, name string, seq uint64, data []byte) error {
	epoch := port.EpochOf(ctx, s.Past.Now())
	there, err := s.position(ctx, partition, name)
	if err != nil || there.Seq >= seq {
		return err
	}
	d := model.StateDoc{Data: data, Seq: seq, Rev: there.Rev}
	err = s.saveItems(ctx, partition, epoch, []item{{wire.PositionPrefix + name, &d}})
	if errors.Is(err, model.ErrOutdated) {
		return nil
	}
	return err
}

// PositionStored returns when a number was last stored. See port.State.
func (s *states) PositionStored(ctx context.Context, partition int, name string) (time.Time, error) {
	if err := s.CheckPartition(partition); err != nil {
		return time.Time{}, err
	}
	if err := model.CheckName("position", name); err != nil {
		return time.Time{}, err
	}
	bucket := s.Names.StateBucket(partition)
	m, err := s.LeaderGet(ctx, wire.BucketStream(bucket), wire.GetRequest{LastFor: wire.BucketSubject(bucket, wire.PositionPrefix+name)})
	if err != nil && !errors.Is(err, wire.ErrNoMessage) {
		return time.Time{}, fmt.Errorf("when position %s of partition %d was saved: %w", name, partition, err)
	}
	return m.Time, nil
}

// LoadAhead returns how far a partition is done with its lane except for a few spaces. An unreadable
// item counts as none. See port.State.
func (s *states) LoadAhead(ctx context.Context, partition int) (model.Ahead, error) {
	there, err := s.position(ctx, partition, model.AheadPosition)
	if err != nil || there.Seq == 0 || len(there.Data) > 0 && there.Data[0] != '{' { // it was moved
		return model.Ahead{}, err
	}
	a, err := model.DecodeAhead(there.Data)
	if err == nil && a.UpTo != there.Seq {
		err = fmt.Errorf("it is of %d, and was saved as %d", a.UpTo, there.Seq)
	}
	if err != nil {
		s.Faults.Warn("cannot read the lane position that sets spaces aside; the lane is read from the position of all spaces", strconv.Itoa(partition), "partition", partition, "error", err)
		return model.Ahead{}, nil
	}
	return a, nil
}

// SaveAhead stores a if its UpTo is larger than the stored one. See port.State.
func (s *states) SaveAhead(ctx context.Context, partition int, a model.Ahead) error {
	data, err := a.Encode()
	if err != nil {
		return fmt.Errorf("spaces that are set aside: %w", err)
	}
	return s.savePosition(ctx, partition, model.AheadPosition, a.UpTo, data)
}

func (s *states) position(ctx context.Context, partition int, name string) (model.StateDoc, error) {
	if err := s.CheckPartition(partition); err != nil {
		return model.StateDoc{}, err
	}
	if err := model.CheckName("position", name); err != nil {
		return model.StateDoc{}, err
	}
	there, err := s.readItem(ctx, partition, wire.PositionPrefix+name)
	if err != nil && !errors.Is(err, wire.ErrNoMessage) {
		return model.StateDoc{}, fmt.Errorf("position %s of partition %d: %w", name, partition, err)
	}
	return there, nil
}

// MovePosition stores a number, even if it is smaller than the stored one. See port.State.
func (s *states) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	for try := 1; ; try++ {
		there, err := s.position(ctx, partition, name)
		if err != nil || there.Seq == seq {
			return err
		}
		bucket, key := s.Names.StateBucket(partition), wire.PositionPrefix+name
		d := &model.StateDoc{Data: strconv.AppendUint(nil, seq, 10), Seq: seq, Rev: there.Rev}
		moved := make(chan put, 1)
		r := s.Pub.Start(wire.Task{
			Op: faults.OpSave, Msg: s.putMessage(partition, item{key, d}), Judge: judgePut,
			Done:   func(rev uint64, err error) { moved <- put{item{key, d}, rev, err} },
			Stream: wire.BucketStream(bucket), Subject: wire.BucketSubject(bucket, key), Bound: true, Epoch: port.EpochOf(ctx, s.Past.Now()),
		})
		select {
		case p := <-moved:
			if p.err == nil {
				s.seen.note(key, p.rev, seq)
				return nil
			}
			if !errors.Is(p.err, errMoved) {
				return fmt.Errorf("move position %s of partition %d to %d: %w", name, partition, seq, p.err)
			}
		case <-ctx.Done():
			s.Pub.Withdraw(r)
			return ctx.Err()
		}
		if err := s.Sleep(ctx, wire.Pause(try)); err != nil {
			return err
		}
	}
}
