package worker

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Usage is what runs of one node, or of one handler, have cost since a worker began to measure them. Of a space, it is the sum.
type Usage struct {
	// Space and Node name a node; Node is the stream of a handler if Handler is set, and "" for all of the space.
	Space   string `json:"space"`
	Node    string `json:"node,omitzero"`
	Handler bool   `json:"handler,omitzero"`
	// Runs counts runs and attempts, Wasted the runs of computations that changed nothing, and Errors those that ended in an error.
	Runs   uint64 `json:"runs"`
	Wasted uint64 `json:"wasted,omitzero"`
	Errors uint64 `json:"errors,omitzero"`
	// Time is how long they took, without the runs that they pulled, and Last how long the last one did. Bytes is the size of what they wrote.
	Time  time.Duration `json:"time_ns"`
	Last  time.Duration `json:"last_ns"`
	Bytes uint64        `json:"bytes"`
	// Born distinguishes this count from an earlier one of the same node: counts that are too small are given up.
	Born uint64 `json:"born"`
}

// Profile is what a worker has measured.
type Profile struct {
	// Since is when the worker began to measure, zero if it has only now. Now is its clock.
	Since time.Time `json:"since"`
	Now   time.Time `json:"now"`
	// Spaces and Nodes are those that took most time, most first.
	Spaces []Usage `json:"spaces"`
	Nodes  []Usage `json:"nodes"`
}

const (
	// profileFor is how long a worker measures after it was last asked.
	profileFor = time.Minute
	// profiled is how many spaces and how many nodes a worker keeps counts of.
	profiled = 512
)

// profile measures runs while there are questions about them. It costs an atomic load per run otherwise.
type profile struct {
	on atomic.Bool

	mu            sync.Mutex
	since         time.Time
	stop          *time.Timer
	spaces, nodes counts
}

// read returns what was measured, and keeps the measurement on.
func (p *profile) read(now time.Time, limit int) Profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Profile{Since: p.since, Now: now, Spaces: p.spaces.most(limit), Nodes: p.nodes.most(limit)}
	p.keep(now)
	return out
}

// measure keeps the measurement on, and returns what was measured of a node.
func (p *profile) measure(now time.Time, of Usage) (u Usage, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(now)
	if at := p.nodes.by[keyOf(&of)]; at != nil {
		return at.Usage, true
	}
	return u, false
}

// keep keeps the measurement on. p.mu is held.
func (p *profile) keep(now time.Time) {
	if p.on.Load() {
		p.stop.Reset(profileFor)
		return
	}
	p.since, p.spaces, p.nodes = now, counts{}, counts{}
	p.stop = time.AfterFunc(profileFor, p.end)
	p.on.Store(true)
}

func (p *profile) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on.Store(false)
	p.since, p.spaces, p.nodes = time.Time{}, counts{}, counts{}
}

// add adds the runs of a pass.
func (p *profile) add(all []Usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on.Load() {
		return
	}
	for i := range all {
		u := all[i]
		p.nodes.add(&u)
		u.Node, u.Handler = "", false
		p.spaces.add(&u)
	}
}

// usageKey identifies a count.
type usageKey struct {
	space, node string
	handler     bool
}

func keyOf(u *Usage) usageKey { return usageKey{u.Space, u.Node, u.Handler} }

// count is one Usage. weight is its time and, at most, that of the counts that were given up for it.
type count struct {
	Usage
	weight time.Duration
	place  int // in the heap
}

// counts keeps the usages with most time by the space-saving algorithm: when there is no room, a new count replaces the one with the smallest
// weight, and inherits that weight. So a node that takes more than a 512th of all time is always among them.
type counts struct {
	by   map[usageKey]*count
	heap countHeap
	born uint64
}

func (c *counts) add(u *Usage) {
	if at := c.by[keyOf(u)]; at != nil {
		at.Runs, at.Wasted, at.Errors, at.Bytes = at.Runs+u.Runs, at.Wasted+u.Wasted, at.Errors+u.Errors, at.Bytes+u.Bytes
		at.Time, at.Last, at.weight = at.Time+u.Time, u.Last, at.weight+u.Time
		heap.Fix(&c.heap, at.place)
		return
	}
	if c.by == nil {
		c.by = map[usageKey]*count{}
	}
	c.born++
	n := &count{Usage: *u, weight: u.Time}
	n.Born = c.born
	c.by[keyOf(u)] = n
	if len(c.heap) < profiled {
		heap.Push(&c.heap, n)
		return
	}
	least := c.heap[0]
	delete(c.by, keyOf(&least.Usage))
	n.weight += least.weight
	c.heap[0] = n
	heap.Fix(&c.heap, 0)
}

// most returns the counts with most time.
func (c *counts) most(limit int) []Usage {
	all := make([]Usage, len(c.heap))
	for i, n := range c.heap {
		all[i] = n.Usage
	}
	slices.SortFunc(all, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Node, b.Node))
	})
	return all[:min(len(all), limit)]
}

// countHeap has the count with the smallest weight first.
type countHeap []*count

func (h countHeap) Len() int           { return len(h) }
func (h countHeap) Less(i, j int) bool { return h[i].weight < h[j].weight }

func (h countHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is for package heap.
func (h *countHeap) Push(x any) {
	n := x.(*count)
	n.place = len(*h)
	*h = append(*h, n)
}

// Pop is for package heap.
func (h *countHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// runClock measures the runs of one core while its worker measures.
type runClock struct {
	profile *profile
	space   string
	open    []openRun // the innermost last
	done    []Usage   // of this pass
	scratch []byte
}

// openRun is a run that has not ended. inner is how long the runs took that it has pulled.
type openRun struct {
	node    string
	handler bool
	began   time.Time
	inner   time.Duration
}

func (c *runClock) begin(node string, handler bool) {
	if c.profile.on.Load() {
		c.open = append(c.open, openRun{node: node, handler: handler, began: time.Now()})
	}
}

// end records the run that began last under this name, if that was measured.
func (c *runClock) end(node string, handler bool, writes []model.Write) *Usage {
	at := len(c.open) - 1
	for at >= 0 && (c.open[at].node != node || c.open[at].handler != handler) {
		at-- // a run that did not return
	}
	if at < 0 {
		return nil
	}
	run := c.open[at]
	c.open = c.open[:at]
	took := time.Since(run.began)
	if at > 0 {
		c.open[at-1].inner += took
	}
	own := max(took-run.inner, 0)
	u := Usage{Space: c.space, Node: node, Handler: handler, Runs: 1, Time: own, Last: own}
	for i := range writes {
		c.scratch = writes[i].Value.AppendJSON(c.scratch[:0])
		u.Bytes += uint64(len(c.scratch))
	}
	c.done = append(c.done, u)
	return &c.done[len(c.done)-1]
}

// ran records the end of a run of a node.
func (c *runClock) ran(i *space.RunInfo) {
	if len(c.open) == 0 {
		return
	}
	u := c.end(i.Node, false, i.Writes)
	if u == nil {
		return
	}
	if i.Err != nil {
		u.Errors = 1
	} else if i.Kind == space.Computation && !i.Changed && len(i.Writes) == 0 && i.Waits == "" && !i.NoRoom && !i.TooDeep {
		u.Wasted = 1
	}
}

// previewed records the end of a call of a node's function for a handler that reads what follows from its own writes. It is the node that takes the time.
func (c *runClock) previewed(node string) {
	if len(c.open) > 0 {
		c.end(node, false, nil)
	}
}

// handled records the end of an attempt at an event.
func (c *runClock) handled(i *space.HandleInfo) {
	if len(c.open) == 0 {
		return
	}
	u := c.end(i.Event.Stream, true, i.Writes)
	if u != nil && (i.Err != nil || i.Receipt != nil && i.Receipt.Outcome != model.Handled && i.Receipt.Outcome != model.Rejected) {
		u.Errors = 1
	}
}

// flush adds what was measured in a pass to the profile.
func (c *runClock) flush() {
	if len(c.done) > 0 {
		c.profile.add(c.done)
		c.done = c.done[:0]
	}
	if len(c.open) > 0 {
		c.open = c.open[:0]
	}
}

// Profile returns which spaces and nodes take most time on this worker, at most limit of each. A worker measures runs only for a minute after
// each call, so that the first one returns nothing yet.
func (w *Worker) Profile(limit int) Profile { return w.profile.read(time.Now(), limit) }

// Cost returns what was measured of a node or, with handler, of the handler of a stream; false if nothing was. It keeps the measurement on.
func (w *Worker) Cost(space, node string, handler bool) (Usage, bool) {
	return w.profile.measure(time.Now(), Usage{Space: space, Node: node, Handler: handler})
}
