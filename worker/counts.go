package worker

import (
	"maps"
	"sync"

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
	w.runs.mu.Lock()
	defer w.runs.mu.Unlock()
	return maps.Clone(w.runs.n)
}

// trace is what the host wants to be told by the core.
func (h *host) trace() space.Trace {
	t := space.Trace{RunEnd: func(i space.RunInfo) {
		if i.Kind == space.Computation {
			h.p.w.runs.add(RunKey{h.space, i.Node})
		}
		if i.Err != nil {
			h.p.w.cfg.Logger.Warn("run node", "space", h.space, "node", i.Node, "error", i.Err)
		}
	}}
	if h.spans.tracer != nil {
		t.HandleStart, t.HandleEnd, t.PassEnd = h.spans.handleStart, h.spans.handleEnd, h.spans.passEnd
	}
	return t
}
