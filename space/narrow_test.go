package space

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// items returns a document of about 100 KB, in which some items have another name.
func items(names map[int]string) model.Value {
	doc := map[string]any{}
	for i := range 100 {
		name := cmp.Or(names[i], fmt.Sprint("item ", i))
		doc[fmt.Sprint(i)] = map[string]any{"name": name, "text": strings.Repeat("x", 1000)}
	}
	return model.MustOf(doc)
}

// A handler that replaces a document of 100 KB, in which one field is another, writes that field.
func TestNarrow_AReplacedDocumentLogsWhatDiffers(t *testing.T) {
	docs := map[string]model.Value{
		"first": items(nil), "field": items(map[int]string{7: "another"}), "same": items(map[int]string{7: "another"}),
		"all": model.Object(model.F("text", strings.Repeat("y", 100_000))), "scalar": model.String(strings.Repeat("z", 2000)), "small": model.Object(model.F("a", 1)),
	}
	p := newProgram(t).handle("put", func(tx *Tx, ev *model.Event) any {
		tx.Set("doc", 1, "before")
		tx.Set("doc", docs[ev.ID])
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for _, c := range []struct {
		id          string
		writes      int
		least, most int
	}{{"first", 2, 100_000, 120_000}, {"field", 1, 1, 400}, {"same", 0, 1, 400}, {"all", 2, 100_000, 101_000}, {"small", 2, 1, 400}, {"scalar", 2, 2000, 3000}} {
		w.send(home, "put", c.id, nil)
		h.run()
		e := w.logs[home][len(w.logs[home])-1]
		tx := w.commit(e).Txs[0]
		if n := len(e.Data); len(tx.Writes) != c.writes || n < c.least || n > c.most {
			t.Errorf("%s: %d writes in %d bytes; want %d in %d to %d", c.id, len(tx.Writes), n, c.writes, c.least, c.most)
		}
		if got := h.core.Value("doc"); !model.Equal(got, docs[c.id]) {
			t.Errorf("%s: the document is %.100s", c.id, got)
		}
	}
}

// deep has 10,000 values below 900 objects, 94 KB altogether. The paths to all of them are a thousand times as large.
func deep(n int) model.Value {
	leaves := map[string]any{}
	for i := range 10_000 {
		leaves[fmt.Sprint(i)] = n
	}
	v := model.MustOf(leaves)
	for range 900 {
		v = model.Object(model.F("a", v))
	}
	return v
}

// What a computation derives is logged as a whole if the paths to what differs have no room in a commit.
func TestNarrow_AnOutputThatDiffersInManyDeepPlacesIsLoggedAsAWhole(t *testing.T) {
	p := newProgram(t).set().compute("deep", func(tx *Tx) any { return deep(int(num(tx.Get("in")))) })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.observe("deep")
	for i := range 3 {
		w.send(home, "set", fmt.Sprint("e", i), map[string]any{"in": i})
		h.run()
		if got := w.replica(home).Doc("deep").Value; !model.Equal(got, deep(i)) {
			t.Errorf("after %d the log has a document with %d bytes, and %d errors of nodes", i, len(got.AppendJSON(nil)), h.core.Stats().NodeErrors)
		}
	}
}

// Documents that differ in many deep places are compared no further than the difference is of use.
func TestNarrow_ALargeDifferenceIsNotBuilt(t *testing.T) {
	docs := []model.Value{deep(1), deep(2)}
	p := newProgram(t).handle("put", func(tx *Tx, ev *model.Event) any {
		i, _ := ev.Payload.AsInt()
		tx.Set("doc", docs[i])
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	var before, after runtime.MemStats
	for i := range docs {
		w.send(home, "put", fmt.Sprint("e", i), i)
		runtime.ReadMemStats(&before)
		h.run()
		runtime.ReadMemStats(&after)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
		t.Errorf("to replace a document of %d bytes takes %d", len(docs[1].AppendJSON(nil)), n)
	}
}

// Whatever a handler sets in place of whatever document: a follower that applies the writes of the log has what the space has, and the log is not larger than the
// documents that were set.
func TestNarrow_PropertyTheLogHasTheDocument(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		text := rapid.Map(rapid.IntRange(0, 1500), func(n int) string { return strings.Repeat("x", n) })
		part := rapid.OneOf(rapid.Just(model.Value{}), rapid.Map(text, model.String), rapid.Map(rapid.Int64(), model.Int), genTree(2))
		var set []model.Value
		p := newProgram(tt).handle("put", func(tx *Tx, ev *model.Event) any {
			i, _ := ev.Payload.AsInt()
			tx.Set("doc", set[i])
			return nil
		})
		w := newWorld(t)
		h := w.owner("w1", p.Program)
		doc := model.Object()
		for i := range rapid.IntRange(2, 12).Draw(t, "events") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "key")
				doc, _ = doc.Set(model.Path{key}, part.Draw(t, "part"))
			}
			if rapid.IntRange(0, 9).Draw(t, "no object") == 0 {
				doc = genTree(1).Draw(t, "root")
			}
			set = append(set, doc)
			w.send(home, "put", fmt.Sprint("e", i), i)
			h.run()
			if doc.Kind() != model.KindObject {
				doc = model.Object()
			}
		}
		var log model.Value
		i := 0
		for _, e := range w.logs[home] {
			for _, tx := range w.commit(e).Txs {
				if tx.Receipt == nil {
					continue
				}
				n := 0
				for _, write := range tx.Writes {
					n += len(write.String())
					var err error
					if log, err = write.Apply(log); err != nil {
						t.Fatal(err)
					}
				}
				if whole := len(set[i].AppendJSON(nil)) + 100; n > whole {
					t.Errorf("event %d has written %d bytes, the document as a whole has %d", i, n, whole)
				}
				if !model.Equal(log, set[i]) {
					t.Fatalf("after event %d the log has %s, want %s", i, log, set[i])
				}
				i++
			}
		}
		if i != len(set) {
			t.Errorf("%d receipts of %d events", i, len(set))
		}
		if got := h.core.Value("doc"); !model.Equal(got, set[len(set)-1]) {
			t.Errorf("the space has %s, want %s", got, set[len(set)-1])
		}
	})
}
