package worker

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// RunCounts counts the runs of nodes, per space and node: the proof of what did
// not run.
type RunCounts struct {
	mu sync.Mutex
	n  map[RunKey]uint64
}

// RunKey names a node of a space.
type RunKey struct{ Space, Node string }

func newRunCounts() *RunCounts { return &RunCounts{n: map[RunKey]uint64{}} }

func (c *RunCounts) add(k RunKey) {
	c.mu.Lock()
	c.n[k]++
	c.mu.Unlock()
}

// Runs returns the number of runs of every computation that has run on this
// worker, counted whether or not the run came to be committed.
func (w *Worker) Runs() map[RunKey]uint64 {
	return w.runs.all()
}

func (c *RunCounts) all() map[RunKey]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// Counts are what a worker has got into the log.
type Counts struct {
	// Commits that were accepted, takeovers included.
	Commits uint64
	// Receipts in them: events that this worker has handled exactly once.
	Receipts uint64
	// Refused appends: somebody else had appended first.
	Refused uint64
}

type counters struct{ commits, receipts, refused atomic.Uint64 }

// Counts returns the counters.
func (w *Worker) Counts() Counts {
	return w.counters.read()
}

func (c *counters) read() Counts {
	return Counts{Commits: c.commits.Load(), Receipts: c.receipts.Load(), Refused: c.refused.Load()}
}

func (c *counters) committed(commit *model.Commit) {
	c.commits.Add(1)
	n := uint64(0)
	for i := range commit.Txs {
		if commit.Txs[i].Receipt != nil {
			n++
		}
	}
	c.receipts.Add(n)
}

// trace is what the host wants to be told by the core.
func (h *host) trace() space.Trace {
	t := space.Trace{RunEnd: func(i space.RunInfo) {
		if i.Kind == space.Computation {
			h.env.runs.add(RunKey{h.space, i.Node})
		}
		h.watch.stop(i.Node, i.Kind)
	}}
	t.RunBegan = func(_ string, kind space.NodeKind) { h.watch.start(kind) }
	t.HandleEnd = h.ended
	if h.spans.tracer != nil {
		t.HandleStart, t.PassEnd = h.spans.handleStart, h.spans.passEnd
	}
	return t
}

// ended tells an operator of events that came to nothing. Their payload stays out
// of the log.
func (h *host) ended(i space.HandleInfo) {
	if h.spans.tracer != nil {
		h.spans.handleEnd(i)
	}
	if i.Receipt != nil && i.Receipt.Outcome != model.Handled {
		h.env.cfg.Logger.Warn("event "+string(i.Receipt.Outcome), "space", h.space, "stream", i.Event.Stream,
			"event", i.Event.ID, "error", i.Receipt.Error)
	}
	if i.Stack != nil {
		h.env.cfg.Logger.Error("handler panicked", "space", h.space, "stream", i.Event.Stream, "event", i.Event.ID,
			"stack", string(i.Stack))
	}
}
