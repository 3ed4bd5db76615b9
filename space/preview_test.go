package space

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// A handler never sees an old value of what is derived from its own writes (docs/adr/0070).
func TestI4_AHandlerReadsWhatFollowsFromItsOwnWrites(t *testing.T) {
	p := shop(t).handle("quote", func(tx *Tx, _ *model.Event) any {
		before := tx.Get("total").String()
		tx.Set("price1", 10)
		first := tx.Get("total").String()
		peeked := tx.Peek("total").String()
		tx.Set("price2", 1)
		second := tx.Get("total").String()
		tx.Delete("price1")
		return strings.Join([]string{before, first, peeked, second, tx.Get("total").String(), tx.Get("net").String()}, " ")
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "set", "e1", map[string]any{"price1": 2, "price2": 3})
	w.send(home, "quote", "e2", nil)
	h.run()
	if got := w.receipt(home, "e2").Result.String(); got != `"10 26 26 22 2 1"` {
		t.Errorf("the handler has read %s", got)
	}
	wantValue(t, h, "price1", "absent")
	w.send(home, "pay", "e3", nil)
	h.run()
	wantValue(t, h, "paid", "2") // and what has been committed agrees
}

// It calls what lies between the write and the read, once per write, and nothing else.
func TestPreview_CallsWhatMovesOnce(t *testing.T) {
	calls := map[string]int{}
	counted := func(name string, from ...string) func(*Tx) any {
		return func(tx *Tx) any {
			calls[name]++
			n := int64(0)
			for _, f := range from {
				n += num(tx.Get(f))
			}
			return n
		}
	}
	p := newProgram(t).
		compute("sign", func(tx *Tx) any { calls["sign"]++; return num(tx.Get("x")) > 0 }).
		compute("label", func(tx *Tx) any { calls["label"]++; return tx.Get("sign") }).
		compute("sum", counted("sum", "x", "y")).
		compute("top", counted("top", "sum", "other")).
		compute("other", counted("other", "z")).
		handle("read", func(tx *Tx, _ *model.Event) any {
			clear(calls)
			tx.Set("x", 5)
			tx.Get("unrelated")
			for range 10 {
				tx.Get("top")
				tx.Get("sum")
				tx.Get("label")
				tx.Get("other")
			}
			return fmt.Sprint(calls)
		}).
		handle("warm", func(tx *Tx, _ *model.Event) any {
			tx.Set("x", 1)
			return nil
		}).
		handle("all", func(tx *Tx, _ *model.Event) any {
			tx.Get("top")
			return tx.Get("label")
		})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "warm", "e1", nil)
	w.send(home, "all", "e2", nil)
	h.run()
	var traced []string
	h.core.cfg.Trace.PreviewBegan = func(node string) { traced = append(traced, "+"+node) }
	h.core.cfg.Trace.PreviewEnd = func(node string) { traced = append(traced, "-"+node) }
	w.send(home, "read", "e3", nil)
	h.run()
	if got := w.receipt(home, "e3").Result.String(); got != `"map[sign:1 sum:1 top:1]"` {
		t.Errorf("calls: %s", got)
	}
	if got := strings.Join(traced, " "); !strings.HasSuffix(got, "+sum -sum +top -top +sign -sign") { // of the last attempt
		t.Errorf("calls that are traced: %s", got)
	}
	if n := h.core.Stats().Previews; n < 3 {
		t.Errorf("%d previews are counted", n)
	}
}

// What cannot be had before the commit is an error, and not an old value.
func TestPreview_RefusesWhatOnlyARunCanDecide(t *testing.T) {
	parts := func(tx *Tx) (model.Value, error) {
		n := int64(0)
		for i := range num(tx.Get("count")) {
			id := fmt.Sprint("part", i)
			tx.Node(NodeSpec{ID: id, Kind: Computation, Output: id, Run: func(tx *Tx) (model.Value, error) {
				return model.Int(num(tx.Get("base")) + i), nil
			}})
			n += num(tx.Get(id))
		}
		return model.Int(n), nil
	}
	for _, c := range []struct{ writes, reads, want string }{
		{"base", "parts", "41"}, // of the same children
		{"base", "part1", "21"},
		{"count", "part1", "read part1, which follows from what the handler has written: node part1 is made by node parts, which runs after the handler; read it in a later event"},
		{"count", "parts", "read parts, which follows from what the handler has written: node part0 is made by node parts, which runs after the handler; read it in a later event"},
		{"count", "makes", "node made2 would be made, which happens after the handler; read what depends on it in a later event"},
		{"base", "makes", "node made0 would get another function, which happens after the handler; read what depends on it in a later event"},
		{"count", "x", "0"}, // a circle that this does not concern
		{"seed", "x", "node x is part of a circle, which comes to rest after the handler; read it in a later event"},
		{"seed", "y", "node y is part of a circle, which comes to rest after the handler; read it in a later event"},
		{"seed", "above", "node y is part of a circle, which comes to rest after the handler; read it in a later event"},
		{"count", "copy", "read copy, which follows from what the handler has written: node copier writes there when it runs, which is after the handler; read it in a later event"},
		{"base", "copy", "2"},
		{"base", "picky", "read picky, which follows from what the handler has written: node picky: base is 20"},
		{"seed", "picky", "1"},
	} {
		t.Run(c.writes+" "+c.reads, func(t *testing.T) {
			p := newProgram(t).
				add(NodeSpec{ID: "parts", Kind: Computation, Output: "parts", Run: parts}).
				compute("x", func(tx *Tx) any { return min(9, num(tx.Get("y"))+num(tx.Get("seed"))) }).
				add(NodeSpec{ID: "makes", Kind: Computation, Output: "makes", Run: func(tx *Tx) (model.Value, error) {
					for i := range num(tx.Get("count")) {
						tx.Node(NodeSpec{ID: fmt.Sprint("made", i), Kind: Effect, Version: tx.Get("base").String(), Run: func(*Tx) (model.Value, error) { return model.Value{}, nil }})
					}
					return tx.Get("count"), nil
				}}).
				compute("y", func(tx *Tx) any { return tx.Get("x") }).
				compute("above", func(tx *Tx) any { return tx.Get("y") }).
				compute("picky", func(tx *Tx) any {
					if n := num(tx.Get("base")); n > 1 {
						return fmt.Errorf("base is %d", n)
					}
					return 1
				}).
				add(NodeSpec{ID: "copier", Kind: Effect, Writes: []Address{{Doc: "copy"}}, Run: func(tx *Tx) (model.Value, error) {
					tx.Set("copy", tx.Get("count"))
					return model.Value{}, nil
				}}).
				handle("begin", func(tx *Tx, _ *model.Event) any {
					tx.Set("base", 1)
					tx.Set("count", 2)
					return nil
				}).
				handle("warm", func(tx *Tx, _ *model.Event) any {
					for _, d := range []string{"parts", "makes", "above", "x", "picky", "copy"} {
						tx.Get(d)
					}
					return nil
				}).
				handle("try", func(tx *Tx, _ *model.Event) any {
					tx.Set(c.writes, 20)
					if c.writes == "count" {
						tx.Set(c.writes, 3)
					}
					return tx.Get(c.reads)
				})
			w := newWorld(t)
			h := w.owner("w1", p.Program)
			w.send(home, "begin", "e1", nil)
			w.send(home, "warm", "e2", nil)
			w.send(home, "try", "e3", nil)
			h.run()
			rc := w.receipt(home, "e3")
			if got := rc.Error + rc.Result.String(); !strings.HasPrefix(got, c.want) && !strings.HasSuffix(rc.Error, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// Random programs without circles: whatever a handler has written, it reads what an evaluation of everything
// from the documents yields.
func TestI4_RandomHandlersReadWhatFollowsFromTheirWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs := rapid.IntRange(1, 4).Draw(t, "inputs")
		type formula struct{ when, then, otherwise string }
		name := func(i int) string {
			if i < inputs {
				return fmt.Sprint("in", i)
			}
			return fmt.Sprint("out", i)
		}
		formulas := rapid.SliceOfN(rapid.Just(0), 1, 10).Draw(t, "formulas")
		all := map[string]formula{}
		p := NewProgram("random")
		for i := range formulas {
			at := inputs + i
			pick := func(what string) string { return name(rapid.IntRange(0, at-1).Draw(t, what)) }
			f := formula{pick("when"), pick("then"), pick("otherwise")}
			all[name(at)] = f
			if err := p.Add(NodeSpec{ID: name(at), Kind: Computation, Output: name(at), Run: func(tx *Tx) (model.Value, error) {
				if num(tx.Get(f.when))%2 == 0 {
					return model.Int(num(tx.Get(f.then)) + 1), nil
				}
				return model.Int(num(tx.Get(f.otherwise)) / 2), nil
			}}); err != nil {
				t.Fatal(err)
			}
		}
		now := map[string]int64{}
		var value func(doc string) int64
		value = func(doc string) int64 {
			f, ok := all[doc]
			switch {
			case !ok:
				return now[doc]
			case value(f.when)%2 == 0:
				return value(f.then) + 1
			}
			return value(f.otherwise) / 2
		}
		last := inputs + len(formulas) - 1
		if err := p.Handle("do", func(tx *Tx, ev *model.Event) (model.Value, error) {
			var seen []any
			for step := range ev.Payload.Elements() {
				doc, _ := step.Get("doc").AsString()
				if v := step.Get("v"); !v.IsAbsent() {
					tx.Set(doc, v)
				} else {
					seen = append(seen, num(tx.Get(doc)))
				}
			}
			return model.Of(seen)
		}); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		h := w.owner("w1", p)
		for e := range rapid.IntRange(1, 4).Draw(t, "events") {
			var steps []map[string]any
			var want []any
			for range rapid.IntRange(1, 8).Draw(t, "steps") {
				if rapid.Bool().Draw(t, "write") {
					doc, v := name(rapid.IntRange(0, inputs-1).Draw(t, "doc")), rapid.Int64Range(0, 5).Draw(t, "v")
					steps, now[doc] = append(steps, map[string]any{"doc": doc, "v": v}), v
				} else {
					doc := name(rapid.IntRange(0, last).Draw(t, "doc"))
					steps, want = append(steps, map[string]any{"doc": doc}), append(want, value(doc))
				}
			}
			id := fmt.Sprint("e", e)
			w.send(home, "do", id, steps)
			h.run()
			rc := w.receipt(home, id)
			if expected := model.MustOf(want); rc == nil || rc.Error != "" || !model.Equal(rc.Result, expected) {
				t.Fatalf("event %s, steps %v: got %+v, want %s", id, steps, rc, expected)
			}
		}
	})
}
