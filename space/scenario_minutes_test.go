package space

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// minutes is the output of a command: one line per occurrence, grouped by runtime.
type minutes struct {
	out     strings.Builder
	speaker *actor
	// line is a change whose readers are still being notified.
	line      string
	lineDepth int
	lineOf    *actor
	told      []string // the readers listed on it
	total     int
	wasIdle   map[*actor]int
}

// take returns what was written since the last call.
func (m *minutes) take() string {
	s := m.out.String()
	m.out.Reset()
	m.speaker = nil
	return s
}

// len returns the amount of output so far.
func (m *minutes) len() int { return m.total }

// tellBus records what happens outside the runtimes.
func (m *minutes) tellBus(format string, args ...any) {
	m.flush()
	m.speaker = nil
	m.write(0, fmt.Sprintf(format, args...))
}

func (m *minutes) tell(a *actor, depth int, format string, args ...any) {
	m.flush()
	if m.speaker != a {
		m.speaker = a
		m.out.WriteString("> " + a.name + "\n")
	}
	m.write(depth, fmt.Sprintf(format, args...))
}

// tellIdle reports once that nothing is left to do.
func (m *minutes) tellIdle(a *actor) {
	if m.wasIdle == nil {
		m.wasIdle = map[*actor]int{}
	}
	if m.wasIdle[a] == m.total || m.speaker != a {
		return
	}
	m.tell(a, 1, "idle")
	m.wasIdle[a] = m.total
}

func (m *minutes) write(depth int, line string) {
	m.total++
	m.out.WriteString(strings.Repeat("  ", depth) + line + "\n")
}

// begin withholds a line until flush, so that more can be added.
func (m *minutes) begin(a *actor, depth int, line string) {
	m.flush()
	m.lineOf, m.lineDepth, m.line = a, depth, line
}

func (m *minutes) flush() {
	if line := m.line; line != "" {
		m.line = ""
		m.tell(m.lineOf, m.lineDepth, "%s", line)
	}
}

// hooks returns the trace hooks that write the minutes.
func (a *actor) hooks() Trace {
	return Trace{
		HandleStart: a.handleStart, HandleEnd: a.handleEnd,
		Later: func(i LaterInfo) {
			a.pass()
			a.tell(a, 2, "%s on %s waits until %s: tx %d", i.Event, i.Stream, onClock(i.NotBefore), i.Tx)
		},
		RunStart: a.runStart, RunEnd: a.runEnd,
		Changed: a.changed, Invalidated: a.invalidated,
		Iteration: a.iteration,
		Echo:      a.echo,
		Violated:  func(v Violation) { a.tell(a, 3+max(0, a.depth-1), "violation: %s", v) },
		Skipped:   func(i SkipInfo) { a.tell(a, 2, "skip %s, %s", i.Node, standing(i)) },
		Unsettled: func(nodes []string) { a.note("does not converge: %s", strings.Join(nodes, ", ")) },
		Round: func(i RoundInfo) {
			if i.Over {
				a.note("the circle %s has come to rest after %d steps", strings.Join(i.Docs, " -> "), i.Steps)
				return
			}
			a.note("the circle %s does not converge, %d steps", strings.Join(i.Docs, " -> "), i.Steps)
		},
		Program: func(i ProgramInfo) {
			a.note("program %s %s in place of %s: %d nodes kept, %d changed, %d new, %d gone", i.Name, i.Version, i.Before, i.Kept, i.Changed, i.New, i.Gone)
		},
		Gated: func(i GateInfo) { a.tell(a, 2, "gate %s until %s, exhausted %s", i.Node, i.Until, times(i.Streak)) },
	}
}

func (a *actor) echo(i EchoInfo) {
	if i.Cleared != "" {
		a.tell(a, 2, "the echo of %s and %s is over: %s", i.Node, i.Doc, i.Cleared)
		return
	}
	a.tell(a, 2, "echo: %s answers others' writes of %s, held until %s", i.Node, i.Doc, i.Until)
}

// standing returns why a node was skipped.
func standing(i SkipInfo) string {
	if i.Until > 0 {
		return fmt.Sprintf("gated until %s", i.Until)
	}
	return "its budget is used up"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// pass begins the minutes of a pass when the first thing happens in it.
func (a *actor) pass() {
	if !a.inPass {
		a.inPass, a.iterations, a.depth, a.order, a.steps = true, 0, 0, nil, nil
		a.passes++
		a.tell(a, 1, "pass %d", a.passes)
	}
}

func (a *actor) iteration(n int) {
	a.round = n
}

func (a *actor) handleStart(ev *model.Event) model.Trace {
	a.pass()
	a.tell(a, 2, "handle %s on %s", ev.ID, ev.Stream)
	a.steps = append(a.steps, ev.ID)
	return ev.Trace
}

func (a *actor) handleEnd(i HandleInfo) {
	for _, s := range i.Sends {
		a.tell(a, 3, "send %s to %s/%s%s", s.ID, s.To, s.Stream, waitsUntil(&s))
	}
	switch {
	case i.Err != nil:
		a.tell(a, 3, "error: %v; again at %s", i.Err, i.Until)
	case i.Receipt == nil && i.Waits == "":
		a.tell(a, 3, "put off, the commit is full")
	case i.Receipt == nil:
		a.tell(a, 3, "park behind %s", i.Waits)
	default:
		a.tell(a, 3, "tx %d, %s", i.Tx, ending(i.Receipt))
	}
}

// ending formats the outcome of an event.
func ending(rc *model.Receipt) string {
	switch {
	case rc.Outcome != model.Handled:
		return fmt.Sprintf("%s: %s", rc.Outcome, rc.Error)
	case !rc.Result.IsAbsent():
		return fmt.Sprintf("%s: %s", rc.Outcome, show(rc.Result))
	}
	return string(rc.Outcome)
}

func (a *actor) runStart(i RunInfo) {
	a.pass()
	if a.round != a.iterations && a.round > 1 && a.depth == 0 {
		a.tell(a, 2, "iteration %d", a.round)
	}
	a.iterations = a.round
	why := strings.Join(i.Causes, ", ")
	if why == "" {
		why = "never ran"
	}
	a.tell(a, 2+a.depth, "run %s (%s)", i.Node, why)
	a.order, a.steps = append(a.order, i.Node), append(a.steps, i.Node)
	a.reasons[i.Node] = slices.Clone(i.Causes)
	a.depth++
}

func (a *actor) runEnd(i RunInfo) {
	a.flush()
	a.depth--
	depth := 3 + a.depth
	switch {
	case i.Err != nil:
		a.tell(a, depth, "error: %v", i.Err)
	case i.Waits != "":
		a.tell(a, depth, "wait for %s", i.Waits)
	case i.NoRoom:
		a.tell(a, depth, "put off, the commit is full")
	case i.Changed && i.Tx == 0:
		a.tell(a, depth, "not for the log")
	case i.Changed:
		a.tell(a, depth, "tx %d", i.Tx)
	case i.Kind == Computation:
		a.tell(a, depth, "unchanged")
	default:
		saw := show(a.seenBy(i.Node))
		a.saw[i.Node] = saw
		a.tell(a, depth, "see %s", saw)
	}
}

// seenBy returns the result of an effect's run.
func (a *actor) seenBy(node string) model.Value {
	if doc, ok := strings.CutPrefix(node, "observe:"); ok {
		return a.core.Value(doc)
	}
	return a.script(a.cfg.Space).seen
}

func (a *actor) changed(i ChangeInfo) {
	a.told = nil
	line := fmt.Sprintf("%s %s -> %s", i.Doc, show(i.Before), show(i.After))
	if a.via != "" {
		a.begin(a, 2, "change "+line+" via "+a.via)
		return
	}
	a.begin(a, 3+max(0, a.depth-1), "write "+line)
}

func (a *actor) invalidated(i InvalidInfo) {
	node := i.Node
	if !i.Live {
		node += " (dormant)"
	}
	switch {
	case a.line == "":
		a.told = nil
		a.begin(a, 2, "invalidate "+node+" by "+i.Cause)
	case slices.Contains(a.told, i.Node):
		return // the document and its writer both change it
	case strings.Contains(a.line, ", invalidates "):
		a.line += ", " + node
	default:
		a.line += ", invalidates " + node
	}
	a.told = append(a.told, i.Node)
}

// commitName identifies a commit: runtime, epoch, attempt.
func commitName(c *model.Commit) string { return c.ID() }

// contents lists the transactions of a commit.
func contents(c *model.Commit) string {
	if c.Takeover {
		return "take over"
	}
	if c.Join {
		return "join"
	}
	var parts []string
	if t := c.Trying; t != nil && t.Back {
		parts = append(parts, fmt.Sprintf("%s came back, %d did not", t.Event, t.Tries))
	} else if t != nil {
		parts = append(parts, fmt.Sprintf("try %s, for the %s time", t.Event, []string{"", "first", "second", "third", "next"}[min(t.Tries, 4)]))
	}
	count := map[string]int{}
	for i := range c.Txs {
		part := c.Txs[i].By
		if rc := c.Txs[i].Receipt; rc != nil {
			part += " " + rc.Event
		}
		if w := c.Txs[i].Later; w != nil {
			part += " " + w.ID
		}
		for _, x := range c.Txs[i].Cancels {
			part += ", cancels " + x.ID
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
		count[part]++
	}
	for i, part := range parts {
		if n := count[part]; n > 1 {
			parts[i] = fmt.Sprintf("%s (%d times)", part, n)
		}
	}
	return strings.Join(parts, "; ")
}

// checkCurrent checks what must hold when nothing is left to do: every live node is clean or has a reason to
// wait, and shows the value of its expression; and the runtime's documents agree with the log.
func (a *actor) checkCurrent() {
	if a.core.ledger.Epoch() == 0 {
		return
	}
	for _, n := range a.core.graph.nodes {
		switch {
		case n == nil || !n.live:
		case n.status == Clean:
			a.checkDerived(n)
		case n.waiting:
			a.tell(a, 1, "not current: %s, waits for another space", n.id())
		case n.eligibleAt() > a.now:
			a.tell(a, 1, "not current: %s, gated until %s", n.id(), n.eligibleAt())
		default:
			a.t.Errorf("%s: live node %s is %s when nothing is left to do", a.name, n.id(), n.status)
		}
	}
	if !a.core.Settled() {
		return
	}
	confirmed := a.replica(a.cfg.Space)
	for _, id := range confirmed.DocIDs() {
		if want, got := confirmed.Doc(id).Value, a.core.Value(id); !model.Equal(want, got) {
			a.t.Errorf("%s: document %s is %s, the log says %s", a.name, id, show(got), show(want))
		}
	}
}

// checkDerived recomputes a node from its reads. A node that fails keeps its last output, and one that reads
// its own output is excepted for its own writes.
func (a *actor) checkDerived(n *node) {
	sc := a.script(a.cfg.Space)
	e := sc.derive[n.id()]
	if e == nil || n.kind == Effect || slices.ContainsFunc(n.deps, func(d *dep) bool { return d.doc == n.own.doc }) {
		return
	}
	defer func() { _ = recover() }() // an expression that panics keeps its last output, too
	ticks := sc.ticks
	v, err := e.eval(sc.env(&Tx{&transaction{core: a.core.runner.transactions, graph: a.core.graph, space: a.cfg.Space, lax: true, rehearsal: true}}, nil))
	if ticks != sc.ticks {
		return // its result depends on the number of calls
	}
	if err == nil && !model.Equal(v, n.own.doc.value) {
		a.t.Errorf("%s: live node %s shows %s, its expression comes to %s", a.name, n.id(), show(n.own.doc.value), show(v))
	}
}
