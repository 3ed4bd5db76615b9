package workflow

import (
	"slices"

	"github.com/settlehq/settle/internal/layered"
)

// layout has the nodes of a function in layers: each below all nodes that lead to it, except by the edges back to the
// heads of loops.
type layout struct {
	*layered.Layout
	edges [][2]int // by path: the node, and the number of its edge
}

// gap is the space between two boxes of a layer.
const gap = 24

// arrange returns the layout of a function whose nodes have widths. It depends on the function only.
func arrange(f *Func, width func(node int) float64) *layout {
	layers, back := assignLayers(f)
	l := &layout{}
	var nodes []layered.Node
	var edges []layered.Edge
	for n := range f.Nodes {
		nodes = append(nodes, layered.Node{Layer: layers[n], Size: width(n)})
		for i, e := range f.Nodes[n].Edges {
			edges = append(edges, layered.Edge{From: n, To: e.To, Back: back[[2]int{n, i}]})
			l.edges = append(l.edges, [2]int{n, i})
		}
	}
	l.Layout = layered.Arrange(nodes, edges, gap)
	return l
}

// assignLayers gives each node a layer, and returns the edges that lead up: they close a cycle.
func assignLayers(f *Func) (layers []int, back map[[2]int]bool) {
	layers = make([]int, len(f.Nodes))
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
				layers[e.To] = max(layers[e.To], layers[n]+1)
			}
		}
	}
	return layers, back
}
