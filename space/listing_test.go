package space

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// catalogue lists the documents of orders, in a computation and in a handler.
func catalogue(t testing.TB) program {
	listed := func(tx *Tx, pattern string) string {
		return strings.Join(tx.GetShallow(pattern).Keys(), " ")
	}
	return newProgram(t).set().
		compute("orders", func(tx *Tx) any { return listed(tx, "order-*") }).
		compute("order-count", func(tx *Tx) any { return int64(tx.GetShallow("order-*").Len()) }).
		handle("list", func(tx *Tx, _ *model.Event) any { return listed(tx, "order-*") }).
		handle("shift", func(tx *Tx, _ *model.Event) any {
			tx.Delete("order-1")
			tx.Set("order-3", 3)
			return listed(tx, "order-*") + "; " + tx.Get("orders").String() + "; " + tx.Get("order-count").String()
		})
}

// A list of documents has those that match, exist, and are written by no node; it changes with them, and not with their values.
func TestListing_DocumentsByPrefix(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", catalogue(t).Program)
	h.observe("orders")
	w.send(home, "set", "e1", map[string]any{"order-2": 1, "order-1": 1, "other": 1})
	h.observe("order-count")
	h.run()
	wantValue(t, h, "orders", `"order-1 order-2"`)
	wantValue(t, h, "order-count", "2")
	h.told()
	w.send(home, "set", "e2", map[string]any{"order-1": 7, "another": 1})
	h.run()
	wantStory(t, h.told(), "handled e2") // a value, and a document that does not match
	w.send(home, "set", "e3", map[string]any{"order-1": nil, "order-10": 1})
	w.send(home, "list", "e4", nil)
	h.run()
	if got := w.receipt(home, "e4").Result.String(); got != `"order-1 order-10 order-2"` { // null is a value
		t.Errorf("the handler lists %s", got)
	}
	wantValue(t, h, "orders", `"order-1 order-10 order-2"`)
}

// A handler's own writes are in the lists that it reads, and in what follows from them.
func TestListing_AHandlerSeesItsOwnWrites(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", catalogue(t).Program)
	w.send(home, "set", "e1", map[string]any{"order-2": 1, "order-1": 1})
	w.send(home, "shift", "e2", nil)
	h.run()
	if got := w.receipt(home, "e2").Result.String(); got != `"order-2 order-3; \"order-2 order-3\"; 2"` {
		t.Errorf("the handler has read %s", got)
	}
	h.observe("orders")
	h.run()
	wantValue(t, h, "orders", `"order-2 order-3"`)
}

// What another runtime has written first takes the writes of this one back, and those in lists with them.
func TestListing_ARefusalIsUndone(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", catalogue(t).Program)
	h.observe("orders")
	h.run()
	w.send(home, "set", "e1", map[string]any{"order-1": 1})
	h.deliver()
	h.settle()
	h.refuse(put("order-9", 1))
	h.integrate()
	h.run()
	wantValue(t, h, "orders", `"order-1 order-9"`)
}

// A restarted space runs nodes again whose lists have changed meanwhile, and no others.
func TestI7_Listing_IsComparedAfterARestart(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", catalogue(t).Program)
	m := memory{}
	h.observe("orders")
	w.send(home, "set", "e1", map[string]any{"order-1": 1})
	h.run()
	h.restart(m)
	before := h.runs["orders"]
	h.observe("orders")
	h.run()
	if h.runs["orders"] != before {
		t.Errorf("orders has run again after a restart without changes")
	}
	m.save(t, h)
	h.checkpoint()
	w.put(home, put("order-2", 1))
	h.load()
	h.core.Rehydrate(m.list())
	h.takeOver()
	h.observe("orders")
	h.run()
	wantValue(t, h, "orders", `"order-1 order-2"`)
}

// A list is no document: nothing writes it, and its name is checked.
func TestListing_IsReadOnly(t *testing.T) {
	p := catalogue(t).
		handle("write", func(tx *Tx, _ *model.Event) any { tx.GetShallow("order-*"); tx.Set("order-*", 1); return nil }).
		handle("misspelt", func(tx *Tx, _ *model.Event) any { return tx.GetShallow("or der*") }).
		handle("elsewhere", func(tx *Tx, _ *model.Event) any { return tx.GetFrom("lot-*", "price") })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for stream, want := range map[string]string{"write": "'*' is not allowed", "misspelt": `character ' ' is not allowed`, "elsewhere": "'*' is not allowed"} {
		w.send(home, stream, stream, nil)
		h.run()
		if rc := w.receipt(home, stream); rc.Outcome != model.Failed || !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s, %s; want %q", stream, rc.Outcome, rc.Error, want)
		}
	}
}

// The list of spaces that match a pattern is mirrored like a document of another space.
func TestListing_SpacesAreMirrored(t *testing.T) {
	p := newProgram(t).compute("sum", func(tx *Tx) any {
		sum := int64(0)
		for _, lot := range tx.GetFrom("lot-*", model.SpacesDoc).Keys() {
			sum += num(tx.GetFrom(lot, "price"))
		}
		return sum
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("sum")
	w.put("lot-1", put("price", 5))
	h.run()
	ref := Ref{Space: "lot-*", Doc: model.SpacesDoc}
	if _, follows := h.follows[ref]; !follows {
		t.Fatalf("the space follows %v", h.follows)
	}
	h.core.Mirror(ref.Space, ref.Doc, model.Object(model.F("lot-1", true)))
	h.run()
	wantValue(t, h, "sum", "5")
	w.put("lot-2", put("price", 7))
	h.core.Mirror(ref.Space, ref.Doc, model.Object(model.F("lot-1", true), model.F("lot-2", true)))
	h.run()
	wantValue(t, h, "sum", "12")
}

// Lists stay what a search of all documents finds, whatever is written, made, removed, undone or restarted.
func TestI1_Listing_AgreesWithASearch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"order-1", "order-2", "order-3", "other", "order-count"}
		p := catalogue(t).
			compute("maker", func(tx *Tx) any {
				if num(tx.Get("other")) > 0 {
					tx.Node(NodeSpec{ID: "order-3", Output: "order-3", Kind: Computation, Run: func(*Tx) (model.Value, error) { return model.Int(1), nil }})
				}
				return nil
			}).
			handle("delete", func(tx *Tx, ev *model.Event) any {
				for _, name := range ev.Payload.Keys() {
					tx.Delete(name)
				}
				return nil
			})
		w := newWorld(rt)
		h := w.owner("w1", p.Program)
		m := memory{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"set", "delete", "observe", "restart", "refuse"}).Draw(rt, "do") {
			case "observe":
				h.observe(rapid.SampledFrom([]string{"orders", "order-count", "maker"}).Draw(rt, "of"))
			case "restart":
				h.restart(m)
			case "refuse":
				w.send(home, "set", fmt.Sprint("e", i), map[string]any{"order-1": 1, "other": i % 2})
				h.deliver()
				if h.settle(); h.last.Append != nil {
					h.refuse(put("order-2", i))
					h.integrate()
				}
			case "set":
				w.send(home, "set", fmt.Sprint("e", i), map[string]any{rapid.SampledFrom(names[:4]).Draw(rt, "name"): i % 2})
			case "delete":
				w.send(home, "delete", fmt.Sprint("e", i), map[string]any{rapid.SampledFrom(names[:4]).Draw(rt, "name"): true})
			}
			h.run()
			for _, l := range h.core.graph.listings {
				var want []string
				for _, name := range h.core.graph.docs { // any order: sorted below
					if n := name.key.doc; strings.HasPrefix(n, "order-") && n != "order-*" && !name.value.IsAbsent() && name.writer == nil {
						want = append(want, n)
					}
				}
				if slices.Sort(want); !slices.Equal(want, l.value.Keys()) {
					rt.Fatalf("the list is %v, the documents are %v", l.value.Keys(), want)
				}
			}
		}
	})
}
