// Package stray takes events that stand in a lane of another partition to their own.
//
// A lane is a stream in which anybody with the right to publish can store an event, and the
// server does not know which partition a space belongs to. A client that has the number wrong
// is told that its event is stored, and it is: so it has to be handled. Whoever reads the
// lane sends it on, under the same id, and remembers how far it has come:
//
//	Forwarder.Done   the reader saves no lane position beyond an event that was not sent on yet
//	Position         a position of its own, up to which all were. The lane position may lag far
//	                 behind it, for the sake of another space; what is sent on again after the
//	                 horizon would be handled again
//
// Events of one lane are sent on one after the other, so a client that puts all of them into
// one and the same lane keeps their order, too. The reader of the lane never waits for that:
// if many wait because their own lane is full, say, or may not be written to, they are read
// again, by a reading of the lane that has no other purpose.
package stray

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

// Position names the saved position of a partition up to which everything that stood in its
// lane and belongs elsewhere was sent on.
const Position = "astray"

const (
	// room is how many events may wait in memory to be sent on.
	room = 64
	// again is how long to wait before an event is sent again that was not accepted.
	// The pauses double up to 64 times that.
	again = 200 * time.Millisecond
	// NonePending is what Done says if no event waits.
	NonePending = ^uint64(0)
)

// Lanes are where events are read and sent.
type Lanes interface {
	Partitions() int
	Send(m model.Message, done func(model.SendResult, error))
	FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error
	LoadPosition(ctx context.Context, partition int, name string) (uint64, error)
}

// Forwarder sends on what stands in the lane of one partition and belongs elsewhere.
type Forwarder struct {
	lanes     Lanes
	partition int
	log       *slog.Logger
	faults    *faultlog.Log
	queue     chan model.Message

	mu sync.Mutex
	// before is the Position that was saved, sent the last event that was sent on since.
	before, sent uint64
	pending      []uint64 // lane sequences of those in memory, in order
	// rereading says that the others are read again, behind the sequence read.
	rereading bool
	read      uint64
}

// New is the forwarder of a partition. Run must be called.
func New(lanes Lanes, partition int, log *slog.Logger) *Forwarder {
	return &Forwarder{lanes: lanes, partition: partition, log: log, faults: faultlog.New(log), queue: make(chan model.Message, room)}
}

// Saved notes a Position that was saved.
func (f *Forwarder) Saved(position uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = max(f.before, position)
}

// Take reports whether an event of the lane belongs to another partition, and takes it over then.
func (f *Forwarder) Take(m *model.Message) bool {
	if !f.strays(m) {
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

func (f *Forwarder) strays(m *model.Message) bool {
	return model.PartitionOf(m.Space, f.lanes.Partitions()) != f.partition
}

// Done is the lane sequence up to which everything that belongs elsewhere is there.
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

// Sent is the Position to save, given that the lane was read up to a sequence; 0 if nothing was
// sent on since.
func (f *Forwarder) Sent(read uint64) uint64 {
	done := min(f.Done(), read)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent <= f.before {
		return 0
	}
	return min(done, f.sent)
}

// Run sends events on until ctx ends.
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

// load learns what was sent on before, by whoever read the lane. Nobody asks as long as nothing
// goes astray.
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
		f.faults.Warn("load how far events of other partitions were sent on; trying again", "", "partition", f.partition, "error", err)
		if err := pause.For(ctx, again); err != nil {
			return err
		}
	}
}

func (f *Forwarder) saved() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before
}

// reread reads the lane for those that had no room in memory, and sends each on before it
// reads further, until ctx ends.
func (f *Forwarder) reread(ctx context.Context) {
	for ctx.Err() == nil {
		f.mu.Lock()
		after := f.read
		f.mu.Unlock()
		reading, stop := context.WithCancel(ctx)
		err := f.lanes.FollowLane(reading, f.partition, after, func(m model.Message) { f.pass(reading, stop, m) })
		stop()
		if errors.Is(err, model.ErrStopped) || pause.For(ctx, again) != nil {
			return
		}
	}
}

// pass takes in what was read again. Nothing behind one that could not be sent on counts.
func (f *Forwarder) pass(ctx context.Context, stop func(), m model.Message) {
	strays := f.strays(&m)
	if ctx.Err() != nil || strays && m.Seq > f.saved() && f.forward(ctx, m) != nil {
		stop()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = max(f.read, m.Seq)
	if strays {
		f.sent = max(f.sent, m.Seq)
	}
}

// forward sends one event on, until it is stored or can never be. The error is that of ctx,
// or of a bus that has been stopped.
func (f *Forwarder) forward(ctx context.Context, m model.Message) error {
	about := []any{"space", m.Space, "stream", m.Stream, "event", m.ID, "in", f.partition, "sequence", m.Seq, "own", model.PartitionOf(m.Space, f.lanes.Partitions())}
	log := f.log.With(about...)
	for n := 0; ; n++ {
		duplicate, err := f.send(ctx, m)
		switch {
		case err == nil && duplicate:
			log.Info("an event stands in the lane of another partition; its own has it already")
			return nil
		case err == nil:
			log.Warn("an event stands in the lane of another partition; it was sent on to its own (`settle where` tells the partition of a space)")
			return nil
		case ctx.Err() != nil || errors.Is(err, model.ErrStopped):
			return err
		case errors.Is(err, model.ErrTooLarge):
			log.Error("an event stands in the lane of another partition, and is too large for its own: it is passed over", "error", err)
			return nil
		}
		f.faults.Warn("an event stands in the lane of another partition; sending it on to its own, again", "", append(about, "error", err)...)
		if err := pause.For(ctx, again<<min(n, 6)); err != nil {
			return err
		}
	}
}

// answer is what a lane says of an event.
type answer struct {
	duplicate bool
	err       error
}

func (f *Forwarder) send(ctx context.Context, m model.Message) (duplicate bool, err error) {
	m.Seq, m.Stored = 0, time.Time{}
	answered := make(chan answer, 1)
	f.lanes.Send(m, func(r model.SendResult, err error) { answered <- answer{r.Duplicate, err} })
	select {
	case a := <-answered:
		return a.duplicate, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
