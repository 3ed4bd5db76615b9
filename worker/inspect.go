package worker

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/worker/host"
)

// Why a space cannot be inspected, see host.Worker.Look.
var (
	ErrAsleep  = host.ErrAsleep
	ErrLoading = host.ErrLoading
)

// RunningError reports that a space did not answer because it is inside of application code.
type RunningError = host.RunningError

// InspectOptions are what Inspect does besides taking a snapshot.
type InspectOptions struct {
	// Load loads a space that is not in memory, as a read does.
	Load bool
	// Record makes the space record its runs and what triggers them, for recordFor from now on.
	Record bool
	// Check makes the space repeat one in checkSample runs of its computations for as long, and log those that have
	// another result then.
	Check bool
	// Document names a document whose value is returned, "" for none.
	Document string
}

// Inspected is a space as the worker that serves it has it in memory.
type Inspected struct {
	*inspect.Snapshot
	// Value is that of InspectOptions.Document as this worker sees it, speculative writes included.
	Value model.Value
	// Recorded is how long runs and triggers have been recorded.
	Recorded time.Duration
	now      time.Duration
	wall     time.Time
}

// Time converts a time of the core's clock.
func (i *Inspected) Time(at time.Duration) time.Time { return i.wall.Add(at - i.now) }

// recordFor is how long a space records its runs after the last question about them.
const recordFor = 2 * time.Minute

// checkSample is the number of runs of computations of which one is repeated while a space is checked.
const checkSample = 10

// recording is whether a space records its runs.
type recording struct{ since, until time.Duration }

// extend starts the recording of runs, or prolongs it.
func (c *core) extend(now time.Duration) {
	if c.recording.until == 0 {
		c.recording.since = now
		c.Recorder().RecordRuns(true)
		c.Recorder().RecordTriggers(true)
	}
	c.recording.until = now + recordFor
}

// expire ends the recording of runs after its time.
func (c *core) expire(now time.Duration) {
	if c.recording.until == 0 || now < c.recording.until {
		return
	}
	c.recording = recording{}
	c.CheckSample(0)
	c.Recorder().RecordRuns(false)
	c.Recorder().RecordTriggers(false)
}

// Inspect returns what a space that this worker serves has in memory. The space is not stopped: its loop takes a snapshot between two passes,
// which costs a comparison per node. The errors are those of host.Worker.Look.
func (w *Worker) Inspect(ctx context.Context, space string, o InspectOptions) (*Inspected, error) {
	var out *Inspected
	err := w.Look(ctx, space, o.Load, func(of host.Core) { out = of.(*core).inspect(o) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *core) inspect(o InspectOptions) *Inspected {
	now := c.of.Now()
	out := &Inspected{Snapshot: c.Inspect(), now: now, wall: c.engine.cfg.wall()}
	if o.Document != "" {
		out.Value = c.Value(o.Document)
	}
	if o.Record {
		c.extend(now)
		if o.Check {
			c.CheckSample(checkSample)
			clear(c.differing)
		}
		out.Recorded = now - c.recording.since
	}
	return out
}

// wall returns the wall time.
func (c *Config) wall() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}
