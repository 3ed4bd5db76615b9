package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

func runPage() page {
	return page{
		name: "run", pattern: "/spaces/{space}/runs/{run}", under: "workflows", params: []string{"node", "steps"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			if err := errors.Join(need("space", q.Path("space")), runs.CheckID(q.Path("run"))); err != nil {
				return view{}, &missing{err.Error()}
			}
			r := &runLoader{c: c, q: q}
			return view{load: r.load, every: time.Second}, nil
		},
	}
}

// runLoader loads the page of a run. While its document does not change, nothing does, and each step of the run is read once.
type runLoader struct {
	c      *Console
	q      *query
	reader *flow.Reader
	at     uint64 // the revision of the document
	last   *shown
}

func (r *runLoader) load(ctx context.Context) (*shown, error) {
	space, id := r.q.Path("space"), r.q.Path("run")
	if err := refuse(r.q.visitor.MayReadAll(space)); err != nil {
		return nil, err
	}
	if r.reader == nil {
		client, err := r.c.client("")
		if err != nil {
			return nil, err
		}
		r.reader = flow.In(client.Space(space)).Reader(id)
	}
	at, err := r.reader.Revision(ctx)
	if err != nil {
		return nil, err
	}
	if at == r.at && r.last != nil {
		return r.last, nil
	}
	v, err := r.reader.View(ctx)
	if errors.Is(err, flow.ErrNoRun) {
		return nil, &missing{fmt.Sprintf("Space %s has no run %s: it was never started, or is not kept any more", space, id)}
	}
	if err != nil {
		return nil, err
	}
	d := &runData{Space: space, Run: id, Status: v.Status, q: r.q}
	if v.Untimed != nil {
		v.Timeline, d.Untimed = &flow.Timeline{}, v.Untimed.Error()
	}
	d.fill(v.History, v.Timeline)
	d.Timeline = &runs.Timeline{From: v.Timeline.From, Opaque: v.Timeline.Opaque} // the attempts are valid until the next reading
	s := d.shown()
	r.at, r.last = at, s
	return s, nil
}

// runData is what the page of a run shows.
type runData struct {
	Space, Run string
	Status     *runs.Status
	Waits      []waitRow
	Rounds     []string
	Drawing    template.HTML
	Undrawn    string // why there is none
	Outline    []outlineFunc
	Node       *nodeDetail
	Groups     []*callGroup
	Timeline   *runs.Timeline
	Untimed    string
	From, To   time.Time // of the timeline
	Steps      []stepRow
	StepsTotal int
	Gone       int
	OlderSteps string
	NewerSteps string

	q *query
}

// Mark, Word and Ended of the run.
func (d *runData) Mark() string       { return runState(d.Status.State) }
func (d *runData) Started() time.Time { return msTime(d.Status.Started) }
func (d *runData) Ended() time.Time   { return msTime(d.Status.Ended) }
func (d *runData) Running() bool      { return d.Status.State == runs.Running }

// Took is the duration of a run that has ended.
func (d *runData) Took() time.Duration { return d.Ended().Sub(d.Started()) }

// Again reports whether the run can be tried again.
func (d *runData) Again() bool {
	return d.Status.State == runs.Failed || d.Status.State == runs.Cancelled
}

// Shown is the time that the timeline shows.
func (d *runData) Shown() time.Duration { return d.To.Sub(d.From) }

// Going reports whether something of the run is under way: then the right end of its timeline is no time.
func (d *runData) Going() bool { return len(d.Status.Waiting) > 0 }

// Deadline is when the run must have ended, zero if it has no deadline.
func (d *runData) Deadline() time.Time { return msTime(d.Status.Timers[workflow.DeadlineTimer]) }

// Signals are the names of signals that the run waits for.
func (d *runData) Signals() (names []string) {
	for i := range d.Status.Waiting {
		if s := d.Status.Waiting[i].Signal; s != "" && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// Children and Parent link to other runs.
func (d *runData) ParentURL() string { return runURL(d.Status.Parent.Space, d.Status.Parent.Run) }

// fill computes what is shown.
func (d *runData) fill(h *runs.History, t *runs.Timeline) {
	d.Timeline = t
	d.waits()
	d.draw()
	d.group()
	d.steps(h)
}

// shown returns the page.
func (d *runData) shown() *shown {
	s := &shown{
		Name: d.Run, CLI: "settle workflow status " + d.Space + " " + d.Run, Data: d,
		Crumbs: []crumb{{"Workflows", "/workflows"}, {d.Space, pathOf("spaces", d.Space)}},
	}
	s.Title, s.State = d.title()
	s.Parts = []part{
		{ID: "facts", Template: "run-facts", Data: d},
		{ID: "acts", Template: "run-acts", Data: d},
		{ID: "outcome", Template: "run-outcome", Data: d},
		{ID: "waits", Template: "run-waits", Data: d},
		{ID: "drawing", Template: "run-drawing", Data: d},
		{ID: "outline", Template: "run-outline", Data: d},
		{ID: "node", Template: "run-node", Data: d},
		{ID: "timeline", Template: "run-timeline", Data: d},
		{ID: "family", Template: "run-family", Data: d},
		{ID: "steps", Template: "run-steps", Data: d},
	}
	return s
}

// title says what the run waits for, or how it has ended.
func (d *runData) title() (title, state string) {
	s := d.Status
	switch s.State {
	case runs.Done:
		return fmt.Sprintf("%s is done, after %s", d.Run, duration(d.Took())), "clean"
	case runs.Failed:
		return fmt.Sprintf("%s failed: %s", d.Run, cut(s.Error.Error(), 100)), "failed"
	case runs.Cancelled:
		return fmt.Sprintf("%s was cancelled", d.Run), "dormant"
	}
	switch {
	case s.Undoing != nil:
		return fmt.Sprintf("%s undoes its steps, because of %s", d.Run, cut(s.Undoing.Error(), 100)), "parked"
	case len(d.Waits) == 0:
		return d.Run + " is under way", "running"
	case len(d.Waits) == 1:
		return fmt.Sprintf("%s waits for %s", d.Run, d.Waits[0].What), d.Waits[0].State
	}
	names := make([]string, 0, 3)
	for i := range d.Waits[:min(3, len(d.Waits))] {
		names = append(names, d.Waits[i].What)
	}
	more := ""
	if n := len(d.Waits) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s waits for %s%s", d.Run, strings.Join(names, ", "), more), d.Waits[0].State
}

// waitRow is what a run waits for at one node.
type waitRow struct {
	State, What  string
	Line         int32
	URL          string // of the node
	Got, Need    int    // of several calls
	Way, Queued  int
	Again        int
	Failed       []string // why attempts are repeated, the first few
	Since, Until time.Time
	Then         string // what happens at Until
	Signal       string
	Attempt      int
	Child        *runs.RunName
	Several      bool
}

// Share is how much of several calls is done, in percent.
func (w *waitRow) Share() int {
	if w.Need == 0 {
		return 0
	}
	return 100 * w.Got / w.Need
}

// waits groups what the run waits for by node.
func (d *runData) waits() {
	s := d.Status
	index := map[[2]int]int{}
	for i := range s.Waiting {
		o := &s.Waiting[i]
		at := [2]int{o.Func, o.Node}
		k, known := index[at]
		if !known {
			k = len(d.Waits)
			index[at] = k
			d.Waits = append(d.Waits, waitRow{State: "waiting", URL: d.q.Address("node", nodeID(o.Func, o.Node)) + "#node"})
			if n := nodeAt(s.Graph, o.Func, o.Node); n != nil {
				d.Waits[k].Line = n.Line
				d.Waits[k].Several = n.Kind == workflow.Fan
			}
		}
		d.Waits[k].add(s, o)
	}
	for i := range s.Positions {
		p := &s.Positions[i]
		if k, is := index[fanOf(s.Graph, p.Func, p.Node)]; is {
			d.Waits[k].Got += p.Got
			d.Waits[k].Need += p.Need
		}
	}
	d.rounds()
	slices.SortStableFunc(d.Waits, func(a, b waitRow) int { return cmp.Compare(a.Line, b.Line) })
}

// add adds one thing that the run waits for.
func (w *waitRow) add(s *runs.Status, o *workflow.Open) {
	if w.Since.IsZero() || o.Since > 0 && msTime(o.Since).Before(w.Since) {
		w.Since = msTime(o.Since)
	}
	if w.What != "" {
		w.Several = true
	}
	w.Way++
	switch {
	case o.Action != "" || o.Child != "":
		w.What = cmp.Or(o.Action, o.Child)
		w.Attempt = max(w.Attempt, o.Attempt)
		switch {
		case s.Queued[o.ID]:
			w.Queued++
		case !o.Retry:
			w.State = "running"
		}
		if o.Retry {
			w.State, w.Until, w.Then = "parked", msTime(s.Timers["retry "+o.ID]), "the next attempt"
		}
	case o.Signal != "":
		w.What, w.Signal = "signal "+o.Signal, o.Signal
		if at, set := s.Timers[o.ID]; set {
			w.Until, w.Then = msTime(at), "a TimeoutError"
		}
	default:
		w.What = "a sleep"
		w.Until, w.Then = msTime(s.Timers[o.ID]), "it goes on"
	}
	if o.Failed != "" {
		if w.Again++; len(w.Failed) < 3 {
			w.Failed = append(w.Failed, display.FirstLine(o.Failed))
		}
	}
}

// rounds are the loops that the run itself is in.
func (d *runData) rounds() {
	if len(d.Status.Positions) == 0 {
		return
	}
	p := &d.Status.Positions[0]
	for _, r := range p.Rounds {
		if n := nodeAt(d.Status.Graph, p.Func, r.Node); n != nil {
			d.Rounds = append(d.Rounds, fmt.Sprintf("%s: %s", n.Label(50), roundText(r)))
		}
	}
}

func roundText(r workflow.Round) string {
	if r.Of < 0 {
		return "iteration " + display.Grouped(r.Index+1)
	}
	return display.Grouped(r.Index+1) + " of " + display.Grouped(r.Of)
}

// nodeID is a node in an address.
func nodeID(fn, node int) string { return fmt.Sprintf("%d-%d", fn, node) }

// nodeOf reads it.
func nodeOf(id string) (fn, node int, is bool) {
	a, b, is := strings.Cut(id, "-")
	fn, err1 := strconv.Atoi(a)
	node, err2 := strconv.Atoi(b)
	return fn, node, is && err1 == nil && err2 == nil
}

// nodeAt returns a node of a graph, nil if there is none.
func nodeAt(g *workflow.Graph, fn, node int) *workflow.Node {
	if g == nil || fn < 0 || fn >= len(g.Funcs) || node < 0 || node >= len(g.Funcs[fn].Nodes) {
		return nil
	}
	return &g.Funcs[fn].Nodes[node]
}

// fanOf returns the fan-out of a join, and any other node itself: a run waits at the join, and its calls belong to the fan-out.
func fanOf(g *workflow.Graph, fn, node int) [2]int {
	if n := nodeAt(g, fn, node); n != nil && n.Kind == workflow.Join {
		for i := range g.Funcs[fn].Nodes {
			if f := &g.Funcs[fn].Nodes[i]; f.Kind == workflow.Fan && len(f.Edges) > 0 && f.Edges[0].To == node {
				return [2]int{fn, i}
			}
		}
	}
	return [2]int{fn, node}
}

// callsAt returns the name of what a node calls, "" if it calls nothing.
func callsAt(n *workflow.Node) (names []string) {
	for i := range n.Calls {
		names = append(names, n.Calls[i].Action+n.Calls[i].Child)
	}
	return names
}

// outlineFunc is a function of the workflow in the list of its nodes.
type outlineFunc struct {
	Name  string
	Nodes []outlineNode
}

// outlineNode is a node in the list.
type outlineNode struct {
	ID, Label, Kind string
	State, Word     string
	Line            int32
	Depth           int
	Note            string
	URL             string
	Here            bool
}

// markOfNode is the mark of a node's state, and its word.
func markOfNode(m workflow.Mark) (state, word string) {
	switch m {
	case workflow.MarkDone:
		return "clean", "done"
	case workflow.MarkRunning:
		return "running", "running"
	case workflow.MarkWaiting:
		return "waiting", "waiting"
	case workflow.MarkFailed:
		return "failed", "failed"
	}
	return "dormant", "not reached"
}

// note is what there is to say of a node besides its state: how often it was passed, or how many of its calls are done.
func (d *runData) note(fn, node int) string {
	s := d.Status
	for i := range s.Positions {
		p := &s.Positions[i]
		if p.Need > 1 && fanOf(s.Graph, p.Func, p.Node) == [2]int{fn, node} {
			return fmt.Sprintf("%d of %d", p.Got, p.Need)
		}
	}
	if s.Passed != nil {
		if n := s.Passed(fn, node); n > 1 {
			return fmt.Sprintf("×%d", n)
		}
	}
	return ""
}

// draw draws the graph, and lists its nodes.
func (d *runData) draw() {
	g := d.Status.Graph
	if g == nil {
		d.Undrawn = "The graph of this run is not in the space any more: it has ended, and so have the other runs of its version."
		return
	}
	chosen := d.q.Param("node")
	link := func(fn, node int) string { return d.q.Address("node", nodeID(fn, node), "steps", "") + "#node" }
	svg, err := g.Draw(workflow.Drawing{Mark: d.Status.Mark, Note: d.note, Link: link, Bare: true})
	if err != nil {
		d.Undrawn = err.Error()
	}
	d.Drawing = template.HTML(svg) //nolint:gosec // the package escapes what is in it
	for fn := range g.Funcs {
		f := outlineFunc{Name: g.Funcs[fn].Name}
		for node := range g.Funcs[fn].Nodes {
			n := &g.Funcs[fn].Nodes[node]
			if n.Kind == workflow.Merge || n.Kind == workflow.Join {
				continue
			}
			state, word := markOfNode(d.Status.Mark(fn, node))
			id := nodeID(fn, node)
			f.Nodes = append(f.Nodes, outlineNode{id, n.Label(90), string(n.Kind), state, word, n.Line, min(n.Depth, 6), d.note(fn, node), link(fn, node), id == chosen})
		}
		d.Outline = append(d.Outline, f)
	}
	if fn, node, is := nodeOf(chosen); is {
		d.node(fn, node)
	}
}

// nodeDetail is the node that the visitor has chosen.
type nodeDetail struct {
	ID, Label, Code string
	Line            int32
	State, Word     string
	Policy          string
	Attempts        []attemptRow
	Total           int
	SourceURL       string
}

// maxAttempts bounds the attempts of a node that are listed.
const maxAttempts = 100

// node describes a node.
func (d *runData) node(fn, at int) {
	n := nodeAt(d.Status.Graph, fn, at)
	if n == nil {
		return
	}
	x := &nodeDetail{ID: nodeID(fn, at), Label: n.Label(200), Line: n.Line}
	x.State, x.Word = markOfNode(d.Status.Mark(fn, at))
	if n.Code != nil {
		x.Code = n.Code.Text
	}
	for i := range n.Calls {
		if p := n.Calls[i].Policy; p != nil {
			x.Policy = policyText(p)
		}
	}
	names := callsAt(n)
	var list []*runs.Attempt
	for i := range d.Timeline.Attempts {
		a := &d.Timeline.Attempts[i]
		if a.Line == n.Line && slices.Contains(names, a.Action+a.Child) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b *runs.Attempt) int { return cmp.Compare(rankOf(a.State), rankOf(b.State)) })
	x.Total = len(list)
	for _, a := range list[:min(len(list), maxAttempts)] {
		x.Attempts = append(x.Attempts, attemptOf(a))
	}
	d.Node = x
}

// policyText describes retries and the timeout of a call.
func policyText(p *workflow.Policy) string {
	var parts []string
	if p.Attempts > 1 {
		text := fmt.Sprintf("%d attempts", p.Attempts)
		if len(p.On) > 0 {
			text += " on " + strings.Join(p.On, ", ")
		}
		parts = append(parts, text)
	}
	if p.Backoff > 0 {
		parts = append(parts, "first pause "+duration(time.Duration(p.Backoff)*time.Millisecond))
	}
	if p.Timeout > 0 {
		parts = append(parts, "timeout "+duration(time.Duration(p.Timeout)*time.Millisecond))
	}
	return strings.Join(parts, ", ")
}

// stepRow is a step of the history.
type stepRow struct {
	Step        int
	At          time.Time
	State, What string
	Detail      string
	Started     int
	Reset       bool // the run can go on from it
}

// stepsPerPage is how many steps are listed, the newest first.
const stepsPerPage = 100

// steps lists the steps of the history, the newest first.
func (d *runData) steps(h *runs.History) {
	d.StepsTotal, d.Gone = h.Status.Steps, h.Gone()
	before, err := strconv.Atoi(d.q.Param("steps"))
	if err != nil || before <= 0 {
		before = h.Status.Steps + 1
	}
	for i := len(h.Events) - 1; i >= 0; i-- {
		e := &h.Events[i]
		if e.Step >= before {
			continue
		}
		if len(d.Steps) == stepsPerPage {
			d.OlderSteps = d.q.Address("steps", strconv.Itoa(e.Step+1)) + "#steps"
			break
		}
		d.Steps = append(d.Steps, stepOf(e, d.Status))
	}
	if before <= h.Status.Steps {
		next := before + stepsPerPage
		if next > h.Status.Steps {
			d.NewerSteps = d.q.Address("steps", "") + "#steps"
		} else {
			d.NewerSteps = d.q.Address("steps", strconv.Itoa(next)) + "#steps"
		}
	}
}

// lastReset returns the last step from which a run can go on: with its last one, a run that has ended would end again.
func lastReset(s *runs.Status) int {
	if s.State == runs.Running {
		return s.Steps
	}
	return s.Steps - 1
}

func stepOf(e *runs.Event, s *runs.Status) stepRow {
	r := stepRow{Step: e.Step, At: msTime(e.At), State: "clean", What: string(e.Kind), Started: e.Started, Reset: e.Step <= lastReset(s)}
	switch e.Kind {
	case runs.EventDone:
		r.What = e.Action
	case runs.EventFailed:
		r.State, r.What = "failed", e.Action
	case runs.EventSignal:
		r.What = "signal " + e.Signal
	case runs.EventCancel:
		r.State, r.What, r.Detail = "dormant", "cancelled", e.Why
	case runs.EventAbort:
		r.State, r.What = "failed", "ended because of a bound"
	case runs.EventTimer:
		r.State, r.What = "waiting", "time passed"
	case runs.EventRoom:
		r.State, r.What = "waiting", "there was room"
	case runs.EventRetry, runs.EventReset:
		r.State, r.What, r.Detail = "parked", string(e.Kind), fmt.Sprintf("after %d steps", e.Steps)
	}
	if e.Attempt > 1 {
		r.What += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	switch {
	case e.Error != nil:
		r.Detail = e.Error.Error()
	case e.Value != nil:
		r.Detail = string(e.Value)
	}
	return r
}
