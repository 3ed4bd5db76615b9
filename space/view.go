package space

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space/inspect"
)

// View returns the space for package inspect to read. It belongs to the owner of the space, as all its methods
// do.
func (s *Space) View() inspect.View {
	return view{graph: s.graph, ledger: s.ledger, needs: &s.handling.needs, cfg: &s.cfg}
}

// Recorder returns the recorder of the space's work, which records only what is enabled.
func (s *Space) Recorder() *inspect.Recorder { return s.recorder }

// view implements inspect.View.
type view struct {
	graph  *graph
	ledger *ledger.Ledger
	needs  *needs
	cfg    *Config
}

// Node implements inspect.View.
func (v view) Node(id string) (inspect.Node, bool) {
	n := v.graph.byID[id]
	if n == nil {
		return inspect.Node{}, false
	}
	out := inspect.Node{
		ID: id, Kind: n.kind.String(), Status: n.status.String(), Live: n.live, Causes: causeNames(n),
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

// stand fills in the reason why a node does not run now.
func (v view) stand(n *node, out *inspect.Node) {
	switch {
	case n.running:
		out.Standing = inspect.Running
	case n.status == Clean:
		out.Standing = inspect.UpToDate
	case !n.live:
		out.Standing = inspect.Dormant
	case n.waiting:
		out.Standing, out.Waits = inspect.Waiting, n.absentee()
	case n.eligibleAt() > v.graph.now:
		out.Standing, out.Until, out.Gate = inspect.Gated, n.eligibleAt(), n.gateName()
	case int(n.passRuns) >= v.cfg.RunBudget:
		out.Standing = inspect.Spent
	case out.Halt != "":
		out.Standing = inspect.Halted
	default:
		out.Standing = inspect.Runnable
	}
}

// root returns the reason why a node is live by itself, "" if it is not.
func (v view) root(n *node) string {
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

// Readers implements inspect.View.
func (v view) Readers(id string) (edges []inspect.Edge) {
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

// Writers implements inspect.View.
func (v view) Writers(id string) (edges []inspect.Edge) {
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

// Head implements inspect.View.
func (v view) Head() (inspect.Head, bool) {
	h, ok := v.ledger.HeadInfo()
	if !ok {
		return inspect.Head{}, false
	}
	p := inspect.Head{
		Stream: h.Event.Stream, Event: h.Event.ID, Attempts: h.Attempts,
		Most: v.cfg.EventRetries, Lost: h.Lost, MostLost: v.cfg.LostAttempts,
	}
	if !h.Known {
		return p, true
	}
	if at := v.ledger.NotBefore(); at > v.graph.now {
		p.Until = at
	}
	for _, d := range v.needs.docs {
		if !d.loaded {
			p.Docs = append(p.Docs, d.key.String())
		}
	}
	p.Fails = v.needs.failsAt()
	for _, n := range v.needs.nodes {
		p.Needs = append(p.Needs, n.id())
	}
	return p, true
}

// halted returns the reason why the space runs nothing, "" if it does.
func halted(l *ledger.Ledger) string {
	switch {
	case l.Closed():
		return "it is closed"
	case l.Phase() == ledger.Deposed:
		return "another runtime has taken it over"
	case !l.Entered():
		return "this runtime does not own it"
	case !l.Running():
		return "a commit was refused, and others' are to be taken in first"
	case !l.Begins():
		return "it is finishing"
	case l.Crowded():
		return "the open commit is full, and the one before is under way"
	}
	return ""
}

// absentee returns the absent document of another space that a run of n has met.
func (n *node) absentee() string {
	for _, d := range n.deps {
		if !d.doc.loaded {
			return d.doc.key.String()
		}
	}
	return ""
}

// gateName returns the name of the gate that opens last.
func (n *node) gateName() string {
	gt := &n.more.gate
	switch n.eligibleAt() {
	case gt.backoffUntil:
		return "backoff"
	case gt.echoUntil:
		return "echo"
	case gt.ranAt + gt.throttle:
		return "throttle"
	}
	return "debounce"
}
