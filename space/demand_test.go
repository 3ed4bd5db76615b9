package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// chain is base -> a -> b -> c, and spare, which is never observed.
func chain(t *testing.T) program {
	return newProgram(t).set().
		sum("c", "b", "b").sum("b", "a", "a").sum("a", "base").
		sum("spare", "base")
}

func TestI2_UnobservedNodesNeverRun(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	for i := range 5 {
		w.send(home, "set", fmt.Sprint("e", i), map[string]any{"base": i})
		h.run()
	}
	if len(h.runs) > 0 {
		t.Errorf("runs %v without an observer", h.runs)
	}
	wantValue(t, h, "a", "absent")
	if !h.core.Idle() {
		t.Error("not idle, although all invalid nodes are dormant")
	}
}

func TestObservationRunsOnlyWhatTheDocumentNeeds(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("b")
	w.send(home, "set", "e1", map[string]any{"base": 3})
	h.run()
	wantValue(t, h, "b", "6")
	if h.runs["c"]+h.runs["spare"] > 0 || h.runs["a"] == 0 {
		t.Errorf("runs %v", h.runs)
	}
	h.told()
	w.send(home, "set", "e2", map[string]any{"base": 4})
	h.run()
	wantStory(t, h.told(), "handled e2", "run a, changed", "run b, changed", "run observe:b")
}

func TestI3_AnEqualValueRunsNothing(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("b")
	w.send(home, "set", "e1", map[string]any{"base": 3})
	h.run()
	h.told()
	w.send(home, "set", "e2", map[string]any{"base": 3.0})
	h.run()
	wantStory(t, h.told(), "handled e2")
}

// A computation whose output does not change runs nothing downstream.
func TestI3_UnchangedOutputRunsNothingDownstream(t *testing.T) {
	p := newProgram(t).set().
		compute("capped", func(tx *Tx) any { return min(num(tx.Get("base")), 10) }).
		sum("down", "capped")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("down")
	w.send(home, "set", "e1", map[string]any{"base": 12})
	h.run()
	h.told()
	w.send(home, "set", "e2", map[string]any{"base": 13})
	h.run()
	wantStory(t, h.told(), "handled e2", "run capped")
	w.send(home, "set", "e3", map[string]any{"base": 9})
	h.run()
	wantStory(t, h.told(), "handled e3", "run capped, changed", "run down, changed", "run observe:down")
}

// A change beside the value that was read concerns no reader.
func TestI3_AChangedSiblingRunsNothing(t *testing.T) {
	p := newProgram(t).
		handle("set", func(tx *Tx, ev *model.Event) any {
			tx.Set("doc", ev.Payload, "a", ev.ID)
			return nil
		}).
		compute("out", func(tx *Tx) any { return tx.Get("doc", "a", "e1") })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	w.send(home, "set", "e1", 1)
	h.run()
	wantValue(t, h, "out", "1")
	h.told()
	w.send(home, "set", "e2", 2)
	h.run()
	wantStory(t, h.told(), "handled e2")
}

// A path that is changed between two reads must not change what the first one has read.
func TestReadsAreOfThePathAsItWas(t *testing.T) {
	p := newProgram(t).
		handle("set", func(tx *Tx, ev *model.Event) any {
			tx.Set("doc", ev.Payload)
			return nil
		}).
		compute("out", func(tx *Tx) any {
			path, total := []string{""}, int64(0)
			for _, key := range []string{"a", "b"} {
				path[0] = key
				total += num(tx.Get("doc", path...))
			}
			return total
		})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	w.send(home, "set", "e1", map[string]int{"a": 1, "b": 1})
	h.run()
	w.send(home, "set", "e2", map[string]int{"a": 5, "b": 1})
	h.run()
	wantValue(t, h, "out", "6")
}

// A node's own write does not run it again, even though it reads what it writes.
func TestI5_AnOwnWriteDoesNotInvalidate(t *testing.T) {
	p := newProgram(t).set().
		compute("seen", func(tx *Tx) any { return max(num(tx.Get("seen")), num(tx.Get("base"))) })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("seen")
	for i, base := range []int{3, 1, 7, 2} {
		w.send(home, "set", fmt.Sprint("e", i), map[string]any{"base": base})
		h.run()
	}
	wantValue(t, h, "seen", "7")
	// The first event is handled before the first run; from then on, there is one run per event.
	if got := h.runs["seen"]; got != 4 {
		t.Errorf("%d runs for 4 values of base, want 4", got)
	}
	if !h.core.Idle() {
		t.Error("not idle")
	}
}

// Writers run before their readers, regardless of the order of registration: a change costs every node of a
// diamond one run (I9).
func TestI9_ADiamondRunsEachNodeOnceInOrder(t *testing.T) {
	p := newProgram(t).set().
		sum("bottom", "left", "right").
		sum("left", "top").sum("right", "top").
		sum("top", "base")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("bottom")
	h.run()
	h.told()
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.run()
	wantValue(t, h, "bottom", "10")
	wantStory(t, h.told(), "handled e1", "run top, changed", "run left, changed", "run right, changed", "run bottom, changed", "run observe:bottom")
}

// A node that reads both ends of a chain runs after the chain, even while only the near end is invalid.
func TestI9_AReaderComesAfterAllNodesThatMayChangeItsReads(t *testing.T) {
	p := newProgram(t).set().
		sum("d", "base", "c").
		sum("c", "b").sum("b", "a").sum("a", "base")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("d")
	h.run()
	h.told()
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.run()
	wantStory(t, h.told(), "handled e1", "run a, changed", "run b, changed", "run c, changed", "run d, changed", "run observe:d")
}

// Nodes that do not read each other run in order of registration.
func TestI9_TiesGoByRegistration(t *testing.T) {
	p := newProgram(t).set().sum("z", "base").sum("a", "base").sum("m", "base")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for _, doc := range []string{"a", "m", "z"} {
		h.observe(doc)
	}
	h.run()
	h.told()
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.run()
	got := h.told()
	if !slices.Equal(got[1:4], []string{"run z, changed", "run a, changed", "run m, changed"}) {
		t.Errorf("it did %v", got)
	}
}

// A burst of events costs an observed computation one run, not one per event.
func TestABatchOfEventsCostsOneRunPerPass(t *testing.T) {
	p := newProgram(t).
		handle("add", func(tx *Tx, ev *model.Event) any {
			tx.Set("base", num(tx.Get("base"))+1)
			return nil
		}).
		sum("double", "base", "base")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("double")
	h.run()
	before := h.runs["double"]
	for i := range 1000 {
		w.send(home, "add", fmt.Sprint("e", i), nil)
	}
	h.deliver()
	h.settle()
	wantValue(t, h, "double", "2000")
	if got := h.runs["double"] - before; got != 1 {
		t.Errorf("%d runs for one batch, want 1", got)
	}
}

func TestConditionalReadsFollowTheBranch(t *testing.T) {
	p := newProgram(t).set().
		compute("out", func(tx *Tx) any {
			if on, _ := tx.Get("switch").AsBool(); on {
				return tx.Get("left")
			}
			return tx.Get("right")
		}).
		sum("left", "x").sum("right", "y")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	w.send(home, "set", "e1", map[string]any{"x": 1, "y": 2, "switch": true})
	h.run()
	wantValue(t, h, "out", "1")
	h.told()
	w.send(home, "set", "e2", map[string]any{"y": 3})
	h.run()
	wantStory(t, h.told(), "handled e2") // the other branch is dormant
	w.send(home, "set", "e3", map[string]any{"switch": false})
	h.run()
	wantValue(t, h, "out", "3")
}

func TestUnobserveMakesDormant(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("c")
	h.observe("c")
	h.run()
	h.core.Unobserve("c")
	w.send(home, "set", "e1", map[string]any{"base": 1})
	h.run()
	wantValue(t, h, "c", "4")
	h.core.Unobserve("c")
	h.core.Unobserve("c") // one Unobserve too many has no effect
	h.core.Unobserve("never")
	h.told()
	w.send(home, "set", "e2", map[string]any{"base": 2})
	h.run()
	wantStory(t, h.told(), "handled e2")
	h.observe("c")
	h.run()
	wantValue(t, h, "c", "8")
}

// Demand that returns through a clean node wakes the invalid node above it.
func TestDemandReturnsThroughACleanNode(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("c")
	h.run()
	h.core.Unobserve("c")
	w.send(home, "set", "e1", map[string]any{"base": 7})
	h.run()
	for _, n := range h.core.Nodes() {
		if want := map[string]Status{"a": Invalid, "b": Clean, "c": Clean}[n.ID]; n.ID != "spare" && n.Status != want {
			t.Fatalf("node %s is %s, want %s", n.ID, n.Status, want)
		}
	}
	h.told()
	h.observe("c")
	h.run()
	wantValue(t, h, "c", "28")
	wantStory(t, h.told(), "run a, changed", "run b, changed", "run c, changed", "run observe:c")
}

// A circle of computations does not keep itself alive.
func TestI2_AnUnobservedCircleIsDormant(t *testing.T) {
	p := newProgram(t).set().
		compute("a", func(tx *Tx) any { return max(num(tx.Get("b")), num(tx.Get("base"))) }).
		sum("b", "a").
		compute("self", func(tx *Tx) any { return max(num(tx.Get("self")), num(tx.Get("base"))) })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for _, doc := range []string{"b", "self"} {
		h.observe(doc)
	}
	w.send(home, "set", "e1", map[string]any{"base": 1})
	h.run()
	wantValue(t, h, "b", "1")
	for _, doc := range []string{"b", "self"} {
		h.core.Unobserve(doc)
	}
	h.told()
	w.send(home, "set", "e2", map[string]any{"base": 2})
	h.run()
	wantStory(t, h.told(), "handled e2")
	h.observe("b")
	h.run()
	wantValue(t, h, "b", "2")
}

// Observations that come and go leave nothing behind.
func TestObservationsTakeNoMoreRoomThanThereAreAtATime(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	for range 100 {
		h.observe("a")
		h.observe("b")
		h.run()
		h.core.Unobserve("b")
		h.core.Unobserve("a")
	}
	if n := len(h.core.graph.nodes); n > 6 {
		t.Errorf("%d handles for 4 computations and 2 observations", n)
	}
	h.run()
	if n := len(h.core.Inspect().Nodes()); n != 4 {
		t.Errorf("%d nodes in the tables, want 4", n)
	}
}

func TestI8_ATransactionNamesItsWriterAndCauses(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("b")
	h.run()
	w.send(home, "set", "e1", map[string]any{"base": 3})
	h.run()
	var got []string
	for _, e := range w.logs[home][1:] {
		for _, tx := range w.commit(e).Txs {
			got = append(got, fmt.Sprintf("%d %s because of %v reads %v", tx.N, tx.By, tx.Causes, tx.Reads))
		}
	}
	want := []string{
		"1 compute a because of [] reads [base]",
		"2 compute b because of [] reads [a]",
		"3 handle set because of [] reads []",
		"4 compute a because of [base] reads []",
		"5 compute b because of [a] reads []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("transactions\n%q\nwant\n%q", got, want)
	}
}

// Causes are listed individually up to a bound, so a node that is dormant for years does not grow.
func TestCausesAreBounded(t *testing.T) {
	p := newProgram(t).set().compute("out", func(tx *Tx) any {
		for i := range 100 {
			tx.Get(fmt.Sprint("in", i))
		}
		return 1
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	h.run()
	h.core.Unobserve("out")
	all := map[string]any{}
	for i := range 100 {
		all[fmt.Sprint("in", i)] = i
	}
	w.send(home, "set", "e1", all)
	h.run()
	causes := h.core.Nodes()[0].Causes
	if len(causes) == 0 || len(causes) > maxCauses {
		t.Errorf("%d causes: %v", len(causes), causes)
	}
}

// A chain that is discovered link by link, from its far end, settles in one pass, and no link runs on a value
// that is about to change.
func TestADiscoveredChainSettlesInOnePass(t *testing.T) {
	const links = 100
	p := newProgram(t).set()
	for i := links; i > 0; i-- {
		p = p.compute(fmt.Sprint("link", i), func(tx *Tx) any { return num(tx.Get(fmt.Sprint("link", i-1))) + 1 })
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe(fmt.Sprint("link", links))
	h.settle()
	wantValue(t, h, fmt.Sprint("link", links), fmt.Sprint(links))
	for id, n := range h.runs {
		if n != 1 {
			t.Errorf("%d runs of %s, want 1", n, id)
		}
	}
	if d := h.core.Stats().Deferred; d > 0 || h.last.Wake != 0 {
		t.Errorf("%d nodes deferred until %v", d, h.last.Wake)
	}
}
