package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A snapshot does not change, and its watch fires when the space has settled again or is closed, whatever the
// cause; before that, it does not fire.
func TestInspect_TheWatchFiresWithTheNextSettle(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	before := h.core.Inspect()
	h.observe("b")
	if closed(before.Changed()) {
		t.Error("the watch fired before the pass was over")
	}
	h.run()
	if !closed(before.Changed()) {
		t.Error("the watch did not fire for a new node")
	}
	if got := len(before.Nodes()); got != 4 {
		t.Errorf("the snapshot has %d nodes now, it had 4", got)
	}
	now := h.core.Inspect()
	if got := len(now.Nodes()); got != 5 {
		t.Errorf("the new one has %d nodes, want 5", got)
	}
	if closed(now.Changed()) || closed(h.core.Inspect().Changed()) {
		t.Error("the watch fired for a snapshot")
	}
	w.send(home, "set", "e1", map[string]any{"base": 1})
	h.run()
	if !closed(now.Changed()) {
		t.Error("the watch did not fire for a value")
	}
	last := h.core.Inspect()
	h.core.Close()
	if !closed(last.Changed()) {
		t.Error("the watch did not fire when the space was closed")
	}
}

// Tables that are not read are dropped, and the watch of the last snapshot has fired before that: a reader
// that comes back gets new tables. A reader that keeps reading keeps them.
func TestInspect_TablesAreKeptWhileTheyAreRead(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	if h.core.publisher.tables != nil {
		t.Error("a space has tables before anything reads them")
	}
	settle := func(n int) {
		for range n {
			h.core.Settle(h.now)
		}
	}
	last := h.core.Inspect()
	tables := h.core.publisher.tables
	settle(keptFor)
	h.core.Inspect()
	settle(keptFor)
	if h.core.publisher.tables != tables {
		t.Error("the tables were dropped while they were read")
	}
	settle(1)
	if h.core.publisher.tables != nil {
		t.Error("the tables were kept although nothing reads them")
	}
	if !closed(last.Changed()) {
		t.Error("the watch did not fire")
	}
	if got := len(last.Nodes()); got != 4 {
		t.Errorf("the snapshot of dropped tables has %d nodes, want 4", got)
	}
	checkTables(t, h.core)
}

func TestNodesReportTheirState(t *testing.T) {
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
		t.Errorf("a document that never existed is %s", v)
	}
}

// An effect of the program observes as long as the space is loaded.
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
