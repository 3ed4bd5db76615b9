package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

func nodeFunc(run func(tx *Tx) any) func(*Tx) (model.Value, error) {
	return func(tx *Tx) (model.Value, error) { return answer(run(tx)) }
}

// surfaces lists what a node may write, with the number of live readers of each place.
func (h *host) surfaces(id string) (out []string) {
	h.core.graph.byID[id].eachSurface(true, func(s *surface) {
		out = append(out, fmt.Sprintf("%s%s %d", s.doc.key, s.path, s.refs))
	})
	return out
}

// A search for a writer that is not up to date stops at the first one: of two that overlap the read, and of a
// thousand, one is visited. Writers without an edge to a shallow read are skipped.
func TestA36_AScanForAWriterStopsAtTheFirst(t *testing.T) {
	for _, writers := range []int{2, 1000} {
		p := newProgram(t).add(NodeSpec{ID: "deep", Kind: Computation, Writes: []Address{{Doc: "d", Path: model.Path{"a", "b", "c"}}}, Run: nodeFunc(func(*Tx) any { return nil })})
		for i := range writers {
			p.add(NodeSpec{ID: fmt.Sprint("w", i), Kind: Computation, Writes: []Address{{Doc: "d", Path: model.Path{"a", "b"}}}, Run: nodeFunc(func(*Tx) any { return nil })})
		}
		h := newWorld(t).owner("w1", p.Program)
		g := h.core.graph
		for _, c := range []struct {
			shallow bool
			want    string
			visits  uint64
		}{{false, "deep", 1}, {true, "w0", 2}} {
			before := g.stats.Visits
			got := g.staleWriter(&dep{doc: g.local("d"), path: model.Path{"a"}, shallow: c.shallow})
			if got == nil || got.id() != c.want {
				t.Errorf("%d writers, shallow %v: found %v, want %s", writers, c.shallow, got, c.want)
			}
			// The descent from stale nodes takes one step for each step up.
			if n := g.stats.Visits - before; n > 2*c.visits {
				t.Errorf("%d writers, shallow %v: %d nodes visited", writers, c.shallow, n)
			}
		}
	}
}

// A document without readers has no reader records and no index; if it is absent and has no writer either, it
// has no record at all.
func TestC20_NothingIsLeftOfAnEntityWithoutReaders(t *testing.T) {
	p := newProgram(t).set().
		handle("delete", func(tx *Tx, ev *model.Event) any {
			doc, _ := ev.Payload.AsString()
			tx.Delete(doc)
			return nil
		}).
		add(NodeSpec{ID: "hop", Kind: Effect, Run: nodeFunc(func(tx *Tx) any {
			at, _ := tx.Get("at").AsString()
			tx.GetFrom("bank", at)
			tx.Peek(at + "-peeked")
			tx.GetFrom("bank", at)
			return tx.Get(at)
		})})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	g := h.core.graph
	known := len(g.docs)
	send := func(i int, stream string, payload any) {
		w.send(home, stream, fmt.Sprint(stream, i), payload)
		h.run()
	}
	for i := range 50 {
		send(i, "set", map[string]any{"at": fmt.Sprint("name", i)})
		if i > 0 && g.local(fmt.Sprint("name", i-1)) != nil {
			t.Fatalf("name%d has a record without a reader", i-1)
		}
		if d := g.local(fmt.Sprint("name", i)); d == nil || len(d.readers) != 1 {
			t.Fatalf("name%d is read, but has no record: %v", i, d)
		}
	}
	if len(g.docs) > known+2 || len(g.far) != 1 {
		t.Errorf("%d documents of the space are known, %d before, and %d of others", len(g.docs), known, len(g.far))
	}

	// A document that exists stays, without readers and index.
	send(100, "set", map[string]any{"wide": map[string]any{"f0": 1}})
	for i := range 2 * manyReaders {
		err := h.core.Register(NodeSpec{ID: fmt.Sprint("r", i), Kind: Effect, Run: nodeFunc(func(tx *Tx) any { return tx.Get("wide", fmt.Sprint("f", i)) })})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.run()
	wide := g.local("wide")
	if wide.paths == nil || len(wide.readers) != 2*manyReaders {
		t.Fatalf("%d readers, an index is %v", len(wide.readers), wide.paths != nil)
	}
	for i := range 2 * manyReaders {
		h.core.Remove(fmt.Sprint("r", i))
	}
	h.settle()
	if g.local("wide") != wide || wide.paths != nil || len(wide.readers) > 0 || wide.refs != 0 {
		t.Errorf("wide still has %d readers, %d refs, an index: %v", len(wide.readers), wide.refs, wide.paths != nil)
	}

	// A deleted document is removed; when the deletion is undone, it is restored.
	w.send(home, "delete", "gone", "wide")
	h.deliver()
	h.settle()
	if g.local("wide") != nil {
		t.Errorf("wide is deleted, but its record still exists")
	}
	h.refuse(put("else", 1))
	if got := h.value("wide"); got != `{"f0":1}` {
		t.Errorf("wide is %s again, want what it was", got)
	}
	h.run()
	if got := h.value("wide"); got != "absent" || g.local("wide") != nil {
		t.Errorf("wide is %s, its record %v", got, g.local("wide"))
	}
}

// The read set has moved from one document to another when the node is removed: it is removed from the new
// one, and was removed from the old one before.
func TestC23_AMovedReadSetIsCancelledWhereItIsNow(t *testing.T) {
	p := newProgram(t).set().add(NodeSpec{ID: "view", Kind: Effect, Run: nodeFunc(func(tx *Tx) any {
		if num(tx.Get("on")) > 0 {
			return tx.Get("b")
		}
		return tx.Get("a")
	})})
	w := newWorld(t)
	w.put(home, put("a", 1), put("b", 1))
	h := w.owner("w1", p.Program)
	g := h.core.graph
	n := 0
	set := func(doc string, v int) {
		n++
		w.send(home, "set", fmt.Sprint("e", n), map[string]any{doc: v})
		h.run()
	}
	readers := func() (out []int) {
		for _, id := range []string{"a", "b"} {
			out = append(out, len(g.local(id).readers))
		}
		return out
	}
	h.run()
	if got := readers(); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("readers of a and b: %v", got)
	}
	set("on", 1)
	if got := readers(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("readers of a and b, when it has moved: %v", got)
	}
	ran := h.runs["view"]
	h.core.Remove("view")
	if got := readers(); !slices.Equal(got, []int{0, 0}) {
		t.Errorf("readers of a and b, when it is removed: %v", got)
	}
	set("a", 5)
	set("b", 5)
	if h.runs["view"] != ran {
		t.Errorf("it has run %d times since it was removed", h.runs["view"]-ran)
	}
}

// With a thousand readers of as many fields, a change of one field is compared with two: its reader, and one
// that reads the keys.
func TestC24_OneChangedFieldTriggersOneOfAThousandReaders(t *testing.T) {
	const fields = 1000
	p := newProgram(t).
		handle("field", func(tx *Tx, ev *model.Event) any {
			name, _ := ev.Payload.Get("name").AsString()
			tx.Set("doc", ev.Payload.Get("v"), name)
			return nil
		}).
		add(NodeSpec{ID: "keys", Kind: Effect, Run: nodeFunc(func(tx *Tx) any { return tx.GetShallow("doc").Len() })})
	doc := map[string]any{}
	for i := range fields {
		name := fmt.Sprint("f", i)
		doc[name] = 0
		p.add(NodeSpec{ID: name, Kind: Effect, Run: nodeFunc(func(tx *Tx) any { return tx.Get("doc", name) })})
	}
	w := newWorld(t)
	w.put(home, put("doc", doc))
	h := w.owner("w1", p.Program)
	h.run()
	change := func(what string, do func()) {
		clear(h.runs)
		before := h.core.Stats()
		do()
		h.run()
		after := h.core.Stats()
		if len(h.runs) != 1 || h.runs["f7"] != 1 || after.Runs-before.Runs != 1 {
			t.Errorf("%s: these ran: %v", what, h.runs)
		}
		if n := after.Matched - before.Matched; n != 2 {
			t.Errorf("%s: %d readers were compared with the change, want 2", what, n)
		}
	}
	change("a handler's write", func() { w.send(home, "field", "e1", map[string]any{"name": "f7", "v": 1}) })
	change("a write of another runtime", func() {
		w.put(home, model.Write{Doc: "doc", Path: model.Path{"f7"}, Value: model.Int(2)})
		h.integrate()
	})
	// The place of the write is unknown, so equal parts are skipped.
	h.core.graph.change(h.core.graph.local("doc"), doc0(t, `{"f7":2}`), origin{})
	h.run()
	doc["f7"] = 2
	h.core.graph.change(h.core.graph.local("doc"), model.MustOf(doc), origin{})
	h.run()
	doc["f7"] = 3
	clear(h.runs)
	h.core.graph.change(h.core.graph.local("doc"), model.MustOf(doc), origin{})
	h.run()
	if len(h.runs) != 1 || h.runs["f7"] != 1 {
		t.Errorf("a whole document that differs in one field: these ran: %v", h.runs)
	}
}

// A node's surface is the one that it was registered with: before its first run, and after runs that write
// other places, fewer, none, and places outside it.
func TestI01_TheSurfaceIsSetAtRegistration(t *testing.T) {
	p := newProgram(t).set().
		add(NodeSpec{ID: "n", Kind: Computation, Output: "out", Writes: []Address{{Doc: "p", Path: model.Path{"x"}}, {Doc: "q"}}, Run: nodeFunc(func(tx *Tx) any {
			switch mode := num(tx.Get("mode")); mode {
			case 1:
				tx.Set("p", mode, "x", "y")
			case 2:
				tx.Set("q", mode)
				tx.Set("else", mode)
			case 3:
				tx.Set("q", mode, "deeper", "down")
			}
			return nil
		})}).
		add(NodeSpec{ID: "view", Kind: Effect, Run: nodeFunc(func(tx *Tx) any { return tx.Get("p", "x", "z") })})
	w := newWorld(t)
	h := w.host("w1", p.Program)
	if got, want := h.surfaces("n"), []string{"out 0", "p/x 0", "q 0"}; !slices.Equal(got, want) {
		t.Errorf("before anything ran: %v, want %v", got, want)
	}
	h.takeOver()
	for mode := range 5 {
		w.send(home, "set", fmt.Sprint("e", mode), map[string]any{"mode": mode})
		h.run()
		if got, want := h.surfaces("n"), []string{"out 0", "p/x 1", "q 0"}; !slices.Equal(got, want) {
			t.Errorf("in mode %d: %v, want %v", mode, got, want)
		}
		if n := h.core.Inspect().Nodes()[0]; n.Output != "out" || len(n.Writes) != 3 {
			t.Errorf("in mode %d: the tables say %s and %v", mode, n.Output, n.Writes)
		}
	}
	if n := h.runs["n"]; n != 5 {
		t.Errorf("%d runs, want one for each mode", n)
	}
}
