package space

import (
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestMarksAreResetBeforeTheyOverflow(t *testing.T) {
	w := newWorld(t)
	p := newProgram(t).sum("total", "a", "b").sum("twice", "total", "total").compute("either", func(tx *Tx) any {
		if num(tx.Get("a")) > 1 {
			return tx.Get("twice")
		}
		return tx.Get("b")
	})
	h := w.owner("w1", p.Program)
	h.observe("either")
	h.observe("total")
	h.run()
	h.core.Unobserve("total")
	h.hear(put("b", 1))
	h.hear(put("a", 1))
	dormant := h.core.graph.byID["total"]
	causes := causeNames(dormant)
	if !slices.Equal(causes, []string{"b", "a"}) {
		t.Fatalf("an unneeded node has the causes %v", causes)
	}

	g := h.core.graph
	g.stamp, h.core.runner.seek, h.core.runner.begun, g.shots = lastMark, lastMark, lastMark, 2*lastMark
	h.settle()
	if g.stamp >= lastMark || h.core.runner.seek >= lastMark || h.core.runner.begun >= lastMark || g.shots >= lastMark {
		t.Errorf("the marks go on: %d, %d, %d, %d", g.stamp, h.core.runner.seek, h.core.runner.begun, g.shots)
	}
	if got := causeNames(dormant); !slices.Equal(got, causes) {
		t.Errorf("the causes are %v then", got)
	}
	checkGraph(t, g)
	h.hear(put("a", 2)) // a new read, which pulls two nodes
	wantValue(t, h, "either", "6")
	h.hear(model.Write{Doc: "a", Delete: true})
	wantValue(t, h, "either", "1")
	checkGraph(t, g)
}
