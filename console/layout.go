package console

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/layered"
)

// Boxes of a drawn graph, in pixels.
const (
	boxWidth, boxHeight = 184, 44
	gapX, gapY          = 64, 14
	margin              = 12
)

// drawn is a node of a graph to draw: its name, and the tier that decides its column.
type drawn struct {
	ID   string
	Tier int
}

// arrow is an edge between nodes, by their index.
type arrow struct{ From, To int }

// picture is a graph that was laid out.
type picture struct {
	Width, Height int
	// X and Y are the upper left corners of the nodes, by index.
	X, Y []int
	// Paths are those of the arrows, by index, and Back is set for those that lead backwards or within a column.
	Paths []string
	Back  []bool
	// Columns are the tiers, from left to right.
	Columns []int
	// order is the place of each node in its column, by id: the next layout begins with it, so that what stays does not jump.
	order map[string]int
}

// layOut lays out a graph in layers: columns are the tiers in ascending order, and arrows lead to the right. before is the previous picture, nil if
// there is none. The result depends on the arguments alone.
func layOut(nodes []drawn, arrows []arrow, before *picture) *picture {
	p := &picture{X: make([]int, len(nodes)), Y: make([]int, len(nodes)), Paths: make([]string, len(arrows)), Back: make([]bool, len(arrows)), order: map[string]int{}}
	for i := range nodes {
		p.Columns = append(p.Columns, nodes[i].Tier)
	}
	slices.Sort(p.Columns)
	p.Columns = slices.Compact(p.Columns)
	p.take(arrange(nodes, arrows, p.Columns, before), nodes, arrows)
	return p
}

// arrange finds the places in the columns. It begins with those of the previous picture, and new nodes behind them.
func arrange(nodes []drawn, arrows []arrow, columns []int, before *picture) *layered.Layout {
	boxes, edges := make([]layered.Node, len(nodes)), make([]layered.Edge, len(arrows))
	for i := range nodes {
		column, _ := slices.BinarySearch(columns, nodes[i].Tier)
		boxes[i] = layered.Node{Layer: column, Size: boxHeight, Rank: math.MaxInt32}
		if before == nil {
			continue
		}
		if at, known := before.order[nodes[i].ID]; known {
			boxes[i].Rank = at
		}
	}
	for k, a := range arrows {
		edges[k] = layered.Edge{From: a.From, To: a.To}
	}
	return layered.Arrange(boxes, edges, gapY)
}

// take makes a picture of a layout.
func (p *picture) take(l *layered.Layout, nodes []drawn, arrows []arrow) {
	for _, layer := range l.Layers {
		for at, i := range layer {
			if n := l.Boxes[i].Node; n >= 0 {
				p.order[nodes[n].ID] = at
			}
		}
	}
	x := func(b *layered.Box) int { return margin + b.Layer*(boxWidth+gapX) }
	y := func(b *layered.Box) int { return margin + int(math.Round(b.At)) }
	for i := range nodes {
		p.X[i], p.Y[i] = x(&l.Boxes[i]), y(&l.Boxes[i])-boxHeight/2
	}
	p.Width = 2*margin + max(1, len(p.Columns))*(boxWidth+gapX) - gapX
	p.Height = 2*margin + int(math.Ceil(l.Size()))
	for k, a := range arrows {
		if p.Back[k] = l.Paths[k].Back; p.Back[k] {
			p.Paths[k] = p.loop(a)
			p.Height = max(p.Height, max(p.Y[a.From], p.Y[a.To])+boxHeight+34+margin)
			p.Width = max(p.Width, p.X[a.From]+boxWidth+loopOut+2)
			continue
		}
		var b strings.Builder
		boxes := l.Paths[k].Boxes
		from := &l.Boxes[boxes[0]]
		fmt.Fprintf(&b, "M%d %d", x(from)+boxWidth, y(from))
		for _, i := range boxes[1:] {
			to := &l.Boxes[i]
			left, right := x(from)+boxWidth, x(to)
			if to.Node >= 0 {
				right -= 5 // the arrowhead
			}
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", left+gapX/2, y(from), right-gapX/2, y(to), right, y(to))
			if to.Node < 0 {
				fmt.Fprintf(&b, "H%d", right+boxWidth)
			}
			from = to
		}
		p.Paths[k] = b.String()
	}
}

// loopOut is how far an arrow that leads backwards extends beyond its nodes at most.
const loopOut = 32

// loop is the path of an arrow that leads backwards: below both nodes.
func (p *picture) loop(a arrow) string {
	x1, y1 := p.X[a.From]+boxWidth, p.Y[a.From]+boxHeight/2
	x2, y2 := p.X[a.To]-5, p.Y[a.To]+boxHeight/2
	low := max(p.Y[a.From], p.Y[a.To]) + boxHeight + 10
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %dL%d %dC%d %d %d %d %d %d", x1, y1, x1+loopOut, y1, x1+loopOut, low, x1, low, x2, low, x2-loopOut, low, x2-loopOut, y2, x2, y2)
}
