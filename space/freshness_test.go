package space

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// wantFreshness compares the freshness of a document.
func wantFreshness(t *testing.T, h *host, doc string, want Freshness) {
	t.Helper()
	if got := h.core.Freshness(doc); got != want {
		t.Errorf("%s: %+v, want %+v", doc, got, want)
	}
}

func TestFreshness_OfADocumentThatIsObserved(t *testing.T) {
	p := chain(t)
	p.add(NodeSpec{ID: "slow", Kind: Computation, Output: "slow", Gate: GateSpec{Throttle: time.Hour}, Run: func(tx *Tx) (model.Value, error) { return tx.Get("a"), nil }})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.run()
	wantFreshness(t, h, "b", Freshness{Pending: true, Reason: "it is not observed"})
	h.observe("b")
	h.observe("slow")
	if f := h.core.Freshness("b"); !f.Pending {
		t.Error("the document is fresh before anything has run")
	}
	h.run()
	wantFreshness(t, h, "b", Freshness{})
	wantFreshness(t, h, "slow", Freshness{})
	w.send(home, "set", "e1", map[string]any{"base": 3})
	h.run()
	wantFreshness(t, h, "b", Freshness{})
	f := h.core.Freshness("slow")
	if !f.Pending || f.Reason != "slow is held back (throttle)" || f.Until == 0 {
		t.Errorf("what is throttled: %+v", f)
	}
	if v, rev := h.core.Confirmed("b"); v.String() != "6" || rev != h.core.Seq() {
		t.Errorf("confirmed: %v at %d, the log ends at %d", v, rev, h.core.Seq())
	}
	if n := h.core.Unconfirmed(); n != 0 {
		t.Errorf("%d appends are missing although the space is idle", n)
	}
}

// A failure upstream of a document is reported for the document until the node runs again.
func TestFreshness_DownstreamOfAFailingComputation(t *testing.T) {
	p := newProgram(t).set().sum("c", "b").sum("b", "a").sum("spare", "base")
	p.add(NodeSpec{ID: "a", Kind: Computation, Output: "a", Run: func(tx *Tx) (model.Value, error) {
		if n, _ := tx.Get("base").AsInt(); n < 0 {
			return model.Value{}, errors.New("it is negative")
		}
		return tx.Get("base"), nil
	}})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("c")
	h.observe("spare")
	for n, want := range []string{"", "a could not be computed: it is negative", ""} {
		w.send(home, "set", fmt.Sprint("e", n), map[string]any{"base": 1 - 2*(n%2)})
		h.run()
		wantFreshness(t, h, "c", Freshness{Reason: want})
		wantFreshness(t, h, "spare", Freshness{})
		if wrong := h.core.graph.audit(); len(wrong) > 0 {
			t.Error(wrong)
		}
	}
	w.send(home, "set", "e9", map[string]any{"base": -1})
	h.run()
	h.core.Remove("a")
	h.run()
	wantFreshness(t, h, "c", Freshness{})
	if wrong := h.core.graph.audit(); len(wrong) > 0 {
		t.Error(wrong)
	}
}
