// Package misroute forwards events that are stored in the lane of the wrong partition.
//
// A lane is a stream in which every client with publish permission can store events, and the server
// cannot check which partition a space belongs to. A client with a wrong partition number receives
// an acknowledgement, so its event has to be handled. The reader of the lane therefore forwards the
// event to the right lane, under the same id, and tracks its progress:
//
//	Forwarder.Done   the reader saves no lane position beyond an event that is not forwarded yet
//	Position         a separate saved position, up to which all misrouted events were forwarded.
//	                 A blocked space can hold the lane position back beyond the horizon, and an
//	                 event that was forwarded again after the horizon would be handled again
//
// Events of one lane are forwarded one at a time, so a client that stores all its events in the same
// lane keeps their order. The reader of the lane is never blocked: when too many events wait, because
// their lane is full or access to it is denied, a second subscription reads them from the stream again.
package misroute

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// Position is the name of the saved position of a partition up to which all misrouted events of its
// lane were forwarded.
const Position = "astray"

const (
	// queueSize is the number of events that may wait in memory.
	queueSize = 64
	// retryDelay is the delay before a refused event is sent again. It doubles up to 64 times that.
	retryDelay = 200 * time.Millisecond
	// NonePending is the result of Done when no event waits.
	NonePending = ^uint64(0)
)

// Lanes reads and sends events.
type Lanes interface {
	Partitions() int
	Send(m model.Message, done func(model.SendResult, error))
	FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error
	LoadPosition(ctx context.Context, partition int, name string) (uint64, error)
}

// Forwarder forwards the misrouted events in the lane of one partition.
type Forwarder struct {
	lanes     Lanes
	partition int
	log       *slog.Logger
	faults    *faultlog.Log
	queue     chan model.Message

	mu sync.Mutex
	// before is the saved Position, sent the sequence of the last event that was forwarded since.
	before, sent uint64
	pending      []uint64 // lane sequences of the events in memory, in order
	// rereading is set while the events that did not fit are read again, after the sequence read.
	rereading bool
	read      uint64
}

// New returns the forwarder of a partition. The caller must call Run.
func New(lanes Lanes, partition int, log *slog.Logger) *Forwarder {
	return &Forwarder{lanes: lanes, partition: partition, log: log, faults: faultlog.New(log), queue: make(chan model.Message, queueSize)}
}

// Saved records that Position was saved with a value.
func (f *Forwarder) Saved(position uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = max(f.before, position)
}

// Take reports whether an event of the lane belongs to another partition. If so, the forwarder is
// responsible for it from then on. Take does not block.
func (f *Forwarder) Take(m *model.Message) bool {
	if !f.misrouted(m) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rereading || m.Seq <= f.before {
		return true
	}
	select {
	case f.queue <- *m: // Run removes it from the list under the lock
		f.pending = append(f.pending, m.Seq)
	default:
		f.rereading, f.read = true, m.Seq-1
	}
	return true
}

func (f *Forwarder) misrouted(m *model.Message) bool {
	return model.PartitionOf(m.Space, f.lanes.Partitions()) != f.partition
}

// Done returns the lane sequence up to which all misrouted events are forwarded, or NonePending.
func (f *Forwarder) Done() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.pending) > 0:
		return f.pending[0] - 1
	case f.rereading:
		return f.read
	}
	return NonePending
}

// Sent returns the Position to save, given that the lane was read up to a sequence; 0 if nothing was
// forwarded since the last one.
func (f *Forwarder) Sent(read uint64) uint64 {
	done := min(f.Done(), read)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent <= f.before {
		return 0
	}
	return min(done, f.sent)
}

// Run forwards events until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	for known := false; ; {
		select {
		case m := <-f.queue:
			if !known && f.load(ctx) != nil || m.Seq > f.saved() && f.forward(ctx, m) != nil {
				return
			}
			known = true
			f.mu.Lock()
			f.pending, f.sent = f.pending[1:], max(f.sent, m.Seq)
			reread := f.rereading && len(f.pending) == 0
			f.mu.Unlock()
			if reread {
				f.reread(ctx)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// load loads the Position that an earlier reader of the lane has saved. It is called at the first
// misrouted event.
func (f *Forwarder) load(ctx context.Context) error {
	for {
		position, err := f.lanes.LoadPosition(ctx, f.partition, Position)
		if err == nil {
			f.Saved(position)
			return nil
		}
		if errors.Is(err, model.ErrStopped) {
			return err
		}
		f.faults.Warn("load the position of forwarded events; trying again", "", "partition", f.partition, "error", err)
		if err := pause.For(ctx, retryDelay); err != nil {
			return err
		}
	}
}

func (f *Forwarder) saved() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before
}

// reread reads the events that did not fit into memory from the lane again, and forwards each before it
// reads further, until ctx ends.
func (f *Forwarder) reread(ctx context.Context) {
	for ctx.Err() == nil {
		f.mu.Lock()
		after := f.read
		f.mu.Unlock()
		reading, stop := context.WithCancel(ctx)
		err := f.lanes.FollowLane(reading, f.partition, after, func(m model.Message) { f.receive(reading, stop, m) })
		stop()
		if errors.Is(err, model.ErrStopped) || pause.For(ctx, retryDelay) != nil {
			return
		}
	}
}

// receive forwards an event that was read again. It stops the subscription after a failure, and
// ignores all later events.
func (f *Forwarder) receive(ctx context.Context, stop func(), m model.Message) {
	misrouted := f.misrouted(&m)
	if ctx.Err() != nil || misrouted && m.Seq > f.saved() && f.forward(ctx, m) != nil {
		stop()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = max(f.read, m.Seq)
	if misrouted {
		f.sent = max(f.sent, m.Seq)
	}
}

// forward sends one event until it is stored, or is known never to be accepted. The error is that of
// ctx or of a stopped bus.
func (f *Forwarder) forward(ctx context.Context, m model.Message) error {
	about := []any{"space", m.Space, "stream", m.Stream, "event", m.ID, "partition", f.partition, "sequence", m.Seq, "own_partition", model.PartitionOf(m.Space, f.lanes.Partitions())}
	for n := 0; ; n++ {
		duplicate, err := f.send(ctx, m)
		switch {
		case err == nil && duplicate:
			f.faults.Warn("an event is in the lane of another partition; its own lane already has it", "", about...)
			return nil
		case err == nil:
			f.faults.Warn("an event was in the lane of another partition and has been forwarded to its own (`settle where` prints the partition of a space)", "", about...)
			return nil
		case ctx.Err() != nil || errors.Is(err, model.ErrStopped):
			return err
		case errors.Is(err, model.ErrTooLarge):
			f.log.Error("an event is in the lane of another partition, and too large for its own: it is skipped", append(about, "error", err)...)
			return nil
		}
		f.faults.Warn("an event is in the lane of another partition; forwarding it failed, trying again", "", append(about, "error", err)...)
		if err := pause.For(ctx, retryDelay<<min(n, 6)); err != nil {
			return err
		}
	}
}

// sendResult is the outcome of a send.
type sendResult struct {
	duplicate bool
	err       error
}

func (f *Forwarder) send(ctx context.Context, m model.Message) (duplicate bool, err error) {
	m.Seq, m.Stored = 0, time.Time{}
	results := make(chan sendResult, 1)
	f.lanes.Send(m, func(r model.SendResult, err error) { results <- sendResult{r.Duplicate, err} })
	select {
	case r := <-results:
		return r.duplicate, r.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
