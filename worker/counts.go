package worker

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// RunCounts counts the runs of nodes, per space and node: it shows which nodes did
// not run. It keeps single counts of loaded spaces and of those that left memory most recently; the
// runs of other spaces are summed under the zero RunKey.
type RunCounts struct {
	mu     sync.Mutex
	spaces map[string]*spaceRuns
	gone   []departure
	left   uint64 // number of departures so far
	rest   uint64
}

// spaceRuns are the counts of a space, by node. left is the number of its departure
// from memory, 0 if it has run a node since.
type spaceRuns struct {
	n    map[string]uint64
	left uint64
}

type departure struct {
	space string
	n     uint64
}

// runsKept is the number of spaces that have left memory and whose counts are kept apart.
const runsKept = 1024

// RunKey names a node of a space.
type RunKey struct{ Space, Node string }

func newRunCounts() *RunCounts { return &RunCounts{spaces: map[string]*spaceRuns{}} }

func (c *RunCounts) add(k RunKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spaces[k.Space]
	if s == nil {
		s = &spaceRuns{n: map[string]uint64{}}
		c.spaces[k.Space] = s
	}
	s.left = 0
	s.n[k.Node]++
}

// leaves records that a space has left memory.
func (c *RunCounts) leaves(space string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spaces[space]
	if s == nil || s.left > 0 {
		return // it has run nothing
	}
	c.left++
	s.left = c.left
	c.gone = append(c.gone, departure{space, c.left})
	for len(c.gone) > runsKept {
		c.addUp(c.gone[0])
		c.gone = c.gone[1:]
	}
}

// addUp drops the single counts of a space, unless the space is back in memory.
func (c *RunCounts) addUp(d departure) {
	s := c.spaces[d.space]
	if s == nil || s.left != d.n {
		return
	}
	for _, n := range s.n { // any order: a sum
		c.rest += n
	}
	delete(c.spaces, d.space)
}

// Runs returns the number of runs of every computation on this worker,
// whether or not the run was committed. The runs of
// spaces that left memory long ago are under the zero RunKey.
func (w *Worker) Runs() map[RunKey]uint64 {
	return w.runs.all()
}

func (c *RunCounts) all() map[RunKey]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[RunKey]uint64{}
	for space, s := range c.spaces { // any order: into a map
		for node, n := range s.n { // any order: into a map
			all[RunKey{space, node}] = n
		}
	}
	if c.rest > 0 {
		all[RunKey{}] = c.rest
	}
	return all
}

// Counts counts what a worker has written to the log.
type Counts struct {
	// Commits that were accepted, takeovers included.
	Commits uint64
	// Receipts in them, and those of them whose outcome is not "handled".
	Receipts, Failed uint64
	// Refused appends: another runtime had appended first.
	Refused uint64
}

type counters struct {
	commits, receipts, failed, refused atomic.Uint64
	abandoned                          runlimit.Abandoned
	backlog                            atomic.Int64 // bytes of the events that wait for their spaces
	missed                             missedLog
}

// Counts returns the counters.
func (w *Worker) Counts() Counts {
	return w.counters.read()
}

func (c *counters) read() Counts {
	return Counts{Commits: c.commits.Load(), Receipts: c.receipts.Load(), Failed: c.failed.Load(), Refused: c.refused.Load()}
}

func (c *counters) committed(commit *model.Commit) {
	c.commits.Add(1)
	for i := range commit.Txs {
		if r := commit.Txs[i].Receipt; r != nil {
			c.receipts.Add(1)
			if r.Outcome != model.Handled {
				c.failed.Add(1)
			}
		}
	}
}

// trace returns the callbacks that the core calls for the host.
func (h *host) trace() space.Trace {
	t := space.Trace{RunEnd: func(i space.RunInfo) {
		if i.Kind == space.Computation {
			h.env.runs.add(RunKey{h.space, i.Node})
		}
		h.watch.stop(i.Node, i.Kind)
	}}
	t.RunBegan = func(node string, kind space.NodeKind) {
		h.code.runs(node, h.env.cfg.RunLimit)
		h.watch.start(kind)
	}
	t.HandleStart, t.HandleEnd, t.Program = h.begins, h.ended, h.changed
	if h.spans.tracer != nil {
		t.PassEnd = h.spans.passEnd
	}
	return t
}

// begins records that a handler begins.
func (h *host) begins(ev *model.Event) model.Trace {
	h.code.base.Store(h.core.Seq())
	h.code.handles(ev.Stream, ev.ID, h.core.AttemptRecorded(ev.Stream, ev.ID), cmp.Or(h.core.Program().HandlerLimit(ev.Stream), h.env.cfg.RunLimit))
	if h.spans.tracer == nil {
		return ev.Trace
	}
	return h.spans.handleStart(ev)
}

// longChain is the depth at which a chain of events that send each other is logged: a tenth of
// the default limit.
const longChain = lineage.DefaultMaxChain / 10

// ended logs failed and refused events, and chains that seem to have no
// end. It does not log payloads.
func (h *host) ended(i space.HandleInfo) {
	if h.spans.tracer != nil {
		h.spans.handleEnd(i)
	}
	if i.Receipt != nil && i.Receipt.Outcome != model.Handled {
		h.env.cfg.Logger.Warn("event "+string(i.Receipt.Outcome), "space", h.space, "stream", i.Event.Stream,
			"event", i.Event.ID, "error", i.Receipt.Error)
	}
	if i.Event.Depth == longChain && slices.ContainsFunc(i.Sends, func(s model.Send) bool { return s.Depth > longChain }) {
		h.env.cfg.Logger.Warn(fmt.Sprintf("a chain of events that send each other, with no time between, has come to %d; it ends at MaxChain", longChain),
			"space", h.space, "stream", i.Event.Stream, "event", i.Event.ID)
	}
	if i.Stack != nil {
		h.env.cfg.Logger.Error("handler panicked", "space", h.space, "stream", i.Event.Stream, "event", i.Event.ID,
			"stack", string(i.Stack))
	}
}
