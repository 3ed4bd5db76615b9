package workflow

import (
	"cmp"
	"slices"
)

// box is a node of a function in a layout, or a bend of an edge that passes a layer (node is -1). x is its middle.
type box struct {
	node  int
	layer int
	width float64
	x     float64
	up    []int // the boxes of the layer above that are connected with it
	down  []int
}

// path is an edge in a layout: from a node over the bends of the layers between, to a node.
type path struct {
	from, edge int // the node, and the number of its edge
	boxes      []int
	back       bool // it leads up, to the head of a loop
}

// layout has the nodes of a function in layers: each below all nodes that lead to it, except by the edges back to the
// heads of loops.
type layout struct {
	boxes  []box
	layers [][]int // the boxes of a layer, from left to right
	paths  []path
}

// gap is the space between two boxes of a layer.
const gap = 24

// sweeps is how often the order and the places of boxes are improved.
const sweeps = 8

// arrange returns the layout of a function whose nodes have widths. It depends on the function only.
func arrange(f *Func, width func(node int) float64) *layout {
	l := &layout{}
	for n := range f.Nodes {
		l.boxes = append(l.boxes, box{node: n, width: width(n)})
	}
	back := l.assignLayers(f)
	for n := range f.Nodes {
		for i, e := range f.Nodes[n].Edges {
			l.connect(path{from: n, edge: i, back: back[[2]int{n, i}]}, e.To)
		}
	}
	for i := range l.boxes {
		for len(l.layers) <= l.boxes[i].layer {
			l.layers = append(l.layers, nil)
		}
		l.layers[l.boxes[i].layer] = append(l.layers[l.boxes[i].layer], i)
	}
	for range sweeps {
		l.order()
	}
	l.place()
	return l
}

// assignLayers gives each node a layer, and returns the edges that lead up: they close a cycle.
func (l *layout) assignLayers(f *Func) (back map[[2]int]bool) {
	back = map[[2]int]bool{}
	state := make([]int, len(f.Nodes)) // 1: being visited, 2: done
	var order []int
	var next []int // of the nodes being visited: their edge
	var stack []int
	for start := range f.Nodes {
		if state[start] != 0 {
			continue
		}
		stack, next, state[start] = append(stack, start), append(next, 0), 1
		for len(stack) > 0 {
			n, i := stack[len(stack)-1], next[len(next)-1]
			if i == len(f.Nodes[n].Edges) {
				state[n], order = 2, append(order, n)
				stack, next = stack[:len(stack)-1], next[:len(next)-1]
				continue
			}
			next[len(next)-1]++
			switch to := f.Nodes[n].Edges[i].To; state[to] {
			case 0:
				stack, next, state[to] = append(stack, to), append(next, 0), 1
			case 1:
				back[[2]int{n, i}] = true
			}
		}
	}
	slices.Reverse(order) // now each node is before those that it leads to
	for _, n := range order {
		for i, e := range f.Nodes[n].Edges {
			if !back[[2]int{n, i}] {
				l.boxes[e.To].layer = max(l.boxes[e.To].layer, l.boxes[n].layer+1)
			}
		}
	}
	return back
}

// connect adds an edge, with a bend in each layer that it passes.
func (l *layout) connect(p path, to int) {
	p.boxes = []int{p.from}
	if !p.back {
		for layer := l.boxes[p.from].layer + 1; layer < l.boxes[to].layer; layer++ {
			l.boxes = append(l.boxes, box{node: -1, layer: layer})
			p.boxes = append(p.boxes, len(l.boxes)-1)
		}
	}
	p.boxes = append(p.boxes, to)
	for i := 1; i < len(p.boxes) && !p.back; i++ {
		a, b := p.boxes[i-1], p.boxes[i]
		l.boxes[a].down, l.boxes[b].up = append(l.boxes[a].down, b), append(l.boxes[b].up, a)
	}
	l.paths = append(l.paths, p)
}

// order sorts the boxes of each layer by where those are that they are connected with, downwards and then upwards.
func (l *layout) order() {
	rank := make([]float64, len(l.boxes))
	for _, layer := range l.layers {
		for i, b := range layer {
			rank[b] = float64(i)
		}
	}
	sort := func(layer []int, near func(b *box) []int) {
		want := map[int]float64{}
		for _, b := range layer {
			if want[b] = rank[b]; len(near(&l.boxes[b])) > 0 {
				want[b] = mean(near(&l.boxes[b]), func(o int) float64 { return rank[o] })
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
		for i, b := range layer {
			rank[b] = float64(i)
		}
	}
	for _, layer := range l.layers {
		sort(layer, func(b *box) []int { return b.up })
	}
	for _, layer := range slices.Backward(l.layers) {
		sort(layer, func(b *box) []int { return b.down })
	}
}

func mean(list []int, of func(i int) float64) float64 {
	total := 0.0
	for _, i := range list {
		total += of(i)
	}
	return total / float64(len(list))
}

// place moves the boxes of each layer to where those are that they are connected with, without changing their order.
func (l *layout) place() {
	for _, layer := range l.layers {
		x := 0.0
		for _, b := range layer {
			l.boxes[b].x = x + l.boxes[b].width/2
			x += l.boxes[b].width + gap
		}
	}
	at := func(i int) float64 { return l.boxes[i].x }
	move := func(layer []int, near func(b *box) []int) {
		want := make([]float64, len(layer))
		for i, b := range layer {
			if want[i] = l.boxes[b].x; len(near(&l.boxes[b])) > 0 {
				want[i] = mean(near(&l.boxes[b]), at)
			}
		}
		l.spread(layer, want)
	}
	for i := range 2 * sweeps {
		if i%2 == 0 {
			for _, layer := range l.layers {
				move(layer, func(b *box) []int { return b.up })
			}
		} else {
			for _, layer := range slices.Backward(l.layers) {
				move(layer, func(b *box) []int { return b.down })
			}
		}
	}
	left := 0.0
	for i := range l.boxes {
		left = min(left, l.boxes[i].x-l.boxes[i].width/2)
	}
	for i := range l.boxes {
		l.boxes[i].x -= left
	}
}

// spread places the boxes of a layer next to the wanted places, as near in all as their widths permit.
func (l *layout) spread(layer []int, want []float64) {
	// Boxes that touch form a group, whose members have fixed distances; it lies at the mean of what they want.
	type group struct {
		first, n int
		sum      float64 // of the wanted places, less the distance from the first box
	}
	offset := make([]float64, len(layer)) // from the first box of the layer, if all touch
	for i := 1; i < len(layer); i++ {
		offset[i] = offset[i-1] + (l.boxes[layer[i-1]].width+l.boxes[layer[i]].width)/2 + gap
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
			l.boxes[layer[i]].x = at(g) + offset[i]
		}
	}
}
