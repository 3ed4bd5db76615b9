package space

import (
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

var fx = Ref{Space: "bank", Doc: "rate"}

// exchange reads the rate of another space, in a handler and in a computation.
func exchange(t *testing.T) program {
	return newProgram(t).set().
		handle("buy", func(tx *Tx, _ *model.Event) any {
			rate := tx.GetFrom("bank", "rate")
			if rate.IsAbsent() {
				return "no rate"
			}
			return num(rate) * 10
		}).
		handle("read", func(tx *Tx, _ *model.Event) any { return tx.Get("price") }).
		handle("both", func(tx *Tx, _ *model.Event) any {
			return num(tx.GetFrom("bank", "rate")) + num(tx.GetFrom("bank", "fee"))
		}).
		compute("price", func(tx *Tx) any { return num(tx.GetFrom("bank", "rate")) * num(tx.Get("amount")) })
}

func TestL08_AHandlerWaitsForAForeignDocument(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7))
	w.send(home, "buy", "e1", nil)
	h.deaf = true
	h.run()
	if got := w.receipts(home); len(got) > 0 {
		t.Fatalf("receipts %v before the document has arrived", got)
	}
	if _, ok := h.follows[fx]; !ok || h.last.More {
		t.Fatalf("follows %v, %+v", h.follows, h.last)
	}
	h.deaf = false
	h.run()
	if got := w.receipt(home, "e1").Result.String(); got != "70" {
		t.Errorf("the handler saw %s, want 70", got)
	}
	if len(h.follows) > 0 {
		t.Errorf("the space still follows %v", h.follows)
	}
	if n := len(h.core.graph.far); n > 0 {
		t.Errorf("%d records of foreign documents remain", n)
	}
}

// An absent document is known as well, once its absence has been delivered.
func TestAnAbsentForeignDocumentIsAValue(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.send(home, "buy", "e1", nil)
	h.run()
	if got := w.receipt(home, "e1").Result.String(); got != `"no rate"` {
		t.Errorf("the handler saw %s", got)
	}
}

// Each of several foreign documents is kept while the event waits for the next.
func TestM15_AHandlerMayReadManyForeignDocuments(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7), put("fee", 2))
	w.send(home, "both", "e1", nil)
	h.run()
	if got := w.receipt(home, "e1").Result.String(); got != "9" {
		t.Errorf("the handler saw %s, want 9", got)
	}
}

func TestAComputationWaitsForAForeignDocumentAndFollowsIt(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7))
	w.send(home, "set", "e1", map[string]any{"amount": 3})
	h.observe("price")
	h.deaf = true
	h.run()
	wantValue(t, h, "price", "absent")
	if h.core.Idle() {
		t.Error("idle, while an observed computation waits")
	}
	if n := h.runs["price"]; n != 1 || h.core.Stats().NodeErrors > 0 {
		t.Errorf("%d runs, stats %+v: waiting is neither work nor an error", n, h.core.Stats())
	}
	h.deaf = false
	h.run()
	wantValue(t, h, "price", "21")
	w.put("bank", put("rate", 8))
	h.run()
	wantValue(t, h, "price", "24")
	h.told()
	w.put("bank", put("fee", 8))
	h.run()
	wantStory(t, h.told()) // the value is the same
	if !h.core.Idle() {
		t.Error("not idle")
	}
}

// The foreign document is followed exactly as long as it is needed.
func TestFollowingIsDemand(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7))
	w.send(home, "set", "e1", map[string]any{"amount": 3})
	h.run()
	if len(h.follows) > 0 {
		t.Fatalf("follows %v without an observer", h.follows)
	}
	h.observe("price")
	h.run()
	if len(h.follows) != 1 {
		t.Fatalf("follows %v, want %v", h.follows, fx)
	}
	h.core.Unobserve("price")
	h.run()
	if len(h.follows) > 0 {
		t.Errorf("still follows %v", h.follows)
	}
	// Observed and released between two calls of Settle: nothing to request.
	h.observe("price")
	h.core.Unobserve("price")
	if r := h.settle(); len(r.Follow)+len(r.Unfollow) > 0 {
		t.Errorf("follow %v, unfollow %v", r.Follow, r.Unfollow)
	}
}

// A computation that was clean when its foreign document was released is not up to date for a later observer:
// the document may have changed in between (I4). If it has not, there is nothing to run (I3).
func TestI4_AReaderOfAnUnfollowedDocumentIsNotUpToDate(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7))
	w.send(home, "set", "e1", map[string]any{"amount": 3})
	w.send(home, "read", "e2", nil)
	h.run()
	if got := w.receipt(home, "e2").Result.String(); got != "21" {
		t.Fatalf("read %s, want 21", got)
	}
	before := h.runs["price"]
	w.send(home, "read", "e3", nil)
	h.run()
	if n := h.runs["price"]; n != before {
		t.Errorf("%d further runs for the same rate", n-before)
	}
	w.put("bank", put("rate", 9))
	w.send(home, "read", "e4", nil)
	h.run()
	if got := w.receipt(home, "e4").Result.String(); got != "27" {
		t.Errorf("read %s, want 27", got)
	}
	// There is an observer again, but the rate has not arrived.
	w.put("bank", put("rate", 11))
	h.deaf = true
	h.observe("price")
	h.run()
	w.send(home, "read", "e5", nil)
	h.run()
	if n := len(w.receipts(home)); n != 4 {
		t.Error("e5 is handled before it is known whether the rate has changed")
	}
	h.deaf = false
	h.run()
	if got := w.receipt(home, "e5").Result.String(); got != "33" {
		t.Errorf("read %s, want 33", got)
	}
}

// A handler waits for a computation that waits for a foreign document (I4).
func TestI4_TheGateReachesThroughForeignDocuments(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7))
	w.send(home, "set", "e1", map[string]any{"amount": 2})
	w.send(home, "read", "e2", nil)
	h.deaf = true
	h.run()
	if got, want := w.receipts(home), []string{"e1 handled"}; !slices.Equal(got, want) {
		t.Fatalf("receipts %v, want %v", got, want)
	}
	h.deaf = false
	h.run()
	if got := w.receipt(home, "e2").Result.String(); got != "14" {
		t.Errorf("read %s, want 14", got)
	}
}

// A value that is delivered after the document was unfollowed may be out of date, and is ignored.
func TestALateDeliveryIsIgnored(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", exchange(t).Program)
	w.put("bank", put("rate", 7))
	w.send(home, "set", "e1", map[string]any{"amount": 1})
	h.observe("price")
	h.run()
	h.core.Unobserve("price")
	h.settle()
	h.core.Mirror("bank", "rate", model.Int(1))
	h.core.Mirror("bank", "never", model.Int(1))
	w.put("bank", put("rate", 8))
	h.observe("price")
	h.settle()
	wantValue(t, h, "price", "7")
	h.run()
	wantValue(t, h, "price", "8")
}

// A space can read its own documents with GetFrom.
func TestGetFromTheOwnSpaceIsGet(t *testing.T) {
	p := newProgram(t).set().compute("out", func(tx *Tx) any { return tx.GetFrom(tx.Space(), "base") })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	w.send(home, "set", "e1", map[string]any{"base": 4})
	h.run()
	wantValue(t, h, "out", "4")
	if len(h.follows) > 0 {
		t.Errorf("follows %v", h.follows)
	}
}
