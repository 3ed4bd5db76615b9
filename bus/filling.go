package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// A lane that has lost its end would assign sequences again under which spaces have handled other
// events. It is filled up to the last known sequence to prevent that. See
// port.Lanes.

// The names of the messages that fill a lane, which no event can have.
const fillSpace, fillStream = "=", "="

// FillLane stores messages that are no events. See port.Lanes.
func (l *lanes) FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error {
	if err := l.checkPartition(partition); err != nil {
		return err
	}
	var taken []string
	for i := range names {
		if err := checkMessage(&names[i]); err != nil {
			return err
		}
		taken = append(taken, l.names.event(partition, &names[i]))
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
			window[i] = l.names.laneOf(partition) + fillSpace + "." + fillStream + "." + shortID()
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
	requests := make([]*request, len(subjects))
	defer func() {
		for _, r := range requests {
			l.pub.withdraw(r)
		}
	}()
	for i, subject := range subjects {
		requests[i] = l.pub.start(task{
			op: OpSend, msg: &nats.Msg{Subject: subject, Header: nats.Header{headerExpect: expectNothing, headerFill: {"1"}}}, judge: judgeFill,
			done:   func(_ uint64, err error) { answers <- err },
			stream: l.names.laneStream(partition), subject: subject,
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
