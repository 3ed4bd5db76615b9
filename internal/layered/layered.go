// Package layered places the nodes of a graph in layers, so that edges lead forward and few of them cross. The caller decides what a layer is: a
// row of a drawing from top to bottom, or a column of one from left to right. A layout follows from its arguments alone, so that the same graph
// has the same drawing, and a small change of a graph usually a small one of its drawing.
package layered

import (
	"cmp"
	"slices"
)

// Node is a node of a graph.
type Node struct {
	// Layer is the layer of the node, from 0; layers may be empty.
	Layer int
	// Size is the extent of the node along its layer.
	Size float64
	// Rank is where the search for an order begins: nodes of a smaller one come first in their layer, and those of the same one in the order in which they
	// are given. With the ranks of a previous layout, what stays does not jump.
	Rank int
}

// Edge is an edge between two nodes, by their numbers.
type Edge struct {
	From, To int
	// Back is set for an edge that does not lead to a later layer. Such an edge has no bends, and does not influence the layout; Arrange sets it
	// for edges for which it has to be.
	Back bool
}

// Box is a node of a layout, or a bend of an edge that passes a layer.
type Box struct {
	Node  int // -1 for a bend
	Layer int
	Size  float64
	// At is the place of the middle along the layer. The first box of a layout begins at 0.
	At float64

	up, down []int // the boxes of the layers before and after that are connected with it
}

// Path is an edge of a layout: its boxes are a node, the bends in the layers between, and a node.
type Path struct {
	Edge  int
	Boxes []int
	Back  bool
}

// Layout is a graph in layers.
type Layout struct {
	Boxes  []Box   // first the nodes, in their order, then the bends
	Layers [][]int // the boxes of each layer, in order
	Paths  []Path  // the edges, in their order
}

const (
	// sweeps is how often the order and the places of boxes are improved.
	sweeps = 8
	// maxBends bounds the bends of a layout. Edges beyond it are straight lines, which may cross boxes.
	maxBends = 20_000
)

// Arrange returns the layout of a graph, with a gap between two boxes of a layer.
func Arrange(nodes []Node, edges []Edge, gap float64) *Layout {
	l := &Layout{}
	for i, n := range nodes {
		l.Boxes = append(l.Boxes, Box{Node: i, Layer: n.Layer, Size: n.Size})
	}
	for i, e := range edges {
		l.connect(i, e)
	}
	for i := range l.Boxes {
		for len(l.Layers) <= l.Boxes[i].Layer {
			l.Layers = append(l.Layers, nil)
		}
		l.Layers[l.Boxes[i].Layer] = append(l.Layers[l.Boxes[i].Layer], i)
	}
	for _, layer := range l.Layers { // bends are behind the nodes
		slices.SortStableFunc(layer[:ofNodes(layer, len(nodes))], func(a, b int) int { return cmp.Compare(nodes[a].Rank, nodes[b].Rank) })
	}
	l.order()
	l.place(gap)
	return l
}

// ofNodes returns how many boxes at the beginning of a layer are nodes.
func ofNodes(layer []int, nodes int) int {
	at, _ := slices.BinarySearch(layer, nodes)
	return at
}

// connect adds an edge, with a bend in each layer that it passes.
func (l *Layout) connect(number int, e Edge) {
	p := Path{Edge: number, Boxes: []int{e.From}, Back: e.Back || l.Boxes[e.From].Layer >= l.Boxes[e.To].Layer}
	if first, last := l.Boxes[e.From].Layer+1, l.Boxes[e.To].Layer; !p.Back && len(l.Boxes)+last-first < maxBends {
		for layer := first; layer < last; layer++ {
			l.Boxes = append(l.Boxes, Box{Node: -1, Layer: layer})
			p.Boxes = append(p.Boxes, len(l.Boxes)-1)
		}
	}
	p.Boxes = append(p.Boxes, e.To)
	for i := 1; i < len(p.Boxes) && !p.Back; i++ {
		if a, b := p.Boxes[i-1], p.Boxes[i]; l.Boxes[a].Layer+1 == l.Boxes[b].Layer {
			l.Boxes[a].down, l.Boxes[b].up = append(l.Boxes[a].down, b), append(l.Boxes[b].up, a)
		}
	}
	l.Paths = append(l.Paths, p)
}

// order sorts the boxes of each layer by where those are that they are connected with, forward and then backward, and keeps the order with the
// fewest crossings.
func (l *Layout) order() {
	best, fewest := l.layersNow(), l.Crossings()
	for range sweeps {
		if fewest == 0 {
			return
		}
		l.sweep()
		if n := l.Crossings(); n < fewest {
			best, fewest = l.layersNow(), n
		}
	}
	l.Layers = best
}

func (l *Layout) layersNow() [][]int {
	out := make([][]int, len(l.Layers))
	for i := range l.Layers {
		out[i] = slices.Clone(l.Layers[i])
	}
	return out
}

func (l *Layout) sweep() {
	rank := l.ranks()
	sort := func(layer []int, near func(b *Box) []int) {
		want := map[int]float64{}
		for _, b := range layer {
			if want[b] = rank[b]; len(near(&l.Boxes[b])) > 0 {
				want[b] = mean(near(&l.Boxes[b]), func(o int) float64 { return rank[o] })
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
		for i, b := range layer {
			rank[b] = float64(i)
		}
	}
	for _, layer := range l.Layers {
		sort(layer, func(b *Box) []int { return b.up })
	}
	for _, layer := range slices.Backward(l.Layers) {
		sort(layer, func(b *Box) []int { return b.down })
	}
}

// ranks returns the place of each box in the order of its layer.
func (l *Layout) ranks() []float64 {
	rank := make([]float64, len(l.Boxes))
	for _, layer := range l.Layers {
		for i, b := range layer {
			rank[b] = float64(i)
		}
	}
	return rank
}

// Crossings returns how many times two edges cross between two layers, edges back aside.
func (l *Layout) Crossings() (n int) {
	rank := l.ranks()
	for _, layer := range l.Layers {
		var ends []int // of the edges, in the order of where they begin
		for _, b := range layer {
			down := slices.Clone(l.Boxes[b].down)
			slices.SortFunc(down, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
			for _, to := range down {
				ends = append(ends, int(rank[to]))
			}
		}
		n += inversions(ends)
	}
	return n
}

// inversions counts the pairs that are out of order, by merging; it sorts the list.
func inversions(list []int) (n int) {
	if len(list) < 2 {
		return 0
	}
	a, b := slices.Clone(list[:len(list)/2]), slices.Clone(list[len(list)/2:])
	n = inversions(a) + inversions(b)
	for k := range list {
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			list[k], a = a[0], a[1:]
		} else {
			list[k], b = b[0], b[1:]
			n += len(a)
		}
	}
	return n
}

func mean(list []int, of func(i int) float64) float64 {
	total := 0.0
	for _, i := range list {
		total += of(i)
	}
	return total / float64(len(list))
}

// place moves the boxes of each layer to where those are that they are connected with, without changing their order.
func (l *Layout) place(gap float64) {
	for _, layer := range l.Layers {
		x := 0.0
		for _, b := range layer {
			l.Boxes[b].At = x + l.Boxes[b].Size/2
			x += l.Boxes[b].Size + gap
		}
	}
	at := func(i int) float64 { return l.Boxes[i].At }
	move := func(layer []int, near func(b *Box) []int) {
		want := make([]float64, len(layer))
		for i, b := range layer {
			if want[i] = l.Boxes[b].At; len(near(&l.Boxes[b])) > 0 {
				want[i] = mean(near(&l.Boxes[b]), at)
			}
		}
		l.spread(layer, want, gap)
	}
	for i := range 2 * sweeps {
		if i%2 == 0 {
			for _, layer := range l.Layers {
				move(layer, func(b *Box) []int { return b.up })
			}
		} else {
			for _, layer := range slices.Backward(l.Layers) {
				move(layer, func(b *Box) []int { return b.down })
			}
		}
	}
	l.shift()
}

// shift moves the layout so that it begins at 0.
func (l *Layout) shift() {
	first := 0.0
	for i := range l.Boxes {
		if edge := l.Boxes[i].At - l.Boxes[i].Size/2; i == 0 || edge < first {
			first = edge
		}
	}
	for i := range l.Boxes {
		l.Boxes[i].At -= first
	}
}

// Size returns the extent of the layout along the layers.
func (l *Layout) Size() (size float64) {
	for i := range l.Boxes {
		size = max(size, l.Boxes[i].At+l.Boxes[i].Size/2)
	}
	return size
}

// spread places the boxes of a layer next to the wanted places, as near in all as their sizes permit.
func (l *Layout) spread(layer []int, want []float64, gap float64) {
	// Boxes that touch form a group, whose members have fixed distances; it lies at the mean of what they want.
	type group struct {
		first, n int
		sum      float64 // of the wanted places, less the distance from the first box
	}
	offset := make([]float64, len(layer)) // from the first box of the layer, if all touch
	for i := 1; i < len(layer); i++ {
		offset[i] = offset[i-1] + (l.Boxes[layer[i-1]].Size+l.Boxes[layer[i]].Size)/2 + gap
	}
	var groups []group
	at := func(g group) float64 { return g.sum / float64(g.n) }
	for i := range layer {
		groups = append(groups, group{i, 1, want[i] - offset[i]})
		for n := len(groups); n > 1 && at(groups[n-2]) > at(groups[n-1]); n-- {
			groups[n-2].n += groups[n-1].n
			groups[n-2].sum += groups[n-1].sum
			groups = groups[:n-1]
		}
	}
	for _, g := range groups {
		for i := g.first; i < g.first+g.n; i++ {
			l.Boxes[layer[i]].At = at(g) + offset[i]
		}
	}
}
