package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/redraw"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// runText draws a run at a time. It is a function of its fields and of the status: what it draws does not depend on the terminal,
// except for colours.
type runText struct {
	sheet
	now time.Time
	// idle are actions that the run waits for and that have no performer.
	idle []fleet.Unperformed
}

var runColors = map[runs.State]string{flow.Running: yellow, flow.Done: green, flow.Failed: red, flow.Cancelled: red}

// Bounds of what is drawn.
const (
	// maxWaiting is how many things that a run waits for are listed.
	maxWaiting = 20
	// maxRetries is how many attempts of a fan-out that follow a failure are listed.
	maxRetries = 3
	// gaugeWidth is the width of a bar.
	gaugeWidth = 20
)

// lines returns the state of a run, and what it waits for or how it has ended.
func (d runText) lines(s *flow.Status) []string {
	lines := append([]string{d.head(s)}, familyLines(s)...)
	if at, has := s.Timers[workflow.DeadlineTimer]; has {
		lines = append(lines, "  has to end "+d.in(at))
	}
	if s.Undoing != nil {
		lines = append(lines, "  executes its undo steps, because of "+s.Undoing.Error())
	}
	for _, text := range slices.Concat(d.waits(s), d.withoutPerformer()) {
		lines = append(lines, "  "+text)
	}
	switch {
	case s.Opaque:
		what := "what it waits for"
		if len(s.Waiting) > 0 {
			what = "what else it waits for"
		}
		lines = append(lines, "  "+what+" is not known here: its code calls functions of the worker; `settle workflow history` has its steps")
	case s.Error != nil:
		lines = append(lines, "  "+d.paint(red, "error")+" "+s.Error.Error())
		lines = append(lines, undoneLines(s.Error.Undone)...)
	case s.State == flow.Done:
		lines = append(lines, d.result(s)...)
	}
	return lines
}

// undoneLines says how undo steps have ended.
func undoneLines(u *workflow.Undone) (lines []string) {
	if u == nil {
		return nil
	}
	lines = []string{fmt.Sprintf("  undo steps: %d done, %d failed, %d skipped", u.Steps, u.Failed, u.Skipped)}
	for _, e := range u.Errors {
		lines = append(lines, fmt.Sprintf("    %s (line %d) %s: %s", e.Step, e.Line, e.Type, e.Message))
	}
	return lines
}

// head is the first line: the run, its workflow, its state and its age.
func (d runText) head(s *flow.Status) string {
	started := time.UnixMilli(s.Started)
	how := fmt.Sprintf("for %s, since %s", d.lasted(started), at(d.now, started))
	if s.State != flow.Running {
		ended := time.UnixMilli(s.Ended)
		how = fmt.Sprintf("after %s, at %s", brief(ended.Sub(started)), at(d.now, ended))
	}
	return fmt.Sprintf("%s: workflow %s, %s %s, %s", d.paint(bold, s.ID), s.Workflow, d.paint(runColors[s.State], string(s.State)), how, display.Count(s.Steps, "step"))
}

// result returns the result, on the same line if it is short.
func (d runText) result(s *flow.Status) []string {
	const short = 100
	text := s.Result.String()
	if len(text) <= short {
		return []string{"  " + d.paint(green, "result") + " " + text}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "  ", "  "); err != nil {
		return []string{"  " + d.paint(green, "result") + " " + text}
	}
	return append([]string{"  " + d.paint(green, "result")}, strings.Split("  "+b.String(), "\n")...)
}

// place is a node of the graph.
type nodeAt struct{ fn, node int }

// group is what a run waits for at one node.
type group struct {
	at   nodeAt
	open []workflow.Open
	// got and need are the calls of the node that have ended, and all; in sums of all calls of its function.
	got, need int
}

// groups returns what a run waits for by node, in the order of the graph.
func groups(s *flow.Status) []group {
	index := map[nodeAt]int{}
	var list []group
	for _, w := range s.Waiting {
		where := nodeAt{w.Func, w.Node}
		i, known := index[where]
		if !known {
			i = len(list)
			index[where] = i
			list = append(list, group{at: where})
		}
		list[i].open = append(list[i].open, w)
	}
	for i := range s.Positions {
		p := &s.Positions[i]
		if j, is := index[fanOf(s.Graph, nodeAt{p.Func, p.Node})]; is {
			list[j].got += p.Got
			list[j].need += p.Need
		}
	}
	slices.SortFunc(list, func(a, b group) int { return cmp.Or(cmp.Compare(a.at.fn, b.at.fn), cmp.Compare(a.at.node, b.at.node)) })
	return list
}

// nodeOf returns a node of a graph, nil if there is none.
func nodeOf(g *workflow.Graph, where nodeAt) *workflow.Node {
	if g == nil || where.fn < 0 || where.fn >= len(g.Funcs) || where.node < 0 || where.node >= len(g.Funcs[where.fn].Nodes) {
		return nil
	}
	return &g.Funcs[where.fn].Nodes[where.node]
}

// fanOf returns the fan-out of a join, and any other node itself. A run waits at the join, and its actions belong to the fan-out.
func fanOf(g *workflow.Graph, where nodeAt) nodeAt {
	if n := nodeOf(g, where); n == nil || n.Kind != workflow.Join {
		return where
	}
	for i := range g.Funcs[where.fn].Nodes {
		if n := &g.Funcs[where.fn].Nodes[i]; n.Kind == workflow.Fan && n.Edges[0].To == where.node {
			return nodeAt{where.fn, i}
		}
	}
	return where
}

// waits returns what a run waits for, a line each.
func (d runText) waits(s *flow.Status) []string {
	var lines []string
	for _, l := range d.rounds(s) {
		lines = append(lines, "in "+l)
	}
	all := groups(s)
	for _, g := range all[:min(len(all), maxWaiting)] {
		lines = append(lines, d.group(s, &g)...)
	}
	if more := len(all) - maxWaiting; more > 0 {
		lines = append(lines, fmt.Sprintf("and for %d more", more))
	}
	return lines
}

// withoutPerformer says which actions have no performer, and what to do.
func (d runText) withoutPerformer() (lines []string) {
	for i := range d.idle {
		u := &d.idle[i]
		lines = append(lines, d.paint(yellow, "no performer")+": "+u.Text(d.now), "  start one: "+u.Advice())
	}
	return lines
}

// rounds returns the loops that the run itself is in, and the calls of its functions that it waits for.
func (d runText) rounds(s *flow.Status) (lines []string) {
	if len(s.Positions) == 0 {
		return nil
	}
	p := &s.Positions[0]
	for _, r := range p.Rounds {
		if n := nodeOf(s.Graph, nodeAt{p.Func, r.Node}); n != nil {
			lines = append(lines, fmt.Sprintf("%s: %s (line %d)", n.Label(50), iteration(r), n.Line))
		}
	}
	n := nodeOf(s.Graph, fanOf(s.Graph, nodeAt{p.Func, p.Node}))
	if n != nil && n.Kind == workflow.Fan && slices.ContainsFunc(n.Calls, func(c workflow.Call) bool { return c.Func != "" }) {
		lines = append(lines, fmt.Sprintf("%s: %s of %s done (line %d)", n.Label(50), display.Grouped(p.Got), display.Grouped(p.Need), n.Line))
	}
	return lines
}

func iteration(r workflow.Round) string {
	if r.Of < 0 {
		return fmt.Sprintf("iteration %s", display.Grouped(r.Index+1))
	}
	return fmt.Sprintf("%s of %s", display.Grouped(r.Index+1), display.Grouped(r.Of))
}

// group describes what a run waits for at one node.
func (d runText) group(s *flow.Status, g *group) []string {
	line := ""
	if n := nodeOf(s.Graph, g.at); n != nil {
		line = fmt.Sprintf(" (line %d)", n.Line)
	}
	if n := nodeOf(s.Graph, g.at); n != nil && n.Kind == workflow.Fan || len(g.open) > 1 {
		return d.fan(s, g, line)
	}
	text := d.single(s, &g.open[0])
	if failed := g.open[0].Failed; failed != "" {
		return []string{"waits for " + text + line, "  " + d.paint(red, "after ") + display.FirstLine(failed)}
	}
	return []string{"waits for " + text + line}
}

// called names the action or the child that a run waits for, "" if it is neither.
func called(w *workflow.Open) string {
	if w.Child != "" {
		return "child " + w.Child
	}
	return w.Action
}

// whatOf is called with the kind of what is called.
func whatOf(w *workflow.Open) string {
	if w.Child != "" {
		return called(w)
	}
	return "action " + w.Action
}

// single describes one thing that a run waits for.
func (d runText) single(s *flow.Status, w *workflow.Open) string {
	until, set := s.Timers[w.ID]
	switch {
	case called(w) != "" && w.Retry:
		return fmt.Sprintf("attempt %d of %s, %s", w.Attempt, whatOf(w), d.in(s.Timers["retry "+w.ID]))
	case called(w) != "":
		text := "action " + d.paint(bold, w.Action)
		if w.Child != "" {
			text = "child " + d.paint(bold, w.Child)
		}
		if w.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", w.Attempt)
		}
		if s.Queued[w.ID] {
			text += ", queued"
		}
		return text + d.since(w.Since)
	case w.Signal != "" && set:
		return fmt.Sprintf("signal %s%s, until %s: %s", d.paint(bold, w.Signal), d.since(w.Since), at(d.now, time.UnixMilli(until)), d.in(until))
	case w.Signal != "":
		return "signal " + d.paint(bold, w.Signal) + d.since(w.Since)
	case w.Until != "" && set:
		return fmt.Sprintf("condition %s%s, until %s: %s", d.paint(bold, w.Until), d.since(w.Since), at(d.now, time.UnixMilli(until)), d.in(until))
	case w.Until != "":
		return "condition " + d.paint(bold, w.Until) + d.since(w.Since)
	case set:
		return fmt.Sprintf("the end of its sleep at %s, %s", at(d.now, time.UnixMilli(until)), d.in(until))
	}
	return "a timer"
}

// since returns since when something is so, "" if that is not known.
func (d runText) since(ms int64) string {
	if ms == 0 {
		return ""
	}
	then := time.UnixMilli(ms)
	return fmt.Sprintf(" for %s, since %s", d.lasted(then), at(d.now, then))
}

// lasted returns the duration since a time, to a tenth of a second.
func (d runText) lasted(since time.Time) string { return brief(d.now.Sub(since).Round(looks)) }

// in returns the duration until a time.
func (d runText) in(ms int64) string {
	left := time.UnixMilli(ms).Sub(d.now)
	if ms == 0 || left <= 0 {
		return "due now"
	}
	return "in " + brief(left.Round(looks))
}

// fan describes the calls at a node of which there are several.
func (d runText) fan(s *flow.Status, g *group, line string) []string {
	queued, again := 0, 0
	var since int64
	var retries []string
	names := map[string]bool{}
	for i := range g.open {
		w := &g.open[i]
		names[called(w)+w.Signal+w.Until] = true
		if s.Queued[w.ID] {
			queued++
		}
		if w.Since > 0 && (since == 0 || w.Since < since) {
			since = w.Since
		}
		if w.Failed == "" {
			continue
		}
		if again++; len(retries) < maxRetries {
			retries = append(retries, fmt.Sprintf("  attempt %d %s %s", w.Attempt, d.paint(red, "after"), display.FirstLine(w.Failed)))
		}
	}
	text := fmt.Sprintf("%s of %s", display.Grouped(g.got), display.Grouped(g.need))
	share := 0.0
	if g.need > 0 {
		share = float64(g.got) / float64(g.need)
	}
	list := []string{fmt.Sprintf("waits for %s: %s done%s", d.paint(bold, strings.Join(sortedKeys(names), ", ")), text, line)}
	filled := strings.TrimRight(redraw.Gauge(share, gaugeWidth), " ")
	bar := d.paint(green, filled) + d.paint(faint, strings.Repeat("·", gaugeWidth-utf8.RuneCountInString(filled)))
	list = append(list, fmt.Sprintf("  %s %3.0f %%%s%s%s", bar, 100*share, part(len(g.open)-queued, "pending"), part(queued, "queued"), part(again, "tried again")))
	if since > 0 {
		list = append(list, "  the oldest of them"+d.since(since))
	}
	if again > len(retries) {
		retries = append(retries, fmt.Sprintf("  and %d more that are tried again", again-len(retries)))
	}
	return append(list, retries...)
}

func part(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s %s", display.Grouped(n), what)
}

func sortedKeys(m map[string]bool) (list []string) {
	for k := range m { // any order: it is sorted
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// summary returns the state of a run on one line, without durations, which change all the time.
func (d runText) summary(s *flow.Status) string {
	parts := []string{string(s.State), display.Count(s.Steps, "step")}
	if len(s.Positions) > 0 {
		for _, r := range s.Positions[0].Rounds {
			if n := nodeOf(s.Graph, nodeAt{s.Positions[0].Func, r.Node}); n != nil {
				parts = append(parts, n.Label(30)+": "+iteration(r))
			}
		}
	}
	all := groups(s)
	for i := range all[:min(len(all), maxRetries)] {
		parts = append(parts, shortGroup(s, &all[i]))
	}
	if more := len(all) - maxRetries; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	for i := range d.idle {
		parts = append(parts, d.idle[i].Reason())
	}
	if s.Error != nil {
		parts = append(parts, s.Error.Error())
	}
	return strings.Join(parts, ", ")
}

// shortGroup describes a group in a few words.
func shortGroup(s *flow.Status, g *group) string {
	w := &g.open[0]
	n := nodeOf(s.Graph, g.at)
	switch {
	case n != nil && n.Kind == workflow.Fan || len(g.open) > 1:
		return fmt.Sprintf("%s %d of %d done", cmp.Or(called(w), w.Signal, w.Until), g.got, g.need)
	case called(w) != "" && w.Failed != "":
		return fmt.Sprintf("attempt %d of %s after %s", w.Attempt, called(w), display.FirstLine(w.Failed))
	case called(w) != "":
		return "waits for " + whatOf(w)
	case w.Signal != "":
		return "waits for signal " + w.Signal
	case w.Until != "":
		return "waits until " + w.Until
	}
	return "sleeps"
}
