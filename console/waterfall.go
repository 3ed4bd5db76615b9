package console

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/lineage"
)

// axis places events in time. Pauses in which nothing was under way are cut.
type axis struct {
	from   time.Time
	span   time.Duration
	now    time.Time
	pieces []piece
	labels []string
}

// piece is a part of time, and its part of the axis in percent.
type piece struct {
	from, to time.Time
	x, w     float64
	idle     bool
}

// bounds returns when an event was under way.
func bounds(n *history.TreeNode, now time.Time) (from, to time.Time) {
	from = n.Sent
	if from.IsZero() {
		from = n.Ended
	}
	to = n.Ended
	switch {
	case from.IsZero():
		return time.Time{}, time.Time{}
	case to.IsZero():
		to = now
	case to.Before(from):
		to = from
	}
	return from, to
}

// newAxis returns the axis of a tree.
func newAxis(root *history.TreeNode, now time.Time) *axis {
	a := &axis{now: now}
	type span struct{ from, to time.Time }
	var busy []span
	walk(root, func(n *history.TreeNode) {
		from, to := bounds(n, now)
		if from.IsZero() {
			return
		}
		if n.State == lineage.Waiting { // waiting for a time is no work
			to = from
		}
		busy = append(busy, span{from, to})
	})
	if len(busy) == 0 {
		return a
	}
	slices.SortFunc(busy, func(a, b span) int { return a.from.Compare(b.from) })
	merged := busy[:1]
	for _, s := range busy[1:] {
		if last := &merged[len(merged)-1]; !s.from.After(last.to) {
			if s.to.After(last.to) {
				last.to = s.to
			}
			continue
		}
		merged = append(merged, s)
	}
	work := time.Duration(0)
	for _, s := range merged {
		work += s.to.Sub(s.from)
	}
	a.from, a.span = merged[0].from, merged[len(merged)-1].to.Sub(merged[0].from)
	least := max(work/2, 20*time.Millisecond) // shorter pauses are drawn as they are
	const cutWidth = 4.0
	drawn, cuts := time.Duration(0), 0
	for i, s := range merged {
		drawn += s.to.Sub(s.from)
		if i > 0 {
			if gap := s.from.Sub(merged[i-1].to); gap > least && cuts < 8 {
				cuts++
			} else {
				drawn += gap
			}
		}
	}
	scale := (100 - cutWidth*float64(cuts)) / float64(max(drawn, 1))
	x, cut := 0.0, 0
	for i, s := range merged {
		if i > 0 {
			gap := s.from.Sub(merged[i-1].to)
			w := float64(gap) * scale
			idle := gap > least && cut < 8
			if idle {
				cut++
				w = cutWidth
				a.labels = append(a.labels, duration(gap))
			}
			a.pieces = append(a.pieces, piece{merged[i-1].to, s.from, x, w, idle})
			x += w
		}
		w := float64(s.to.Sub(s.from)) * scale
		a.pieces = append(a.pieces, piece{s.from, s.to, x, w, false})
		x += w
	}
	return a
}

// at returns the place of a time, in percent.
func (a *axis) at(t time.Time) float64 {
	for _, p := range a.pieces {
		if t.After(p.to) {
			continue
		}
		d := p.to.Sub(p.from)
		if d <= 0 || t.Before(p.from) {
			return p.x
		}
		return p.x + p.w*float64(t.Sub(p.from))/float64(d)
	}
	return 100
}

// place returns the bar of an event.
func (a *axis) place(n *history.TreeNode) (x, w float64) {
	from, to := bounds(n, a.now)
	if from.IsZero() {
		return -1, 0
	}
	x = a.at(from)
	if n.State == lineage.Waiting {
		return min(x, 99), 100 - min(x, 99)
	}
	return min(x, 99.2), max(a.at(to)-x, 0.8)
}

// treeGraph is a tree as a picture: generations from left to right.
type treeGraph struct {
	Width, Height int
	Nodes         []treeBox
	Edges         []string
}

// treeBox is an event in it.
type treeBox struct {
	X, Y            int
	Mark, Word      string
	Line1, Line2    string
	URL, Key, Title string
	Rest            bool
}

const treeBoxWidth, treeBoxHeight, treeGapX, treeGapY = 176, 40, 40, 10

// drawTree places the rows of a waterfall: leaves one below the other, and each event beside the middle of what it has caused.
func drawTree(rows []treeRow) treeGraph {
	g := treeGraph{}
	children := make([][]int, len(rows))
	var last [16]int
	for i := range rows {
		if rows[i].Depth > 0 {
			parent := last[rows[i].Depth-1]
			children[parent] = append(children[parent], i)
		}
		last[rows[i].Depth] = i
	}
	y := make([]int, len(rows))
	next := 8
	for i := len(rows) - 1; i >= 0; i-- { // so that parents come after what they have caused
		if len(children[i]) == 0 {
			y[i] = -1
		}
	}
	for i := range rows {
		if y[i] == -1 {
			y[i] = next
			next += treeBoxHeight + treeGapY
		}
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if c := children[i]; len(c) > 0 {
			y[i] = (y[c[0]] + y[c[len(c)-1]]) / 2
		}
	}
	for i := range rows {
		r := &rows[i]
		x := 8 + r.Depth*(treeBoxWidth+treeGapX)
		b := treeBox{X: x, Y: y[i], Mark: r.Mark, Word: r.Word, Line1: cut(r.Name, 24), Line2: cut(cmp.Or(r.Why, r.Late, r.due(), r.Event), 26), URL: r.URL, Key: r.Key, Title: r.Event, Rest: r.Rest}
		if r.Rest {
			b.Line1, b.Line2, b.URL = fmt.Sprintf("%s more", display.Grouped(r.Folded)), cut(r.Text, 26), cmp.Or(r.OpenURL, r.URL)
		} else if r.Folded > 0 {
			b.Line2 = fmt.Sprintf("%s more below, all well", display.Grouped(r.Folded))
		}
		g.Nodes = append(g.Nodes, b)
		for _, c := range children[i] {
			x1, y1, x2, y2 := x+treeBoxWidth, y[i]+treeBoxHeight/2, x+treeBoxWidth+treeGapX, y[c]+treeBoxHeight/2
			g.Edges = append(g.Edges, fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x1, y1, x1+treeGapX/2, y1, x2-treeGapX/2, y2, x2, y2))
		}
		g.Width, g.Height = max(g.Width, x+treeBoxWidth+8), max(g.Height, y[i]+treeBoxHeight+8)
	}
	return g
}
