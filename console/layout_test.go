package console

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// random returns a graph of tiers.
func random(r *rand.Rand, n int) (nodes []drawn, arrows []arrow) {
	for i := range n {
		nodes = append(nodes, drawn{fmt.Sprintf("n%d", i), r.IntN(7)})
	}
	for range 2 * n {
		arrows = append(arrows, arrow{r.IntN(n), r.IntN(n)})
	}
	return nodes, arrows
}

// No two boxes of a column overlap, arrows lead to the right unless they are marked, and the same graph gives the same picture.
func TestLayOut_BoxesDoNotOverlapAndThePictureIsStable(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		nodes, arrows := random(r, 2+r.IntN(60))
		p := layOut(nodes, arrows, nil)
		for i := range nodes {
			for k := range i {
				if p.X[i] == p.X[k] && p.Y[i] < p.Y[k]+boxHeight && p.Y[k] < p.Y[i]+boxHeight {
					t.Fatalf("seed %d: %v and %v overlap at %d and %d", seed, nodes[i], nodes[k], p.Y[i], p.Y[k])
				}
			}
			if p.X[i] < 0 || p.Y[i] < 0 || p.X[i]+boxWidth > p.Width || p.Y[i]+boxHeight > p.Height {
				t.Fatalf("seed %d: %v is outside of %d by %d: %d, %d", seed, nodes[i], p.Width, p.Height, p.X[i], p.Y[i])
			}
		}
		for k, a := range arrows {
			if p.Back[k] && p.X[a.From]+boxWidth+loopOut > p.Width {
				t.Fatalf("seed %d: arrow %v leads out of the picture, which is %d wide: %s", seed, a, p.Width, p.Paths[k])
			}
			if p.Back[k] == (nodes[a.From].Tier < nodes[a.To].Tier) || p.Paths[k] == "" {
				t.Fatalf("seed %d: arrow %v is marked %v, path %q", seed, a, p.Back[k], p.Paths[k])
			}
		}
		again := layOut(nodes, arrows, nil)
		if !slices.Equal(p.X, again.X) || !slices.Equal(p.Y, again.Y) || !slices.Equal(p.Paths, again.Paths) {
			t.Fatalf("seed %d: the same graph is drawn in two ways", seed)
		}
	}
}

// A tree can be drawn without crossings, and is.
func TestLayOut_ATreeHasNoCrossings(t *testing.T) {
	var nodes []drawn
	var arrows []arrow
	for i := range 31 { // the name hides the order
		tier := 0
		for n := i + 1; n > 1; n /= 2 {
			tier++
		}
		nodes = append(nodes, drawn{fmt.Sprintf("n%02d", (i*7)%31), tier})
		if i > 0 {
			arrows = append(arrows, arrow{(i - 1) / 2, i})
		}
	}
	if n := arrange(nodes, arrows, []int{0, 1, 2, 3, 4}, nil).Crossings(); n != 0 {
		t.Errorf("%d crossings", n)
	}
}

// A node that is added moves no other node out of its order.
func TestLayOut_AnAddedNodeKeepsTheOrderOfTheOthers(t *testing.T) {
	nodes := []drawn{{"a", 0}, {"b", 0}, {"c", 1}, {"d", 1}}
	arrows := []arrow{{0, 2}, {1, 3}}
	before := layOut(nodes, arrows, nil)
	after := layOut(append(nodes, drawn{"0", 1}), arrows, before)
	if before.Y[2] > before.Y[3] != (after.Y[2] > after.Y[3]) || before.Y[0] > before.Y[1] != (after.Y[0] > after.Y[1]) {
		t.Errorf("the order has changed: %v, %v", before.Y, after.Y)
	}
	// Nor does the order in which nodes are listed: those that were there stay, and the new one comes last.
	before = layOut([]drawn{{"a", 0}, {"b", 0}, {"c", 0}}, nil, nil)
	after = layOut([]drawn{{"0", 0}, {"c", 0}, {"b", 0}, {"a", 0}}, nil, before)
	if y := after.Y; !(y[3] < y[2] && y[2] < y[1] && y[1] < y[0]) {
		t.Errorf("a, b, c and the new node are at %d, %d, %d and %d", y[3], y[2], y[1], y[0])
	}
}
