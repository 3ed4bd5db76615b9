package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/redraw"
	"github.com/settlehq/settle/workflow"
)

// mark is what is drawn of a node beside its text.
type mark struct {
	sign, code, note string
	// here is set for a node that the run waits at.
	here bool
}

// The signs of nodes, in colours that say the same.
const (
	signPassed = "✓" // the run has been there
	signActive = "●" // it waits there for actions
	signPaused = "‖" // it waits there for a time or a signal
	signAgain  = "↻" // it waits there for another attempt
	signAhead  = "·" // it has not been there
)

// graph draws the graph of a run, a node on each line with its sign, in at most so many lines: around the first node that the run waits
// at, if there are more. Functions that the run has not called have a line.
func (d runText) graph(s *flow.Status, most int) []string {
	if s.Graph == nil || s.Opaque {
		return nil
	}
	marks, width := d.marks(s), labelWidth(s.Graph)
	var lines []string
	first := -1
	for i := range s.Graph.Funcs {
		f := &s.Graph.Funcs[i]
		if i > 0 && s.Passed(i, 0) == 0 {
			lines = append(lines, "  "+d.paint(faint, signAhead+" function "+f.Name))
			continue
		}
		if i > 0 {
			lines = append(lines, fmt.Sprintf("  function %s, called %s", d.paint(bold, f.Name), times(s.Passed(i, 0))))
		}
		for n := range f.Nodes {
			node := &f.Nodes[n]
			if node.Kind == workflow.Join || node.Kind == workflow.Merge { // they are lines of no source
				continue
			}
			m := marks[nodeAt{i, n}]
			if m.sign == "" {
				m = passedMark(s.Passed(i, n))
			}
			if m.here && first < 0 {
				first = len(lines)
			}
			lines = append(lines, d.node(node, m, width))
		}
	}
	return window(lines, first, most, func(text string) string { return d.paint(faint, text) })
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return display.Grouped(n) + " times"
}

// passedMark returns the mark of a node at which a run does not wait.
func passedMark(times int) mark {
	switch times {
	case 0:
		return mark{sign: signAhead, code: faint}
	case 1:
		return mark{sign: signPassed, code: green}
	}
	return mark{sign: signPassed, code: green, note: "×" + display.Grouped(times)}
}

// labelOf returns the text of a node, indented by the loops around it.
func labelOf(n *workflow.Node) string {
	return strings.Repeat("  ", n.Depth) + strings.TrimPrefix(n.Label(48), "do ")
}

// labelWidth returns the width of the column of texts, so that notes are below each other.
func labelWidth(g *workflow.Graph) (width int) {
	for i := range g.Funcs {
		for n := range g.Funcs[i].Nodes {
			width = max(width, utf8.RuneCountInString(labelOf(&g.Funcs[i].Nodes[n])))
		}
	}
	const most, gap = 58, 2
	return min(width, most) + gap
}

// node draws a node.
func (d runText) node(n *workflow.Node, m mark, width int) string {
	text := labelOf(n)
	fill := strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 1))
	switch {
	case m.here:
		text = d.paint(bold, text)
	case m.sign == signAhead:
		text = d.paint(faint, text)
	}
	line := fmt.Sprintf("  %s %s %s%s%s", d.paint(m.code, m.sign), d.paint(faint, fmt.Sprintf("%4d", n.Line)), text, fill, d.paint(m.code, m.note))
	return strings.TrimRight(line, " ")
}

// marks returns the marks of the nodes at which a run waits, and of the loops around them.
func (d runText) marks(s *flow.Status) map[nodeAt]mark {
	marks := map[nodeAt]mark{}
	for i := range s.Positions {
		p := &s.Positions[i]
		for _, r := range p.Rounds {
			head := nodeAt{p.Func, r.Node}
			if was := marks[head]; was.sign == "" {
				marks[head] = mark{sign: signActive, code: yellow, note: iteration(r)}
			}
		}
		// A call of a function waits at the node of the call, and the function at one of its own.
		where := fanOf(s.Graph, nodeAt{p.Func, p.Node})
		if was := marks[where]; was.sign == "" {
			marks[where] = mark{sign: signActive, code: yellow, here: true, note: share(p.Got, p.Need)}
		}
	}
	for _, g := range groups(s) {
		marks[g.at] = d.groupMark(s, &g)
	}
	return marks
}

// groupMark returns the mark of a node at which a run waits for actions, a time or a signal.
func (d runText) groupMark(s *flow.Status, g *group) mark {
	w := &g.open[0]
	m := mark{sign: signActive, code: yellow, here: true}
	n := nodeOf(s.Graph, g.at)
	switch {
	case n != nil && n.Kind == workflow.Fan || len(g.open) > 1:
		m.note = share(g.got, g.need)
	case called(w) == "":
		m.sign = signPaused
		m.note = d.paused(s, w)
	case w.Failed != "":
		m.sign, m.code = signAgain, red
		m.note = fmt.Sprintf("attempt %d", w.Attempt)
	}
	return m
}

// share draws how many calls have ended of several, "" of a single one.
func share(got, need int) string {
	if need < 2 {
		return ""
	}
	bar := redraw.Gauge(float64(got)/float64(need), gaugeWidth/2)
	return strings.TrimRight(fmt.Sprintf("%s of %s %s", display.Grouped(got), display.Grouped(need), bar), " ")
}

// paused returns how long a run has waited for a signal or a condition, or sleeps still.
func (d runText) paused(s *flow.Status, w *workflow.Open) string {
	if until, set := s.Timers[w.ID]; set && w.Signal+w.Until == "" {
		return d.in(until)
	}
	if w.Since == 0 {
		return ""
	}
	return "for " + d.lasted(time.UnixMilli(w.Since))
}

// window returns at most so many lines around one of them, the first if that is -1, and how many are left out at each side.
func window(lines []string, around, most int, paint func(string) string) []string {
	if len(lines) <= most {
		return lines
	}
	most = max(most, 3)
	from := min(max(around-most/2, 0), len(lines)-most)
	part := append([]string(nil), lines[from:from+most]...)
	if from > 0 {
		part[0] = paint(fmt.Sprintf("  ... %d above", from+1))
	}
	if rest := len(lines) - from - most; rest > 0 {
		part[most-1] = paint(fmt.Sprintf("  ... %d below", rest+1))
	}
	return part
}
