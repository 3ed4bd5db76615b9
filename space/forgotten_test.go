package space

import (
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// purgeMarkers purges the markers of deletions up to the saved mark, as a worker does after a while.
func (w *world) purgeMarkers(space string) {
	st := w.saved[space]
	st.Docs = slices.DeleteFunc(slices.Clone(st.Docs), func(d model.StateDoc) bool {
		return d.Data == nil && d.Seq <= st.Mark.Seq
	})
	w.saved[space] = st
}

// sleep unloads an unneeded space and loads it again: it is saved, and its markers are purged in between.
func (h *host) sleep(m memory, foreign ...string) {
	h.t.Helper()
	h.integrate()
	h.run()
	m.save(h.t, h)
	h.checkpoint()
	h.w.purgeMarkers(home)
	for _, space := range foreign {
		h.w.purgeMarkers(space)
	}
	h.load()
	h.core.Rehydrate(m.list())
	h.takeOver()
	h.run()
}

func gone(doc string) model.Write { return model.Write{Doc: doc} }

func exists(v model.Value) any {
	return map[string]any{"there": !v.IsAbsent(), "null": v.Kind() == model.KindNull}
}

func aLink(doc string, path ...string) model.Value { return model.Link{Doc: doc, Path: path}.Value() }

// wayOfReading is a computation, the documents when it runs, and the writes after that. A deletion leaves no
// trace: its marker is purged before the space is loaded again.
type wayOfReading struct {
	name   string
	before []model.Write
	read   func(tx *Tx) any
	then   []model.Write
}

var waysOfReading = []wayOfReading{
	{"a document", []model.Write{put("x", 1)}, func(tx *Tx) any { return num(tx.Get("x")) }, []model.Write{gone("x")}},
	{"a place", []model.Write{put("x", map[string]any{"a": 1})}, func(tx *Tx) any { return num(tx.Get("x", "a")) }, []model.Write{gone("x")}},
	{"its children", []model.Write{put("x", map[string]any{"a": 1, "b": 2})}, func(tx *Tx) any { return tx.GetShallow("x").Len() }, []model.Write{gone("x")}},
	{"the length of a list", []model.Write{put("x", []any{1, 2})}, func(tx *Tx) any { return tx.GetShallow("x").Len() }, []model.Write{gone("x")}},
	{"whether it is there", []model.Write{put("x", 1)}, func(tx *Tx) any { return exists(tx.Get("x")) }, []model.Write{gone("x")}},
	{"null, which is gone", []model.Write{put("x", model.Null())}, func(tx *Tx) any { return exists(tx.Get("x")) }, []model.Write{gone("x")}},
	{"nothing, which is null by now", []model.Write{put("y", 1)}, func(tx *Tx) any { return exists(tx.Get("x")) }, []model.Write{put("x", model.Null())}},
	{
		"a place, which is null by now",
		[]model.Write{put("x", map[string]any{"b": 1})},
		func(tx *Tx) any { return exists(tx.Get("x", "a")) },
		[]model.Write{put("x", map[string]any{"b": 1, "a": model.Null()})},
	},
	{"the shape of null", []model.Write{put("x", model.Null())}, func(tx *Tx) any { return exists(tx.GetShallow("x")) }, []model.Write{gone("x")}},
	{"a link itself", []model.Write{put("x", aLink("y"))}, func(tx *Tx) any { _, ok := tx.Link("x"); return ok }, []model.Write{gone("x")}},
	{"through a link, which is gone", []model.Write{put("x", aLink("y")), put("y", 1)}, func(tx *Tx) any { return num(tx.Get("x")) }, []model.Write{gone("x")}},
	{"through a link, the end of which is gone", []model.Write{put("x", aLink("y")), put("y", 1)}, func(tx *Tx) any { return num(tx.Get("x")) }, []model.Write{gone("y")}},
	{
		"a place, which a link leads to by now",
		[]model.Write{put("x", map[string]any{"b": 1}), put("y", map[string]any{"a": 7})},
		func(tx *Tx) any { return num(tx.Get("x", "a")) },
		[]model.Write{put("x", aLink("y"))},
	},
	{
		"nothing, which is a link by now",
		[]model.Write{put("y", map[string]any{"a": 7})},
		func(tx *Tx) any { return num(tx.Get("x", "a")) },
		[]model.Write{put("x", aLink("y"))},
	},
	{"one of two", []model.Write{put("x", 1), put("y", 2)}, func(tx *Tx) any { return num(tx.Get("x")) + num(tx.Get("y")) }, []model.Write{gone("x")}},
	{"its own output", []model.Write{put("x", 1)}, func(tx *Tx) any { return num(tx.Get("x")) }, []model.Write{gone("out")}},
}

// The deletion of a document that a computation has read is a change, even if no trace of the deletion is
// left: no reader may see the old value.
func TestI7_ADeletionThatIsForgottenIsAChange(t *testing.T) {
	for _, c := range waysOfReading {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.owner("w1", newProgram(t).compute("out", c.read).Program)
			w.put(home, c.before...)
			h.integrate()
			h.observe("out")
			h.run()
			saved := memory{}
			saved.save(t, h)
			h.core.Unobserve("out")
			w.put(home, c.then...)
			h.sleep(saved)
			if n := h.runs["out"]; n != 0 {
				t.Errorf("%d runs without an observer", n)
			}
			h.observe("out")
			h.run()
			stays := w.host("w2", newProgram(t).compute("out", c.read).Program) // without any observations
			stays.takeOver()
			stays.observe("out")
			stays.run()
			if h.runs["out"] != 1 {
				t.Errorf("%d runs, want 1", h.runs["out"])
			}
			wantValue(t, h, "out", stays.value("out"))
		})
	}
}

// What has not changed costs nothing, and neither does what was always absent.
func TestI7_AnAbsentDocumentThatStaysAbsentIsNoChange(t *testing.T) {
	w := newWorld(t)
	p := newProgram(t).
		compute("nothing", func(tx *Tx) any { return tx.Get("never", "a") }).
		compute("none", func(tx *Tx) any { return exists(tx.Get("never")) }).
		compute("few", func(tx *Tx) any { return tx.GetShallow("never").Len() })
	h := w.owner("w1", p.Program)
	outs := []string{"nothing", "none", "few"}
	for _, out := range outs {
		h.observe(out)
	}
	h.run()
	h.sleep(memoryOf(t, h))
	for _, out := range outs {
		h.observe(out)
	}
	h.run()
	for _, out := range outs {
		if n := h.runs[out]; n != 0 {
			t.Errorf("%s runs %d times, and nothing has changed", out, n)
		}
	}
}

func memoryOf(t *testing.T, h *host) memory {
	m := memory{}
	m.save(t, h)
	return m
}

// A foreign document that was null and is now absent has changed as well.
func TestI7_AnAbsentForeignDocumentIsNotNull(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, then model.Write
	}{
		{"null is gone", put("rate", model.Null()), gone("rate")},
		{"a value is gone", put("rate", 3), gone("rate")},
		{"nothing is null", gone("rate"), put("rate", model.Null())},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := newProgram(t).compute("out", func(tx *Tx) any { return exists(tx.GetFrom("bank", "rate")) })
			h := w.owner("w1", p.Program)
			w.put("bank", c.before)
			h.observe("out")
			h.run()
			saved := memoryOf(t, h)
			h.core.Unobserve("out")
			h.run()
			w.put("bank", c.then)
			h.sleep(saved, "bank")
			h.observe("out")
			h.run()
			wantValue(t, h, "out", answerOf(exists(c.then.Value)))
		})
	}
}

func answerOf(v any) string { return model.MustOf(v).String() }

// A child is resumed in the middle of a pass: writes of this runtime that are not in the log yet count as
// changes too.
func TestI7_AChildIsComparedWithUnconfirmedWrites(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(tx *Tx)
		want string
	}{
		{"changed", func(tx *Tx) { tx.Set("x", 2) }, "2"},
		{"gone", func(tx *Tx) { tx.Delete("x") }, "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := newProgram(t).
				handle("go", func(tx *Tx, _ *model.Event) any {
					c.then(tx)
					tx.Set("on", 1)
					return nil
				}).
				add(NodeSpec{ID: "parent", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
					if num(tx.Get("on")) == 1 {
						tx.Node(NodeSpec{ID: "child", Kind: Computation, Output: "child", Run: func(tx *Tx) (model.Value, error) {
							return model.Int(num(tx.Get("x"))), nil
						}})
					}
					return model.Value{}, nil
				}})
			h := w.owner("w1", p.Program)
			w.put(home, put("x", 1), put("on", 1))
			h.integrate()
			h.observe("child")
			h.run()
			wantValue(t, h, "child", "1")
			saved := memoryOf(t, h)
			h.checkpoint()
			w.put(home, put("on", 0)) // and the removal of the child is not saved
			h.load()
			h.core.Rehydrate(saved.list())
			h.takeOver()
			h.run()
			h.observe("child")
			w.send(home, "go", "e1", nil)
			h.run()
			wantValue(t, h, "child", c.want)
		})
	}
}
