package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Boxes of a drawn graph, in pixels.
const (
	boxWidth, boxHeight = 184, 44
	gapX, gapY          = 64, 14
	margin              = 12
	lane                = 10 // the height of an edge that passes a column
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

// spot is a place in a column: a node, or an arrow that passes.
type spot struct {
	node       int // -1 for a passing arrow
	left, next []int
	rank       float64
	y          float64
}

// sketch is a layout under way.
type sketch struct {
	spots   []spot
	columns [][]int // the spots of each column, in order
	chains  [][]int // the spots that each arrow leads through
}

// layOut lays out a graph in layers: columns are the tiers in ascending order, and arrows lead to the right. Places in a column follow from the
// barycentre of the neighbours. before is the previous picture, nil if there is none. The result depends on the arguments alone.
func layOut(nodes []drawn, arrows []arrow, before *picture) *picture {
	p := &picture{X: make([]int, len(nodes)), Y: make([]int, len(nodes)), Paths: make([]string, len(arrows)), Back: make([]bool, len(arrows)), order: map[string]int{}}
	column := map[int]int{}
	for i := range nodes {
		p.Columns = append(p.Columns, nodes[i].Tier)
	}
	slices.Sort(p.Columns)
	p.Columns = slices.Compact(p.Columns)
	for i, tier := range p.Columns {
		column[tier] = i
	}
	s := newSketch(nodes, arrows, column, len(p.Columns), p.Back)
	s.start(nodes, before)
	s.sort()
	s.place()
	p.take(s, nodes, arrows, column)
	return p
}

// newSketch makes the spots: one for each node, and one for each column that an arrow passes.
func newSketch(nodes []drawn, arrows []arrow, column map[int]int, columns int, back []bool) *sketch {
	s := &sketch{spots: make([]spot, len(nodes)), columns: make([][]int, columns), chains: make([][]int, len(arrows))}
	for i := range nodes {
		s.spots[i].node = i
		at := column[nodes[i].Tier]
		s.columns[at] = append(s.columns[at], i)
	}
	for k, a := range arrows {
		from, to := column[nodes[a.From].Tier], column[nodes[a.To].Tier]
		if back[k] = from >= to; back[k] {
			continue
		}
		last := a.From
		s.chains[k] = []int{last}
		for at := from + 1; at <= to; at++ {
			next := a.To
			if at < to {
				next = len(s.spots)
				s.spots = append(s.spots, spot{node: -1})
				s.columns[at] = append(s.columns[at], next)
			}
			s.spots[last].next = append(s.spots[last].next, next)
			s.spots[next].left = append(s.spots[next].left, last)
			s.chains[k] = append(s.chains[k], next)
			last = next
		}
	}
	return s
}

// start orders the columns as they were before; new nodes come last, by name.
func (s *sketch) start(nodes []drawn, before *picture) {
	for _, col := range s.columns {
		slices.SortStableFunc(col, func(a, b int) int { return cmp.Compare(s.first(a, nodes, before), s.first(b, nodes, before)) })
	}
	s.rank()
}

func (s *sketch) first(i int, nodes []drawn, before *picture) int {
	if before != nil && s.spots[i].node >= 0 {
		if at, known := before.order[nodes[i].ID]; known {
			return at
		}
	}
	return math.MaxInt32
}

// rank numbers the spots of each column.
func (s *sketch) rank() {
	for _, col := range s.columns {
		for at, i := range col {
			s.spots[i].rank = float64(at)
		}
	}
}

// sweeps is how often the columns are sorted, there and back.
const sweeps = 6

// sort reduces crossings: each column is sorted by the mean place of its neighbours, from left to right and back; the best order is kept.
func (s *sketch) sort() {
	best, least := s.copy(), s.crossings()
	for round := range 2 * sweeps {
		if least == 0 {
			break
		}
		for k := range s.columns {
			at := k
			if round%2 == 1 {
				at = len(s.columns) - 1 - k
			}
			s.sortColumn(at, round%2 == 1)
		}
		if n := s.crossings(); n < least {
			best, least = s.copy(), n
		}
	}
	s.columns = best
	s.rank()
}

func (s *sketch) copy() [][]int {
	out := make([][]int, len(s.columns))
	for i := range s.columns {
		out[i] = slices.Clone(s.columns[i])
	}
	return out
}

func (s *sketch) sortColumn(at int, byNext bool) {
	mean := map[int]float64{}
	for _, i := range s.columns[at] {
		of := s.spots[i].left
		if byNext {
			of = s.spots[i].next
		}
		mean[i] = s.spots[i].rank
		if len(of) > 0 {
			sum := 0.0
			for _, k := range of {
				sum += s.spots[k].rank
			}
			mean[i] = sum / float64(len(of))
		}
	}
	slices.SortStableFunc(s.columns[at], func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
	for k, i := range s.columns[at] {
		s.spots[i].rank = float64(k)
	}
}

// crossings counts the pairs of arrows that cross between two columns.
func (s *sketch) crossings() (n int) {
	for _, col := range s.columns {
		var ends []float64
		for _, i := range col {
			next := make([]float64, 0, len(s.spots[i].next))
			for _, k := range s.spots[i].next {
				next = append(next, s.spots[k].rank)
			}
			slices.Sort(next)
			for _, to := range next { // those before it that end below it
				at, _ := slices.BinarySearch(ends, to+0.5)
				n += len(ends) - at
			}
			ends = append(ends, next...)
			slices.Sort(ends)
		}
	}
	return n
}

func (s *sketch) size(i int) float64 {
	if s.spots[i].node < 0 {
		return lane
	}
	return boxHeight + gapY
}

// place decides the heights: each spot as near as possible to the middle of its neighbours, without overlap.
func (s *sketch) place() {
	for _, col := range s.columns {
		y := 0.0
		for _, i := range col {
			s.spots[i].y = y + s.size(i)/2
			y += s.size(i)
		}
	}
	for round := range 8 {
		for k := range s.columns {
			at := k
			if round%2 == 1 {
				at = len(s.columns) - 1 - k
			}
			s.settle(s.columns[at])
		}
	}
	least := math.Inf(1)
	for i := range s.spots {
		least = math.Min(least, s.spots[i].y-s.size(i)/2)
	}
	for i := range s.spots {
		s.spots[i].y -= least
	}
}

// settle moves the spots of a column to where their neighbours want them. Those that would overlap form a block, which moves as one.
func (s *sketch) settle(col []int) {
	type block struct {
		from, to   int // in col
		sum, depth float64
	}
	want := func(i int) float64 {
		of := slices.Concat(s.spots[i].left, s.spots[i].next)
		if len(of) == 0 {
			return s.spots[i].y
		}
		sum := 0.0
		for _, k := range of {
			sum += s.spots[k].y
		}
		return sum / float64(len(of))
	}
	var blocks []block
	offset := func(b *block, k int) (d float64) { // of the centre of a spot from the top of its block
		for j := b.from; j < k; j++ {
			d += s.size(col[j])
		}
		return d + s.size(col[k])/2
	}
	for k, i := range col {
		b := block{k, k + 1, want(i) - s.size(i)/2, s.size(i)}
		for len(blocks) > 0 {
			last := &blocks[len(blocks)-1]
			if last.sum/float64(last.to-last.from)+last.depth <= b.sum/float64(b.to-b.from) {
				break
			}
			b.sum = last.sum + b.sum - last.depth*float64(b.to-b.from)
			b.from, b.depth = last.from, last.depth+b.depth
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for n := range blocks {
		b := &blocks[n]
		top := b.sum / float64(b.to-b.from)
		for k := b.from; k < b.to; k++ {
			s.spots[col[k]].y = top + offset(b, k)
		}
	}
}

// take makes a picture of the sketch.
func (p *picture) take(s *sketch, nodes []drawn, arrows []arrow, column map[int]int) {
	for _, col := range s.columns {
		for at, i := range col {
			if n := s.spots[i].node; n >= 0 {
				p.order[nodes[n].ID] = at
			}
		}
	}
	bottom := 0.0
	for i := range s.spots {
		bottom = math.Max(bottom, s.spots[i].y+s.size(i)/2)
	}
	x := func(tier int) int { return margin + column[tier]*(boxWidth+gapX) }
	for i := range nodes {
		p.X[i], p.Y[i] = x(nodes[i].Tier), margin+int(math.Round(s.spots[i].y))-boxHeight/2
	}
	p.Width = 2*margin + max(1, len(p.Columns))*(boxWidth+gapX) - gapX
	p.Height = 2*margin + int(bottom)
	for k, a := range arrows {
		if p.Back[k] {
			p.Paths[k] = p.loop(a)
			p.Height = max(p.Height, max(p.Y[a.From], p.Y[a.To])+boxHeight+34+margin)
			continue
		}
		var b strings.Builder
		at := p.X[a.From] + boxWidth
		y := p.Y[a.From] + boxHeight/2
		fmt.Fprintf(&b, "M%d %d", at, y)
		for _, i := range s.chains[k][1:] {
			to, toY := at+gapX, margin+int(math.Round(s.spots[i].y))
			if s.spots[i].node >= 0 {
				toY = p.Y[s.spots[i].node] + boxHeight/2
				to -= 5 // the arrowhead
			}
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", at+gapX/2, y, to-gapX/2, toY, to, toY)
			at, y = to, toY
			if s.spots[i].node < 0 {
				at += boxWidth
				fmt.Fprintf(&b, "H%d", at)
			}
		}
		p.Paths[k] = b.String()
	}
}

// loop is the path of an arrow that leads backwards: below both nodes.
func (p *picture) loop(a arrow) string {
	x1, y1 := p.X[a.From]+boxWidth, p.Y[a.From]+boxHeight/2
	x2, y2 := p.X[a.To]-5, p.Y[a.To]+boxHeight/2
	low := max(p.Y[a.From], p.Y[a.To]) + boxHeight + 10
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %dL%d %dC%d %d %d %d %d %d", x1, y1, x1+32, y1, x1+32, low, x1, low, x2, low, x2-32, low, x2-32, y2, x2, y2)
}
