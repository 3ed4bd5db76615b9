package space

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space/inspect"
)

// A plain walk over the hot records, as the oracle for the tables.

// NodeState is the structure and the hot state of a node.
type NodeState struct {
	ID     string
	Kind   NodeKind
	Status Status
	Live   bool
	Runs   uint64
	Output string
	Reads  []string
	Causes []string
	Parent string
	// Until is the time before which a due node may not run.
	Until time.Duration
}

// Nodes returns the nodes with their state in order of registration. Unlike a snapshot, it is only for the
// owner of the space.
func (s *Space) Nodes() []NodeState {
	var out []NodeState
	for _, n := range s.graph.nodes {
		if n == nil {
			continue
		}
		st := NodeState{
			ID: n.id(), Kind: n.kind, Status: n.status, Live: n.live, Runs: n.runs,
			Output: n.spec.Output, Reads: n.readNames(), Causes: causeNames(n),
		}
		if p := n.parent(); p != nil {
			st.Parent = p.id()
		}
		if n.status != Clean {
			st.Until = max(0, n.eligibleAt())
		}
		out = append(out, st)
	}
	return out
}

func sortedKeys[K ~string | ~uint32, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// plainWalk reads the hot records of a space.
type plainWalk struct {
	graph  *graph
	ledger *ledger.Ledger
	cfg    *Config
}

func walkOf(s *Space) plainWalk { return plainWalk{graph: s.graph, ledger: s.ledger, cfg: &s.cfg} }

func (v plainWalk) Node(id string) (inspect.Node, bool) {
	n := v.graph.byID[id]
	if n == nil {
		return inspect.Node{}, false
	}
	out := inspect.Node{
		ID: id, Kind: n.kind.String(), Output: n.spec.Output, Ordinal: n.ordinal, Height: n.height, Status: n.status.String(), Live: n.live, Causes: causeNames(n),
		Stats: inspect.NodeStats{Runs: n.runs}, Root: v.root(n), Halt: halted(v.ledger),
	}
	if p := n.parent(); p != nil {
		out.Parent = p.id()
	}
	if n.more != nil {
		sorted := slices.SortedFunc(slices.Values(n.more.children), func(a, b *node) int { return cmp.Compare(a.ordinal, b.ordinal) })
		for _, c := range sorted {
			out.Children = append(out.Children, c.id())
		}
		st, times := &out.Stats, &n.more.gate.auto.runTimes
		st.Errors, st.LastErr = n.more.errors, n.more.lastErr
		st.Measured, st.Total = times.runCount, times.totalTime
		st.Average, st.Last = times.averageTime(), times.lastRunTime
	}
	v.stand(n, &out)
	return out, true
}

// stand determines why a node does not run now.
func (v plainWalk) stand(n *node, out *inspect.Node) {
	switch {
	case n.running:
		out.RunState = inspect.Running
	case n.status == Clean:
		out.RunState = inspect.UpToDate
	case !n.live:
		out.RunState = inspect.Dormant
	case n.waiting:
		out.RunState, out.Waits = inspect.Waiting, n.absentee()
	case n.eligibleAt() > v.graph.now:
		out.RunState, out.Until, out.Gate = inspect.Gated, n.eligibleAt(), n.gateName()
	case int(n.passRuns) >= v.cfg.RunBudget:
		out.RunState = inspect.Spent
	case out.Halt != "":
		out.RunState = inspect.Halted
	default:
		out.RunState = inspect.Runnable
	}
}

// root returns why a node is live regardless of readers, "" if it is not.
func (v plainWalk) root(n *node) string {
	switch {
	case n.kind == Effect:
		return "an effect"
	case n.materializer():
		return "a materializer"
	case n.demand == 0:
		return ""
	case n.more != nil && n.more.provisional:
		return "just made, to run once"
	}
	if ev := v.ledger.Head(); ev != nil {
		return "needed by event " + ev.ID + " on " + ev.Stream
	}
	return "needed by an event"
}

func (v plainWalk) Readers(id string) (edges []inspect.Edge) {
	n := v.graph.byID[id]
	if n == nil {
		return nil
	}
	n.eachSurface(true, func(from *surface) {
		for _, d := range from.doc.readers {
			if d.node != n && from.overlaps(d) {
				edges = append(edges, edgeTo(d.node, d, from))
			}
		}
	})
	return edges
}

func (v plainWalk) Writers(id string) (edges []inspect.Edge) {
	n := v.graph.byID[id]
	if n == nil {
		return nil
	}
	for _, d := range n.deps {
		if d.indexed {
			d.eachWriter(true, func(from *surface) { edges = append(edges, edgeTo(from.node, d, from)) })
		}
	}
	return edges
}

func edgeTo(to *node, d *dep, at *surface) inspect.Edge {
	return inspect.Edge{
		Node: to.id(), Address: d.String(), Declared: d.declared, Envelope: at.isEnvelope(),
		Live: to.live, Clean: to.status == Clean, Ordinal: to.ordinal,
	}
}
