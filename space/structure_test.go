package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// The structure is what the graph is, as of the end of the last pass.
func TestTheStructureMatchesTheGraph(t *testing.T) {
	p := newProgram(t).set()
	for i := range 150 { // more than two pages
		p = p.sum(fmt.Sprint("out", i), fmt.Sprint("out", i-1))
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out80")
	h.observe("out149")
	h.run()
	h.core.Unobserve("out80")
	h.run()
	compareStructure(t, h)
	if got := h.core.Structure().Handlers(); !slices.Equal(got, []string{"set"}) {
		t.Errorf("handlers %v", got)
	}
}

func compareStructure(t *testing.T, h *host) {
	t.Helper()
	nodes, states := h.core.Structure().Nodes(), h.core.Nodes()
	if len(nodes) != len(states) {
		t.Fatalf("%d nodes in the structure, %d in the graph", len(nodes), len(states))
	}
	for i, n := range nodes {
		st := states[i]
		if n.ID != st.ID || n.Kind != st.Kind || n.Output != st.Output || !slices.Equal(n.Reads, st.Reads) {
			t.Errorf("the structure has %+v, the graph %+v", n, st)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A snapshot stays as it was, and its watch fires when the shape changes: not when
// values do.
func TestWatchFiresWhenTheShapeChanges(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	before := h.core.Structure()
	watch := before.Watch()
	h.observe("b")
	if closed(watch) {
		t.Error("it fired before the pass was over")
	}
	h.run()
	if !closed(watch) {
		t.Error("it did not fire for a new node")
	}
	if got := len(before.Nodes()); got != 4 {
		t.Errorf("the snapshot has %d nodes now, it had 4", got)
	}
	compareStructure(t, h)

	watch = h.core.Structure().Watch()
	w.send(home, "set", "e1", map[string]any{"base": 1})
	h.run()
	if closed(watch) {
		t.Error("it fired for a value")
	}
	h.core.Unobserve("b")
	h.run()
	if !closed(watch) {
		t.Error("it did not fire for a node that went")
	}
}

func TestNodesTellWhereTheyStand(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("a")
	h.run()
	h.core.Unobserve("a")
	w.send(home, "set", "e1", map[string]any{"base": 1})
	h.run()
	var got []string
	for _, n := range h.core.Nodes() {
		got = append(got, fmt.Sprintf("%s %s %s live=%v runs=%d reads=%v causes=%v", n.ID, n.Kind, n.Status, n.Live, n.Runs, n.Reads, n.Causes))
	}
	want := []string{
		"c computation never-ran live=false runs=0 reads=[] causes=[]",
		"b computation never-ran live=false runs=0 reads=[] causes=[]",
		"a computation invalid live=false runs=1 reads=[base] causes=[base]",
		"spare computation never-ran live=false runs=0 reads=[] causes=[]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes\n%q\nwant\n%q", got, want)
	}
	if v := h.core.Value("never"); !v.IsAbsent() {
		t.Errorf("a document that never was is %s", v)
	}
}

// An effect of the program observes for as long as the space is here.
func TestAnEffectIsDemand(t *testing.T) {
	var seen []string
	p := chain(t).add(NodeSpec{ID: "view", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		seen = append(seen, tx.Get("a").String())
		return model.Value{}, nil
	}})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.run()
	w.send(home, "set", "e1", map[string]any{"base": 3})
	h.run()
	if want := []string{"0", "3"}; !slices.Equal(seen, want) {
		t.Errorf("the effect saw %v, want %v", seen, want)
	}
	if h.runs["b"] > 0 {
		t.Error("what it does not observe ran")
	}
}
