package worker

import "sync"

// RunCounts counts the runs of nodes, per space and node, which shows which nodes did not run. It keeps
// separate counts for loaded spaces and for those evicted most recently; the runs of other spaces are summed
// under the zero RunKey.
type RunCounts struct {
	mu     sync.Mutex
	spaces map[string]*spaceRuns
	gone   []departure
	left   uint64 // number of evictions so far
	rest   uint64
}

// spaceRuns are the counts of a space, by node. left is the number of its eviction, 0 if it has run a node
// since.
type spaceRuns struct {
	n    map[string]uint64
	left uint64
}

type departure struct {
	space string
	n     uint64
}

// runsKept is the number of evicted spaces whose counts are kept separately.
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

// leaves records that a space was evicted.
func (c *RunCounts) leaves(space string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spaces[space]
	if s == nil || s.left > 0 {
		return // the space has run no node
	}
	c.left++
	s.left = c.left
	c.gone = append(c.gone, departure{space, c.left})
	for len(c.gone) > runsKept {
		c.addUp(c.gone[0])
		c.gone = c.gone[1:]
	}
}

// addUp merges the counts of an evicted space into the sum, unless the space has been loaded again.
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
