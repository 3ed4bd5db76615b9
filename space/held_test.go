package space

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// Thousands of rows may each wait for a time, and a row may be written thousands of times while it waits.
// Neither may make waiting expensive or leak anything.

// held returns a space with n effects that wait until one document has been unchanged for a second.
func held(t testing.TB, n int) *host {
	h := newWorld(t).owner("w1", newProgram(t).set().Program)
	for i := range n {
		h.addRow(i, time.Second)
	}
	h.settleAll()
	h.advance(time.Second)
	h.settleAll()
	return h
}

func (h *host) addRow(i int, debounce time.Duration) {
	h.t.Helper()
	err := h.core.Register(NodeSpec{
		ID: fmt.Sprint("row", i), Kind: Effect, Gate: GateSpec{Debounce: debounce},
		Run: func(tx *Tx) (model.Value, error) { return tx.Get("a"), nil },
	})
	if err != nil {
		h.t.Fatalf("%v", err)
	}
}

func (h *host) transact(doc string, v any) {
	h.t.Helper()
	if _, err := h.core.Transact("application", func(tx *Tx) error { tx.Set(doc, v); return nil }); err != nil {
		h.t.Fatalf("%v", err)
	}
}

func TestAWaitingNodeIsHeldOnceHoweverOftenItIsInvalidated(t *testing.T) {
	const n = 100
	h := held(t, n)
	for i := range 1000 {
		h.transact("a", i)
		h.settleAll()
		if i%2 == 0 {
			h.advance(time.Millisecond) // twice at the same time, then at another
		}
		if got := len(h.core.graph.gated); got != n {
			t.Fatalf("%d entries for %d nodes after %d changes", got, n, i+1)
		}
		h.decide()
	}
	if got := cap(h.core.graph.gated); got > 2*n {
		t.Errorf("there is room for %d entries, for %d nodes", got, n)
	}
}

// Nor within one pass: a burst of events, each of which invalidates waiting nodes.
func TestAWaitingNodeIsHeldOnceHoweverManyEventsAPassHas(t *testing.T) {
	h := held(t, 10)
	for i := range 500 {
		h.w.send(home, "set", fmt.Sprint("e", i), map[string]any{"a": i})
	}
	h.run()
	if got := len(h.core.graph.gated); got != 10 {
		t.Errorf("%d entries for 10 nodes", got)
	}
}

// Gates that are set again and again leave nothing behind either.
func TestAWaitingNodeIsHeldOnceHoweverOftenItsGateIsSet(t *testing.T) {
	h := held(t, 1)
	h.transact("a", 1)
	h.settleAll()
	for i := range 1000 {
		if err := h.core.SetDebounce("row0", time.Duration(1+i%3)*time.Second); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			h.settleAll()
		}
		if got := len(h.core.graph.gated); got != 1 {
			t.Fatalf("%d entries for one node", got)
		}
	}
}

// Rows come and go while they wait for a time in the far future.
func TestARemovedNodeIsNotHeld(t *testing.T) {
	h := held(t, 0)
	for i := range 1000 {
		h.addRow(i, time.Hour)
		h.settleAll()
		if i >= 10 && !h.core.Remove(fmt.Sprint("row", i-10)) {
			t.Fatalf("there is no row %d", i-10)
		}
		if got := len(h.core.graph.gated); got > 10 {
			t.Fatalf("%d nodes are held, of 10 that there are", got)
		}
	}
	if got, limit := len(h.core.graph.arming), 10; got > limit {
		t.Errorf("%d nodes are still held", got)
	}
}

func TestF14_StatisticsAreBounded(t *testing.T) {
	const ids, often = 25_000, 1000
	h := held(t, 0)
	runs := func(id string) uint64 {
		n := h.core.graph.byID[id]
		if n == nil || n.more == nil {
			return 0
		}
		return n.more.gate.auto.runCount
	}
	visit := func(i int) { // a row comes, runs, and goes
		h.addRow(i, 0)
		h.core.Measured(fmt.Sprint("row", i), time.Millisecond)
		h.core.Remove(fmt.Sprint("row", i))
	}
	h.addRow(ids, 0) // this one stays
	h.core.Measured(fmt.Sprint("row", ids), time.Millisecond)
	for i := range ids {
		visit(i)
		if i%often == 0 {
			visit(ids + 1) // and this one recurs
		}
	}
	g := h.core.graph
	if got := g.times.gone.Len(); got != maxGone || len(g.times.byID) != maxGone {
		t.Errorf("statistics of %d and %d nodes that are gone, want %d", got, len(g.times.byID), maxGone)
	}
	if got := len(g.nodes); got > 2 {
		t.Errorf("room for %d nodes, there were never more than 2", got)
	}
	for _, i := range []int{0, ids + 1, ids - 1} {
		h.addRow(i, 0)
	}
	for _, c := range []struct {
		i    int
		want uint64
		who  string
	}{
		{ids, 1, "one that stayed"},
		{ids + 1, ids / often, "one that recurs"},
		{0, 0, "the first to go"},
		{ids - 1, 1, "the last to go"},
	} {
		if got := runs(fmt.Sprint("row", c.i)); got != c.want {
			t.Errorf("%s: %d runs, want %d", c.who, got, c.want)
		}
	}
}

// A slow effect is still slow when it returns, and its statistics are not counted twice.
func TestF14_StatisticsOutlastAnAbsence(t *testing.T) {
	h := held(t, 1)
	for range 3 {
		h.core.Measured("row0", time.Second)
	}
	for range 5 {
		h.core.Remove("row0")
		h.addRow(0, 0)
	}
	auto := h.core.graph.byID["row0"].more.gate.auto
	if auto.runCount != 3 || auto.totalTime != 3*time.Second {
		t.Errorf("%d runs of %v in all, want 3 of 3s", auto.runCount, auto.totalTime)
	}
	if got, _ := h.core.Gate("row0"); got.Debounce != 100*time.Millisecond {
		t.Errorf("debounce %v, want 100ms", got.Debounce)
	}
	if got := h.core.graph.times.gone.Len(); got != 0 {
		t.Errorf("statistics of %d removed nodes, although none is removed", got)
	}
}
