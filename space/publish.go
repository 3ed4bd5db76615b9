package space

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// publisher writes the state of the space into tables on demand (docs/adr/0040). It records nothing as the
// space works: it compares the hot records with the tables when a snapshot is requested.
type publisher struct {
	handling *handling
	recorder *inspect.Recorder
	rounds   *rounds
	// tables is nil unless a snapshot was taken within the last keptFor calls of Settle; unread counts the
	// calls since.
	tables *inspect.Tables
	unread int
	// row is scratch.
	row inspect.Node
}

// keptFor is the number of calls of Settle for which the tables are kept after a snapshot was taken. They are
// as large as the hot records, and building them costs several times more than updating them.
const keptFor = 1024

// settled notifies readers, and drops tables that are no longer read.
func (p *publisher) settled() {
	if p.tables == nil {
		return
	}
	p.tables.Changed()
	if p.unread++; p.unread > keptFor {
		p.tables = nil
	}
}

// snapshot brings the tables up to date.
func (p *publisher) snapshot() *inspect.Snapshot {
	if p.tables == nil {
		p.tables = inspect.NewTables()
	}
	p.unread = 0
	w := p.tables.Update()
	for handle, n := range p.handling.graph.nodes {
		if n == nil {
			w.Put(handle, nil)
			continue
		}
		p.describe(n)
		w.Put(handle, &p.row)
	}
	w.Finish(p.state(), p.lane(), p.tasks(), p.recorder.History())
	return p.tables.Snapshot()
}

// describe fills in the row of a node.
func (p *publisher) describe(n *node) {
	out := &p.row
	reads, writes := out.Reads[:0], out.Writes[:0]
	for _, d := range n.deps {
		if d.indexed {
			reads = append(reads, inspect.Read{Space: d.doc.key.space, Doc: d.doc.key.doc, Path: d.path, Shallow: d.shallow, Declared: d.declared})
		}
	}
	n.eachSurface(true, func(s *surface) {
		writes = append(writes, inspect.Write{Doc: s.doc.key.doc, Path: s.path, Envelope: s.isEnvelope()})
	})
	*out = inspect.Node{
		ID: n.id(), Kind: n.kind.String(), Output: n.spec.Output, Ordinal: n.ordinal, Height: n.height,
		Reads: reads, Writes: writes, Status: n.status.String(), Live: n.live, Root: rootOf(n),
		Stats: inspect.NodeStats{Runs: n.runs},
	}
	if n.status != Clean {
		out.Causes = causeNames(n)
	}
	if n.more != nil {
		if parent := n.more.parent; parent != nil {
			out.Parent = parent.id()
		}
		st, times := &out.Stats, &n.more.gate.auto.runTimes
		st.Errors, st.LastErr = n.more.errors, n.more.lastErr
		st.Measured, st.Total = times.runCount, times.totalTime
		st.Average, st.Last = times.averageTime(), times.lastRunTime
	}
	p.runState(n, out)
}

func causeNames(n *node) []string {
	c := n.causes()
	return c.names()
}

// runState fills in the reason why a node does not run now, except for reasons that stop the whole space.
func (p *publisher) runState(n *node, out *inspect.Node) {
	h := p.handling
	switch {
	case n.running:
		out.RunState = inspect.Running
	case n.status == Clean:
		out.RunState = inspect.UpToDate
	case !n.live:
		out.RunState = inspect.Dormant
	case n.waiting:
		out.RunState, out.Waits = inspect.Waiting, n.absentee()
	case n.eligibleAt() > h.graph.now:
		out.RunState, out.Until, out.Gate = inspect.Gated, n.eligibleAt(), n.gateName()
	case int(n.passRuns) >= h.cfg.RunBudget:
		out.RunState = inspect.Spent
	default:
		out.RunState = inspect.Runnable
	}
}

// rootOf returns the reason why a node is live regardless of readers, "" if there is none.
func rootOf(n *node) string {
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
	return inspect.NeededByEvent
}

// absentee returns the absent document of another space that the last run of n read.
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

// state describes the space as a whole.
func (p *publisher) state() *inspect.State {
	h := p.handling
	return &inspect.State{
		Space: h.cfg.Space, Program: h.program.Name, Version: h.program.Version, Handlers: slices.Sorted(maps.Keys(h.program.handlers)),
		Seq: h.ledger.Replica().Seq, Passes: h.budgets.passes, At: h.graph.now, Wall: h.ledger.Wall(), Halt: halted(h.ledger), Rounds: p.rounds.list(),
	}
}

// halted returns the reason why the space runs nothing, "" if it runs.
func halted(l *ledger.Ledger) string {
	switch {
	case l.Closed():
		return "it is closed"
	case l.Phase() == ledger.Deposed:
		return "another runtime has taken it over"
	case !l.Entered():
		return "this runtime does not own it"
	case !l.Running():
		return "a commit was refused, and the commits of other runtimes must be integrated first"
	case !l.Begins():
		return "it is finishing"
	case l.Overflowed():
		return "the open commit is full, and the one before is under way"
	}
	return ""
}

// lane returns the events that wait.
func (p *publisher) lane() *inspect.Lane {
	l := p.handling.ledger
	return &inspect.Lane{Contents: l.Lane().Contents(), Head: p.head(), Scheduled: l.Later()}
}

// head describes the event at the head of the lane; nil if there is none.
func (p *publisher) head() *inspect.Head {
	h := p.handling
	info, ok := h.ledger.HeadInfo()
	if !ok {
		return nil
	}
	out := &inspect.Head{
		Stream: info.Event.Stream, Event: info.Event.ID, Attempts: info.Attempts, Reason: info.Reason,
		Most: h.cfg.EventRetries, Lost: info.Lost, MostLost: h.cfg.LostAttempts,
	}
	if info.Endless {
		out.Most = 0
	}
	if !info.Known {
		return out
	}
	if at := h.ledger.NotBefore(); at > h.graph.now {
		out.Until = at
	}
	for _, d := range h.needs.docs {
		if !d.loaded {
			out.Docs = append(out.Docs, d.key.String())
		}
	}
	out.Fails = h.needs.failsAt()
	for _, n := range h.needs.nodes {
		out.Needs = append(out.Needs, n.id())
	}
	return out
}

// tasks returns the documents that hold the tasks of the program's actions and inputs.
func (p *publisher) tasks() []inspect.Tasks {
	var out []inspect.Tasks
	apart := map[string]int{}
	for _, d := range p.handling.graph.tasks { // any order: counts
		action, _ := d.value.Get("action").AsString()
		apart[action]++
	}
	for _, name := range slices.Sorted(maps.Keys(p.handling.tasks.byName)) {
		l := p.handling.tasks.byName[name]
		t := inspect.Tasks{Action: name, Input: l.input}
		for _, doc := range l.docs() {
			var held model.Value
			if d := p.handling.graph.local(doc); d != nil {
				held = d.value.Get(inTasks)
			}
			t.Docs = append(t.Docs, inspect.TaskDoc{Doc: doc, Tasks: held})
		}
		t.Apart = apart[name]
		out = append(out, t)
	}
	return out
}
