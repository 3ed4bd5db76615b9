package layered_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/internal/layered"
)

const gap = 10

// graph draws a graph of at most 40 nodes. Edges may lead anywhere.
func graph(t *rapid.T) (nodes []layered.Node, edges []layered.Edge) {
	nodes = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layered.Node {
		return layered.Node{Layer: rapid.IntRange(0, 8).Draw(t, "layer"), Size: rapid.Float64Range(1, 200).Draw(t, "size")}
	}), 1, 40).Draw(t, "nodes")
	of := rapid.IntRange(0, len(nodes)-1)
	edges = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layered.Edge {
		return layered.Edge{From: of.Draw(t, "from"), To: of.Draw(t, "to")}
	}), 0, 80).Draw(t, "edges")
	return nodes, edges
}

// Boxes of a layer are in order and do not overlap, each node is in its layer, and a path leads from its node over one bend in each layer
// between to its other node, unless it leads back. The same graph has the same layout.
func TestArrange_LaysOutAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := graph(t)
		l := layered.Arrange(nodes, edges, gap)
		if again := layered.Arrange(nodes, edges, gap); !reflect.DeepEqual(l, again) {
			t.Error("the same graph has another layout")
		}
		for i, n := range nodes {
			if b := l.Boxes[i]; b.Node != i || b.Layer != n.Layer || b.Size != n.Size {
				t.Errorf("node %d is %+v, want %+v", i, b, n)
			}
		}
		checkLayers(t, l)
		checkPaths(t, l, nodes, edges)
	})
}

func checkLayers(t *rapid.T, l *layered.Layout) {
	seen := 0
	for layer, boxes := range l.Layers {
		for i, b := range boxes {
			seen++
			if l.Boxes[b].Layer != layer {
				t.Errorf("box %d of layer %d is in layer %d", b, l.Boxes[b].Layer, layer)
			}
			if l.Boxes[b].At-l.Boxes[b].Size/2 < -1e-6 || l.Boxes[b].At+l.Boxes[b].Size/2 > l.Size()+1e-6 {
				t.Errorf("box %d is at %v of %v", b, l.Boxes[b].At, l.Size())
			}
			if i == 0 {
				continue
			}
			last := l.Boxes[boxes[i-1]]
			if room := l.Boxes[b].At - l.Boxes[b].Size/2 - last.At - last.Size/2; room < gap-1e-6 {
				t.Errorf("%v between two boxes of layer %d, want %v", room, layer, gap)
			}
		}
	}
	if seen != len(l.Boxes) {
		t.Errorf("%d boxes in layers, of %d", seen, len(l.Boxes))
	}
}

func checkPaths(t *rapid.T, l *layered.Layout, nodes []layered.Node, edges []layered.Edge) {
	if len(l.Paths) != len(edges) {
		t.Fatalf("%d paths of %d edges", len(l.Paths), len(edges))
	}
	for i, p := range l.Paths {
		e := edges[i]
		first, last := l.Boxes[p.Boxes[0]], l.Boxes[p.Boxes[len(p.Boxes)-1]]
		if p.Edge != i || first.Node != e.From || last.Node != e.To || p.Back != (nodes[e.From].Layer >= nodes[e.To].Layer) {
			t.Errorf("edge %+v is the path %+v", e, p)
		}
		for k := 1; k < len(p.Boxes) && !p.Back; k++ {
			if a, b := l.Boxes[p.Boxes[k-1]], l.Boxes[p.Boxes[k]]; b.Layer != a.Layer+1 || k < len(p.Boxes)-1 && b.Node >= 0 {
				t.Errorf("path %+v goes from %+v to %+v", p, a, b)
			}
		}
	}
}

// Crossings that an order of the boxes can avoid are avoided.
func TestArrange_ReducesCrossings(t *testing.T) {
	const n = 6
	var nodes []layered.Node
	var edges []layered.Edge
	for i := range n {
		nodes = append(nodes, layered.Node{Layer: 0, Size: 10}, layered.Node{Layer: 1, Size: 10}, layered.Node{Layer: 2, Size: 10})
		other := n - 1 - i
		edges = append(edges, layered.Edge{From: 3 * i, To: 3*other + 1}, layered.Edge{From: 3*i + 1, To: 3*other + 2}, layered.Edge{From: 3 * i, To: 3*i + 2})
	}
	if l := layered.Arrange(nodes, edges, gap); l.Crossings() != 0 {
		t.Errorf("%d crossings of ways that need none", l.Crossings())
	}
}

// Crossings are counted as by comparing each pair of edges, and never more than in the order in which the nodes were given.
func TestCrossings_AgreeWithPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := graph(t)
		l := layered.Arrange(nodes, edges, gap)
		sorted := func(rank func(b int) int) (n int) {
			type line struct{ layer, from, to int }
			var lines []line
			for _, p := range l.Paths {
				for k := 1; k < len(p.Boxes) && !p.Back; k++ {
					lines = append(lines, line{l.Boxes[p.Boxes[k]].Layer, rank(p.Boxes[k-1]), rank(p.Boxes[k])})
				}
			}
			for i, a := range lines {
				for _, b := range lines[:i] {
					if a.layer == b.layer && (a.from-b.from)*(a.to-b.to) < 0 {
						n++
					}
				}
			}
			return n
		}
		now := sorted(func(b int) int { return slices.Index(l.Layers[l.Boxes[b].Layer], b) })
		given := sorted(func(b int) int { return b })
		if l.Crossings() != now || now > given {
			t.Errorf("%d crossings, %d by pairs, %d in the given order", l.Crossings(), now, given)
		}
	})
}

// A node more leaves the order of the others as it is, where nothing else requires another.
func TestArrange_ANodeMoreKeepsTheOrderOfTheOthers(t *testing.T) {
	nodes := []layered.Node{{Layer: 0, Size: 10}, {Layer: 0, Size: 10}, {Layer: 1, Size: 10}, {Layer: 1, Size: 10}, {Layer: 2, Size: 10}}
	edges := []layered.Edge{{From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 4}, {From: 3, To: 4}}
	before := layered.Arrange(nodes, edges, gap)
	after := layered.Arrange(append(slices.Clone(nodes), layered.Node{Layer: 1, Size: 10}), append(slices.Clone(edges), layered.Edge{From: 1, To: 5}), gap)
	for layer, boxes := range before.Layers {
		kept := slices.DeleteFunc(slices.Clone(after.Layers[layer]), func(b int) bool { return b == 5 })
		if !slices.Equal(kept, boxes) {
			t.Errorf("layer %d was %v and is %v", layer, boxes, after.Layers[layer])
		}
	}
}

func TestArrange_NothingIsALayout(t *testing.T) {
	if l := layered.Arrange(nil, nil, gap); l.Size() != 0 || len(l.Layers) != 0 {
		t.Errorf("%+v", l)
	}
}

// Nodes begin in the order of their ranks, and keep it where no crossing is saved by another one.
func TestArrange_BeginsWithTheRanks(t *testing.T) {
	t.Parallel()
	nodes := []layered.Node{{Size: 1, Rank: 2}, {Size: 1}, {Layer: 1, Size: 1}, {Size: 1, Rank: 1}}
	l := layered.Arrange(nodes, nil, 1)
	if !slices.Equal(l.Layers[0], []int{1, 3, 0}) || !slices.Equal(l.Layers[1], []int{2}) {
		t.Errorf("the layers are %v", l.Layers)
	}
}
