package space

import (
	"cmp"
	"slices"
	"time"
)

// Who is connected to whom, for people and tools. All of it reads only; unlike Structure
// it belongs to the owner of the space.

// Edge leads from one node to another: a place that one writes and the other reads, seen
// from either. (A link is something else, see model.Link.)
type Edge struct {
	// Node is the other one, Address the place at which they meet, as the reader reads
	// it: document, then a JSON pointer, and "#" if it is read shallowly.
	Node, Address string
	// Declared says that the reader has not run yet, and is expected to read this.
	Declared bool
}

// Edges are those on one side of a node. Those of an envelope order and never
// trigger or demand (seed 001 section 4.3), so they are listed apart.
type Edges struct{ Nodes, Envelope []Edge }

// Dependents lists who reads what a node writes, in order of registration. ok says
// whether there is such a node.
func (s *Space) Dependents(id string) (edges Edges, ok bool) {
	n := s.graph.byID[id]
	if n == nil {
		return edges, false
	}
	var found []numbered
	n.eachSurface(true, func(from *surface) {
		for _, d := range from.doc.readers {
			if d.node != n && from.overlaps(d) {
				found = append(found, edgeTo(d.node, d, from.isEnvelope()))
			}
		}
	})
	return collect(found), true
}

// Writers lists who writes what a node reads, likewise.
func (s *Space) Writers(id string) (edges Edges, ok bool) {
	n := s.graph.byID[id]
	if n == nil {
		return edges, false
	}
	var found []numbered
	for _, d := range n.deps {
		if d.indexed {
			d.eachWriter(true, func(from *surface) {
				found = append(found, edgeTo(from.node, d, from.isEnvelope()))
			})
		}
	}
	return collect(found), true
}

// numbered is an edge with what it is sorted by.
type numbered struct {
	Edge
	ordinal  uint32
	envelope bool
}

func edgeTo(to *node, d *dep, envelope bool) numbered {
	return numbered{Edge{to.id(), d.String(), d.declared}, to.ordinal, envelope}
}

func collect(found []numbered) (edges Edges) {
	slices.SortFunc(found, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.Address, b.Address))
	})
	for _, f := range slices.Compact(found) {
		if f.envelope {
			edges.Envelope = append(edges.Envelope, f.Edge)
		} else {
			edges.Nodes = append(edges.Nodes, f.Edge)
		}
	}
	return edges
}

// Parent names the node that made this one, "" if none did. ok says whether there is such
// a node.
func (s *Space) Parent(id string) (parent string, ok bool) {
	n := s.graph.byID[id]
	if n == nil {
		return "", false
	}
	if p := n.parent(); p != nil {
		parent = p.id()
	}
	return parent, true
}

// Children lists the nodes that a node has made, in order of registration.
func (s *Space) Children(id string) (children []string, ok bool) {
	n := s.graph.byID[id]
	if n == nil || n.more == nil {
		return nil, n != nil
	}
	sorted := slices.SortedFunc(slices.Values(n.more.children), func(a, b *node) int { return cmp.Compare(a.ordinal, b.ordinal) })
	for _, c := range sorted {
		children = append(children, c.id())
	}
	return children, true
}

// NodeStats are the statistics of one node.
type NodeStats struct {
	// Runs is how often it has run, Errors how many of these runs ended in an error, and
	// LastErr what the last one ended in, nil if it succeeded.
	Runs, Errors uint64
	LastErr      error
	// Measured is how many runs the host has told the duration of (see Measured); the
	// rest is about those.
	Measured             uint64
	Total, Average, Last time.Duration
}

// NodeStats returns the statistics of a node; false if there is no such node.
func (s *Space) NodeStats(id string) (NodeStats, bool) {
	n := s.graph.byID[id]
	if n == nil {
		return NodeStats{}, false
	}
	st := NodeStats{Runs: n.runs}
	if n.more != nil {
		times := &n.more.gate.auto.runTimes
		st.Errors, st.LastErr = n.more.errors, n.more.lastErr
		st.Measured, st.Total = times.runCount, times.totalTime
		st.Average, st.Last = times.averageTime(), times.lastRunTime
	}
	return st, true
}

// FilterStats says what value-gating is worth: of the readers that were compared with a
// change, how many it did not concern.
type FilterStats struct {
	Executed uint64 // runs
	Matched  uint64 // readers that were compared with a change
	Filtered uint64 // those of them that did not have to run because of it
}

// FilterStats returns those of Stats in one place.
func (s *Space) FilterStats() FilterStats {
	return FilterStats{Executed: s.stats.Runs, Matched: s.stats.Matched, Filtered: s.stats.Filtered}
}

// NodeCounts says what a space consists of.
type NodeCounts struct {
	Computations, Effects int
	Materializers         int // of the computations, those with an envelope
	Live                  int
	Due                   int // live, and to run as soon as nothing holds them
}

// NodeCounts counts the nodes.
func (s *Space) NodeCounts() NodeCounts {
	c := NodeCounts{Due: s.graph.dueCount}
	for _, n := range s.graph.nodes {
		if n == nil {
			continue
		}
		if n.kind == Effect {
			c.Effects++
		} else {
			c.Computations++
		}
		if n.materializer() {
			c.Materializers++
		}
		if n.live {
			c.Live++
		}
	}
	return c
}
