package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// plainDocs holds documents by "doc" and "@bank/doc", for a naive reader that just follows links.
type plainDocs map[string]model.Value

// resolve returns the value at an address, and the addresses of the hops.
func (docs plainDocs) resolve(space, doc string, path model.Path, shallow bool) (v model.Value, reads []string, err error) {
	for range maxHops + 1 {
		name := docKey{space, doc}.String()
		v = docs[name]
		i := 0
		for ; i < len(path) && !v.IsLink(); i++ {
			v = v.At(path[i : i+1])
		}
		reads = append(reads, name+path[:i].String())
		link, ok := v.AsLink()
		if !ok {
			if shallow {
				reads[len(reads)-1] += "#"
			}
			return v, reads, nil
		}
		if link.Space != "" {
			space = link.Space
		}
		if space == home {
			space = ""
		}
		doc, path = link.Doc, slices.Concat(link.Path, path[i:])
	}
	return model.Value{}, reads, fmt.Errorf("round")
}

// linkReader is an effect that reads one address.
type linkReader struct {
	id      string
	space   string
	doc     string
	path    model.Path
	shallow bool
	saw     string
}

func (r *linkReader) run(tx *Tx) (model.Value, error) {
	how := readDeep
	if r.shallow {
		how = readShallow
	}
	v := tx.of.read(r.space, r.doc, r.path, how)
	r.saw = v.String()
	if tx.Err() != nil {
		r.saw = "round"
	}
	return v, nil
}

var linkDocs = []string{"d0", "d1", "d2", "d3"}

// genLinked makes a small tree with many links, to places that may not exist.
func genLinked(depth int) *rapid.Generator[model.Value] {
	link := rapid.Custom(func(t *rapid.T) model.Value {
		l := model.Link{
			Doc:   rapid.SampledFrom([]string{"d0", "d1", "d2", "d3", "out"}).Draw(t, "target"),
			Path:  genLinkPath().Draw(t, "path"),
			Space: rapid.SampledFrom([]string{"", "", "", "bank", home}).Draw(t, "space"),
		}
		return l.Value()
	})
	leaf := rapid.OneOf(link, link, rapid.Map(rapid.IntRange(0, 2), func(i int) model.Value { return model.Int(int64(i)) }))
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf, rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), genLinked(depth-1), 1, 2), func(m map[string]model.Value) model.Value {
		var fields []model.Field
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fields = append(fields, model.F(k, m[k]))
		}
		return model.Object(fields...)
	}))
}

func genLinkPath() *rapid.Generator[model.Path] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2), func(p []string) model.Path { return p })
}

// Random documents full of links, within a space and to another, to a computation's output, to nowhere and in
// circles. After every change, each reader has seen what following the links yields and depends on exactly
// the hops, and the computation is live exactly if the hops of a reader lead to it.
func TestReadingThroughLinksEqualsFollowingThem(t *testing.T) {
	rounds, foreign, derived := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := NewProgram("links")
		var readers []*linkReader
		for i := range 5 {
			r := &linkReader{
				id: fmt.Sprint("r", i), doc: rapid.SampledFrom(linkDocs).Draw(t, "doc"), path: genLinkPath().Draw(t, "path"),
				shallow: rapid.Bool().Draw(t, "shallow"),
			}
			readers = append(readers, r)
			if err := p.Add(NodeSpec{ID: r.id, Kind: Effect, Run: r.run}); err != nil {
				t.Fatal(err)
			}
		}
		err := p.Add(NodeSpec{ID: "out", Kind: Computation, Output: "out", Run: func(tx *Tx) (model.Value, error) {
			return model.Object(model.F("a", tx.Get("in"))), nil
		}})
		if err == nil {
			err = p.Handle("set", func(tx *Tx, ev *model.Event) (model.Value, error) {
				path := model.Path{}
				for e := range ev.Payload.Get("path").Elements() {
					s, _ := e.AsString()
					path = append(path, s)
				}
				doc, _ := ev.Payload.Get("doc").AsString()
				tx.Set(doc, ev.Payload.Get("value"), path...)
				return model.Value{}, nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		h := w.owner("w1", p)
		for i := range 12 {
			doc := rapid.SampledFrom(linkDocs).Draw(t, "written")
			switch rapid.SampledFrom([]string{"put", "put", "bank", "in", "through"}).Draw(t, "move") {
			case "put":
				w.put(home, model.Write{Doc: doc, Value: genLinked(2).Draw(t, "value")})
			case "bank":
				w.put("bank", model.Write{Doc: doc, Value: genLinked(2).Draw(t, "value")})
			case "in":
				w.put(home, put("in", rapid.IntRange(0, 2).Draw(t, "in")))
			case "through":
				w.checkWriteThrough(t, h, fmt.Sprint("e", i), doc, genLinkPath().Draw(t, "at"), genLinked(0).Draw(t, "value"))
			}
			h.integrate()
			h.run()
			docs := w.plain()
			needed := false
			for _, r := range readers {
				v, reads, err := docs.resolve("", r.doc, r.path, r.shallow)
				want := v.String()
				if err != nil {
					want = "round"
					rounds++
				}
				// The inside of a value that was read shallowly may be outdated.
				same := r.saw == want || r.shallow && model.ShallowEqual(doc0(t, strings.Replace(r.saw, "absent", "", 1)), v)
				if !same {
					t.Fatalf("%s reads %s%s, shallow %v, and saw %s, want %s; there is %v", r.id, r.doc, r.path, r.shallow, r.saw, want, docs)
				}
				got := nodeState(t, h, r.id).Reads
				if err == nil && !slices.Equal(uncovered(reads), got) {
					t.Fatalf("%s reads %s%s through %v, and depends on %v", r.id, r.doc, r.path, reads, got)
				}
				for _, a := range got {
					needed = needed || a == "out" || strings.HasPrefix(a, "out/") || a == "out#"
				}
				if strings.Contains(fmt.Sprint(reads), "@bank") {
					foreign++
				}
			}
			if needed {
				derived++
			}
			if live := nodeState(t, h, "out").Live; live != needed {
				t.Fatalf("the computation is live: %v, and is read: %v", live, needed)
			}
		}
	})
	if rounds == 0 || foreign == 0 || derived == 0 {
		t.Errorf("%d circles, %d reads of another space and %d of a derived document; all must occur", rounds, foreign, derived)
	}
}

// uncovered drops repeated addresses, and those that a deep read of an ancestor covers.
func uncovered(reads []string) []string {
	var out []string
	for i, r := range reads {
		covered := slices.Contains(reads[:i], r)
		for _, o := range reads {
			deep := !strings.HasSuffix(o, "#")
			covered = covered || deep && (strings.HasPrefix(r, o+"/") || r == o+"#")
		}
		if !covered {
			out = append(out, r)
		}
	}
	return out
}

func nodeState(t tester, h *host, id string) NodeState {
	t.Helper()
	for _, n := range h.core.Nodes() {
		if n.ID == id {
			return n
		}
	}
	t.Fatalf("there is no node %s", id)
	return NodeState{}
}

// plain returns the documents of both spaces, with the derived document as it should be.
func (w *world) plain() plainDocs {
	docs := plainDocs{}
	r := w.replica(home)
	for _, id := range r.DocIDs() {
		docs[id] = r.Doc(id).Value
	}
	docs["out"] = model.Object(model.F("a", docs["in"]))
	r = w.replica("bank")
	for _, id := range r.DocIDs() {
		docs["@bank/"+id] = r.Doc(id).Value
	}
	return docs
}

// checkWriteThrough makes a handler write to an address: the write goes where links on the way lead, and is
// refused if that is another space, a derived document or nowhere.
func (w *world) checkWriteThrough(t *rapid.T, h *host, event, doc string, path model.Path, v model.Value) {
	h.integrate()
	h.run()
	docs := w.plain()
	want, refused := docs.write(doc, path, v)
	w.send(home, "set", event, map[string]any{"doc": doc, "path": append([]string{}, path...), "value": v})
	h.run()
	rc := w.receipt(home, event)
	if failed := rc.Outcome != model.Handled; failed != refused {
		t.Fatalf("a write of %s to %s%s: failed %v (%s), want %v; there was %v", v, doc, path, failed, rc.Error, refused, docs)
	}
	got := w.plain()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if !model.Equal(got[id], want[id]) {
			t.Fatalf("a write of %s to %s%s made %s to %s, want %s", v, doc, path, id, got[id], want[id])
		}
	}
}

// write returns the documents after a write, and whether it is refused.
func (docs plainDocs) write(doc string, path model.Path, v model.Value) (after plainDocs, refused bool) {
	for range maxHops + 1 {
		x := docs[doc]
		i := 0
		for ; i < len(path) && !x.IsLink(); i++ {
			x = x.At(path[i : i+1])
		}
		link, ok := x.AsLink()
		switch {
		case i == len(path) && doc == "out":
			return docs, true
		case i == len(path):
			changed, err := docs[doc].Set(path, v)
			after = maps.Clone(docs)
			after[doc] = changed
			return after, err != nil
		case !ok || link.Space != "" && link.Space != home:
			return docs, true
		}
		doc, path = link.Doc, slices.Concat(link.Path, path[i:])
	}
	return docs, true
}

// Reads and writes follow the permitted number of hops; one more is reported as a circle, with the requested
// address.
func TestLinksAreFollowedUpToALimit(t *testing.T) {
	for hops, ok := range map[int]bool{1: true, maxHops: true, maxHops + 1: false} {
		p := newProgram(t).handle("read", func(tx *Tx, _ *model.Event) any { return tx.Get("l0", "x") }).
			handle("write", func(tx *Tx, _ *model.Event) any {
				tx.Set("l0", 2, "x")
				return nil
			})
		w := newWorld(t)
		var chain []model.Write
		for i := range hops {
			chain = append(chain, model.Write{Doc: fmt.Sprint("l", i), Value: model.Link{Doc: fmt.Sprint("l", i+1)}.Value()})
		}
		last := fmt.Sprint("l", hops)
		w.put(home, append(chain, put(last, map[string]any{"x": 1}))...)
		h := w.owner("w1", p.Program)
		w.send(home, "write", "e1", nil)
		w.send(home, "read", "e2", nil)
		h.run()
		wrote, read := w.receipt(home, "e1"), w.receipt(home, "e2")
		if ok {
			if read.Result.String() != "2" {
				t.Errorf("%d links: read %s (%s), want 2", hops, read.Result, read.Error)
			}
			continue
		}
		const round = "l0/x: more than 32 links on the way; they go round"
		if wrote.Error != "write "+round || read.Error != "read "+round {
			t.Errorf("%d links: %q and %q", hops, wrote.Error, read.Error)
		}
	}
}

// A link that is read in another space, without following it, names that space: following it leads where
// reading through it does.
func TestALinkNamesItsSpace(t *testing.T) {
	var got []string
	p := newProgram(t).add(NodeSpec{ID: "n", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		l, ok := tx.Link("a", "x")
		got = []string{l.String(), fmt.Sprint(ok), tx.Follow(l).String(), tx.Get("a", "x").String()}
		return model.Value{}, nil
	}})
	w := newWorld(t)
	w.put(home, model.Write{Doc: "a", Value: model.Link{Space: "bank", Doc: "b"}.Value()})
	w.put("bank", put("b", map[string]any{"x": model.Link{Doc: "c"}}), put("c", 5))
	h := w.owner("w1", p.Program)
	h.run()
	if want := []string{"-> @bank/c", "true", "5", "5"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
