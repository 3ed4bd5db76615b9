// Package stray takes events that stand in a lane of another partition to their own.
//
// A lane is a stream in which anybody with the right to publish can store an event, and the
// server does not know which partition a space belongs to. A client that has the number wrong
// is told that its event is stored, and it is: so it has to be handled. Whoever reads the
// lane sends it on, under the same id. That can be done any number of times, as an event is
// sent once however often it is sent, so nothing has to be remembered but where to begin again:
// the reader saves no position beyond an event that has not been sent on yet (Forwarder.Done).
//
// Events of one lane are sent on one after the other, so a client that puts all of them into
// one and the same lane keeps their order, too.
package stray

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

const (
	// room is how many events may wait to be sent on; then the reader of the lane waits.
	room = 64
	// again is how long to wait before an event is sent again that was not accepted.
	// The pauses double up to 64 times that.
	again = 200 * time.Millisecond
	// NonePending is what Done says if no event waits.
	NonePending = ^uint64(0)
)

// Lanes are where events are sent.
type Lanes interface {
	Partitions() int
	Send(m model.Message, done func(model.SendResult, error))
}

// Forwarder sends on what stands in the lane of one partition and belongs elsewhere.
type Forwarder struct {
	lanes     Lanes
	partition int
	log       *slog.Logger
	queue     chan model.Message

	mu      sync.Mutex
	pending []uint64 // lane sequences, in order
}

// New is the forwarder of a partition. Run must be called.
func New(lanes Lanes, partition int, log *slog.Logger) *Forwarder {
	return &Forwarder{lanes: lanes, partition: partition, log: log, queue: make(chan model.Message, room)}
}

// Take reports whether an event belongs to another partition, and takes it over then. It waits
// while too many do.
func (f *Forwarder) Take(ctx context.Context, m *model.Message) bool {
	if model.PartitionOf(m.Space, f.lanes.Partitions()) == f.partition {
		return false
	}
	f.mu.Lock()
	f.pending = append(f.pending, m.Seq)
	f.mu.Unlock()
	select {
	case f.queue <- *m:
	case <-ctx.Done(): // and is pending for ever, so the next reader finds it
	}
	return true
}

// Done is the lane sequence up to which all events that belong elsewhere are there.
func (f *Forwarder) Done() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 {
		return NonePending
	}
	return f.pending[0] - 1
}

// Run sends events on until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	for {
		select {
		case m := <-f.queue:
			if f.forward(ctx, m) != nil {
				return
			}
			f.mu.Lock()
			f.pending = f.pending[1:]
			f.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// forward sends one event on, until it is stored or can never be. The error is that of ctx,
// or of a bus that has been stopped.
func (f *Forwarder) forward(ctx context.Context, m model.Message) error {
	log := f.log.With("partition", f.partition, "lane", m.Seq, "space", m.Space, "stream", m.Stream, "event", m.ID)
	for n := 0; ; n++ {
		err := f.send(ctx, m)
		switch {
		case err == nil:
			log.Warn("an event was sent to the lane of another partition; it was sent on, to its own (`settle where` tells a space's partition)")
			return nil
		case ctx.Err() != nil || errors.Is(err, model.ErrStopped):
			return err
		case errors.Is(err, model.ErrTooLarge):
			log.Error("an event was sent to the lane of another partition, and is too large for its own: it is passed over", "error", err)
			return nil
		}
		log.Warn("an event was sent to the lane of another partition; sending it on, again", "error", err)
		if err := pause.For(ctx, again<<min(n, 6)); err != nil {
			return err
		}
	}
}

func (f *Forwarder) send(ctx context.Context, m model.Message) error {
	m.Seq, m.Stored = 0, time.Time{}
	answer := make(chan error, 1)
	f.lanes.Send(m, func(_ model.SendResult, err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
