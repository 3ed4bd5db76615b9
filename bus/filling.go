package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// A lane that has lost its end would assign sequences again under which spaces have handled other
// events. It is filled up to the last known sequence to prevent that. See
// port.Lanes.

// FillLane stores messages that are no events. See port.Lanes.
func (l *lanes) FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	var taken []string
	for i := range names {
		if err := wire.CheckMessage(&names[i]); err != nil {
			return err
		}
		taken = append(taken, l.Names.Event(partition, &names[i]))
	}
	if err := l.fill(ctx, partition, taken); err != nil {
		return fmt.Errorf("take the names of %d events in lane %d: %w", len(names), partition, err)
	}
	for {
		end, err := l.LaneEnd(ctx, partition)
		if err != nil || end >= upTo {
			return err
		}
		window := make([]string, min(upTo-end, saveWindow))
		for i := range window {
			window[i] = l.Names.Fill(partition)
		}
		if err := l.fill(ctx, partition, window); err != nil {
			return fmt.Errorf("fill lane %d from %d to %d: %w", partition, end, upTo, err)
		}
	}
}

// fill stores a message that is no event under each free subject, in their
// order.
func (l *lanes) fill(ctx context.Context, partition int, subjects []string) error {
	for window := range slices.Chunk(subjects, saveWindow) {
		if err := l.fillWindow(ctx, partition, window); err != nil {
			return err
		}
	}
	return nil
}

func (l *lanes) fillWindow(ctx context.Context, partition int, subjects []string) error {
	answers := make(chan error, len(subjects))
	requests := make([]*wire.Request, len(subjects))
	defer func() {
		for _, r := range requests {
			l.Pub.Withdraw(r)
		}
	}()
	for i, subject := range subjects {
		requests[i] = l.Pub.Start(wire.Task{
			Op: faults.OpSend, Msg: &nats.Msg{Subject: subject, Header: nats.Header{wire.HeaderExpect: expectNothing, wire.HeaderFill: {"1"}}}, Judge: judgeFill,
			Done:   func(_ uint64, err error) { answers <- err },
			Stream: l.Names.LaneStream(partition), Subject: subject, Bound: true, Epoch: port.EpochOf(ctx, l.Past.Now()),
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
func judgeFill(a wire.Answer, _ bool) wire.Ruling {
	switch a.Outcome {
	case wire.Stored:
		return wire.Ruling{Seq: a.Seq}
	case wire.Moved, wire.Taken:
		return isThere
	case wire.Full, wire.TooLarge, wire.Forbidden:
		return wire.Ruling{Err: errors.New(a.Reason)}
	}
	return wire.Ruling{Again: true}
}
