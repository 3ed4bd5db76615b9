package space

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestAHandlerSeesItsOwnWrites(t *testing.T) {
	var seen []string
	p := newProgram(t).handle("do", func(tx *Tx, _ *model.Event) any {
		see := func(doc string, path ...string) { seen = append(seen, tx.Get(doc, path...).String()) }
		tx.Set("a", map[string]int{"x": 1})
		tx.Set("b", 2)
		see("a", "x")
		tx.Set("a", 3, "y")
		see("a")
		tx.Delete("a", "x")
		see("a")
		tx.Delete("b")
		see("b")
		see("never")
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "do", "e1", nil)
	h.run()
	if want := []string{"1", `{"x":1,"y":3}`, `{"y":3}`, "absent", "absent"}; !slices.Equal(seen, want) {
		t.Errorf("it saw %v, want %v", seen, want)
	}
	for doc, want := range map[string]string{"a": `{"y":3}`, "b": "absent"} {
		if got := w.replica(home).Doc(doc).Value.String(); got != want {
			t.Errorf("the log says %s is %s, want %s", doc, got, want)
		}
	}
}

// A handler's writes are to the path as it was when they were made, even if the handler changes the slice
// afterwards.
func TestWritesAreToThePathAsItWas(t *testing.T) {
	p := newProgram(t).handle("do", func(tx *Tx, _ *model.Event) any {
		path := []string{""}
		for i, key := range []string{"x", "y", "z"} {
			path[0] = key
			tx.Set("a", i, path...)
		}
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "do", "e1", nil)
	h.run()
	if got, want := w.replica(home).Doc("a").Value.String(), `{"x":0,"y":1,"z":2}`; got != want {
		t.Errorf("the log says %s, want %s", got, want)
	}
}

// Writing an equal value writes nothing, and concerns no reader.
func TestI5_AWriteOfTheSameValueWritesNothing(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).set().sum("out", "base").Program)
	h.observe("out")
	for _, id := range []string{"e1", "e2"} {
		w.send(home, "set", id, map[string]any{"base": 5})
		h.run()
	}
	last := w.logs[home][len(w.logs[home])-1]
	if tx := w.commit(last).Txs[0]; len(tx.Writes) > 0 || tx.Receipt.Event != "e2" {
		t.Errorf("the second event wrote %v", tx.Writes)
	}
	if n := h.runs["out"]; n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// A computation that panics keeps its last value and its read set, and runs again when one of its reads
// changes.
func TestAFailingComputationKeepsItsValueAndIsTriedAgain(t *testing.T) {
	p := newProgram(t).set().compute("out", func(tx *Tx) any {
		n := num(tx.Get("base"))
		if n < 0 {
			panic("negative")
		}
		return n
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.run()
	h.told()
	w.send(home, "set", "e2", map[string]any{"base": -1})
	h.run()
	wantStory(t, h.told(), "handled e2", "run out: node out panicked: negative")
	wantValue(t, h, "out", "5")
	w.send(home, "set", "e3", map[string]any{"base": 6})
	h.run()
	wantValue(t, h, "out", "6")
}

// A computation's output is deleted when the computation returns an absent value.
func TestAnAbsentOutputDeletesTheDocument(t *testing.T) {
	p := newProgram(t).set().compute("out", func(tx *Tx) any {
		if n := num(tx.Get("base")); n > 0 {
			return n
		}
		return model.Value{}
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("out")
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.run()
	wantValue(t, h, "out", "5")
	w.send(home, "set", "e2", map[string]any{"base": 0})
	h.run()
	wantValue(t, h, "out", "absent")
	if ids := w.replica(home).DocIDs(); !slices.Equal(ids, []string{"base"}) {
		t.Errorf("the log has the documents %v", ids)
	}
}

// A checkpoint contains what has changed since the last one, and whatever could not be saved then.
func TestACheckpointHoldsWhatChanged(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).set().Program)
	docs := func() []string {
		c, err := h.core.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		defer h.core.CheckpointFailed(c)
		var ids []string
		for _, d := range c.Docs {
			ids = append(ids, d.Doc)
		}
		return ids
	}
	w.send(home, "set", "e1", map[string]any{"a": 1, "b": 1})
	h.deliver()
	h.settle()
	if got := docs(); len(got) > 0 {
		t.Errorf("%v would be saved before confirmation", got)
	}
	h.decide()
	for range 2 {
		if got := docs(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%v, want a and b", got)
		}
	}
	h.checkpoint()
	w.send(home, "set", "e2", map[string]any{"b": 2})
	h.run()
	if got := docs(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v, want b", got)
	}
}

// Transact cannot be called from within a handler.
func TestTransactIsRefusedInTheMiddleOfSettle(t *testing.T) {
	var h *host
	var got error
	p := newProgram(t).handle("nest", func(tx *Tx, _ *model.Event) any {
		_, got = h.core.Transact("me", func(tx *Tx) error { return nil })
		tx.Set("x", 1)
		return nil
	})
	w := newWorld(t)
	h = w.owner("w1", p.Program)
	w.send(home, "nest", "e1", nil)
	h.run()
	if got == nil {
		t.Error("Transact succeeded within a handler")
	}
	wantValue(t, h, "x", "1")
}

// A transaction is used during the call that it was passed to. One that was kept panics in words, whatever is called
// on it, and does nothing to the transaction that is under way.
func TestATransactionThatIsKeptPanicsInWords(t *testing.T) {
	kept := map[string]*Tx{}
	p := newProgram(t).
		handle("do", func(tx *Tx, _ *model.Event) any { kept["a handler"] = tx; tx.Set("a", 1); return nil }).
		handle("other", func(_ *Tx, _ *model.Event) any {
			for by, tx := range kept {
				callsPanic(t, by, tx)
			}
			return nil
		}).
		add(NodeSpec{ID: "c", Kind: Computation, Output: "c", Run: func(tx *Tx) (model.Value, error) {
			kept["a computation"] = tx
			return tx.Get("a"), nil
		}}).
		add(NodeSpec{ID: "e", Kind: Effect, Run: func(tx *Tx) (model.Value, error) { tx.Get("c"); kept["an effect"] = tx; return model.Value{}, nil }})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "do", "e1", nil)
	h.run()
	if _, err := h.core.Transact("test", func(tx *Tx) error { kept["Transact"] = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := h.core.Transact("test", func(tx *Tx) error { kept["a function that panicked"] = tx; panic("it") }); err == nil {
		t.Fatal("no error")
	}
	if len(kept) != 5 {
		t.Fatalf("kept are %v", kept)
	}
	w.send(home, "other", "e2", nil)
	h.run()
	if got := w.replica(home).DocIDs(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("documents %v", got)
	}
}

// callsPanic calls every method of a transaction.
func callsPanic(t *testing.T, by string, tx *Tx) {
	t.Helper()
	v := reflect.ValueOf(tx)
	for i := range v.NumMethod() {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "valid only during the call") {
					t.Errorf("%s of %s says %s", v.Type().Method(i).Name, by, got)
				}
			}()
			f := v.Method(i)
			var args []reflect.Value
			for j := range f.Type().NumIn() {
				if !f.Type().IsVariadic() || j < f.Type().NumIn()-1 {
					args = append(args, reflect.Zero(f.Type().In(j)))
				}
			}
			f.Call(args)
		}()
	}
}

// A function that uses the transaction of another event fails its own event, and no other.
func TestAnEventThatUsesTheTransactionOfAnotherFails(t *testing.T) {
	var first *Tx
	p := newProgram(t).handle("do", func(tx *Tx, _ *model.Event) any {
		if first == nil {
			first = tx
		}
		first.Set("a", tx.Event().ID)
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for _, id := range []string{"e1", "e2", "e3"} {
		w.send(home, "do", id, nil)
	}
	h.run()
	if got, want := w.replica(home).Doc("a").Value.String(), `"e1"`; got != want {
		t.Errorf("the log says %s, want %s", got, want)
	}
	for id, want := range map[string]model.Outcome{"e1": model.Handled, "e2": model.Failed, "e3": model.Failed} {
		if rc := w.receipt(home, id); rc.Outcome != want || want == model.Failed && !strings.Contains(rc.Error, "valid only during the call") {
			t.Errorf("%s is %s: %s", id, rc.Outcome, rc.Error)
		}
	}
}
