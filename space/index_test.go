package space

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The index of readers by path decides most cases without visiting the reader, so it is compared with
// touches, which examines each reader and which match_test.go compares with the rules.

var indexSteps = []string{"a", "b", "0", "1"}

// genTree makes a value in which paths over indexSteps often lead somewhere, with links among the leaves.
func genTree(depth int) *rapid.Generator[model.Value] {
	leaf := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 1), func(i int) model.Value { return model.Int(int64(i)) }),
		rapid.Just(model.Null()),
		rapid.Map(rapid.SampledFrom([]string{"x", "y"}), func(doc string) model.Value { return model.Link{Doc: doc}.Value() }),
	)
	if depth == 0 {
		return leaf
	}
	object := rapid.Map(rapid.MapOfN(rapid.SampledFrom(indexSteps), genTree(depth-1), 0, 4), func(m map[string]model.Value) model.Value {
		var fields []model.Field
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fields = append(fields, model.F(k, m[k]))
		}
		return model.Object(fields...)
	})
	array := rapid.Map(rapid.SliceOfN(genTree(depth-1), 0, 2), func(s []model.Value) model.Value { return model.Array(s...) })
	return rapid.OneOf(leaf, object, object, array)
}

func genIndexPath(longest int) *rapid.Generator[model.Path] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(indexSteps), 0, longest), func(p []string) model.Path { return p })
}

// genWrites makes writes that are possible in v, and the value after them.
func genWrites(t *rapid.T, v model.Value) (after model.Value, paths []model.Path) {
	after = v
	for range rapid.IntRange(1, 3).Draw(t, "writes") {
		w := model.Write{Doc: "d", Path: genIndexPath(4).Draw(t, "at")}
		if w.Delete = rapid.IntRange(0, 3).Draw(t, "delete") == 0; !w.Delete {
			w.Value = genTree(2).Draw(t, "value")
		}
		next, err := w.Apply(after)
		if err != nil || model.Equal(next, after) {
			continue // Tx.apply drops these
		}
		after, paths = next, append(paths, w.Path)
	}
	return after, paths
}

// readerBench is a set of readers of one document, with an index regardless of their number.
type readerBench struct {
	index   pathIndex
	readers []*dep
	next    int
}

func (b *readerBench) add(path model.Path, shallow bool) {
	b.next++
	r := &dep{node: &node{spec: &declaration{ID: fmt.Sprint("n", b.next)}}, doc: &doc{key: docKey{doc: "d"}}, path: path, shallow: shallow}
	b.readers = append(b.readers, r)
	b.index.add(r)
}

func (b *readerBench) remove(i int) {
	r := b.readers[i]
	b.readers = slices.Delete(b.readers, i, i+1)
	b.index.root.remove(r, r.path)
}

// concerned returns the names of the readers that a change concerns according to touches.
func (b *readerBench) concerned(before, after model.Value) []string {
	var out []string
	for _, r := range b.readers {
		if touches(before, after, r.path, r.shallow) {
			out = append(out, r.node.id()+" "+r.String())
		}
	}
	slices.Sort(out)
	return out
}

func (b *readerBench) visited(before, after model.Value, paths []model.Path) (out []string, tested int) {
	tested = b.index.match(before, after, paths, func(r *dep) { out = append(out, r.node.id()+" "+r.String()) })
	slices.Sort(out)
	return out, tested
}

// Readers come and go, values change under them, and each change visits exactly the readers that it concerns,
// once each: with and without the places of the writes, through links and arrays, and on paths that begin or
// cease to lead somewhere.
func TestI3_TheIndexVisitsExactlyTheReadersThatAreConcerned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b readerBench
		value := rapid.OneOf(rapid.Just(model.Value{}), genTree(3)).Draw(t, "value")
		for range rapid.IntRange(1, 30).Draw(t, "moves") {
			switch rapid.SampledFrom([]string{"add", "add", "add", "remove", "write", "replace"}).Draw(t, "move") {
			case "add":
				b.add(genIndexPath(5).Draw(t, "path"), rapid.Bool().Draw(t, "shallow"))
			case "remove":
				if n := len(b.readers); n > 0 {
					b.remove(rapid.IntRange(0, n-1).Draw(t, "which"))
				}
			case "write":
				after, paths := genWrites(t, value)
				b.check(t, value, after, paths)
				b.check(t, value, after, nil)
				value = after
			case "replace":
				after := rapid.OneOf(rapid.Just(model.Value{}), genTree(3)).Draw(t, "after")
				b.check(t, value, after, nil)
				value = after
			}
		}
	})
}

func (b *readerBench) check(t *rapid.T, before, after model.Value, paths []model.Path) {
	if model.Equal(before, after) {
		return // graph.change visits no reader then
	}
	got, tested := b.visited(before, after, paths)
	if want := b.concerned(before, after); !slices.Equal(got, want) {
		t.Fatalf("%s -> %s, written at %q: visited %v, want %v", before, after, paths, got, want)
	}
	if tested > len(b.readers) {
		t.Fatalf("%d readers tested, there are %d", tested, len(b.readers))
	}
	if n := b.index.root.size; n != len(b.readers) {
		t.Fatalf("the index has %d readers, there are %d", n, len(b.readers))
	}
}

// twoGraphs has the same readers of the same document twice, once with an index as soon as it pays off and
// once without.
type twoGraphs struct {
	t       *rapid.T
	graphs  [2]*graph
	told    [2][]string
	run     int32
	present map[string]*[2]*node
}

func newTwoGraphs(t *rapid.T) *twoGraphs {
	w := &twoGraphs{t: t, present: map[string]*[2]*node{}}
	for i := range w.graphs {
		w.graphs[i] = newGraph(&Trace{Invalidated: func(info InvalidInfo) {
			w.told[i] = append(w.told[i], fmt.Sprint(info.Node, " ", info.Cause))
		}}, &Stats{})
	}
	return w
}

func (w *twoGraphs) doc(i int) *doc {
	d, err := w.graphs[i].ensureDoc(docKey{doc: "d"})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// each does the same to both graphs, and removes the index of the second.
func (w *twoGraphs) each(f func(i int, g *graph)) {
	w.run++
	for i, g := range w.graphs {
		f(i, g)
		checkGraph(w.t, g)
	}
	w.doc(1).paths = nil
}

// reads makes a node read these addresses in a run, and creates it if necessary.
func (w *twoGraphs) reads(id string, paths []model.Path, shallow []bool) {
	w.each(func(i int, g *graph) {
		pair := w.present[id]
		if pair == nil {
			pair = &[2]*node{}
			w.present[id] = pair
		}
		if pair[i] == nil {
			n, err := g.register(&declaration{ID: id, Kind: Effect}, nil)
			if err != nil {
				w.t.Fatal(err)
			}
			pair[i] = n
		}
		log := &readLog{node: pair[i], run: w.run}
		for k, path := range paths {
			log.add(w.doc(i), path, shallow[k])
		}
		g.applyReads(log)
	})
}

func (w *twoGraphs) remove(id string) {
	w.each(func(i int, g *graph) { g.remove(w.present[id][i]) })
	delete(w.present, id)
}

func (w *twoGraphs) change(after model.Value, paths []model.Path) {
	w.told = [2][]string{}
	w.each(func(i int, g *graph) { g.change(w.doc(i), after, origin{paths: paths}) })
	slices.Sort(w.told[0])
	slices.Sort(w.told[1])
	if !slices.Equal(w.told[0], w.told[1]) {
		w.t.Fatalf("%d readers, written at %q: with an index %v, without %v", len(w.doc(0).readers), paths, w.told[0], w.told[1])
	}
}

// A document notifies the same readers of a change with and without an index, while their number rises and
// falls past the bounds at which the index is made and dropped.
func TestTheIndexNotifiesTheSameReadersAsAScan(t *testing.T) {
	made, dropped := false, false
	rapid.Check(t, func(t *rapid.T) {
		w := newTwoGraphs(t)
		for i := range manyReaders {
			w.reads(fmt.Sprint("many", i), []model.Path{{"a", indexSteps[i%4], indexSteps[i/4%4]}}, []bool{i%3 == 0})
		}
		for i := range 56 {
			moves := []string{"read", "read", "read", "write", "write", "remove"}
			if i > 14 && i < 50 {
				moves = []string{"remove", "remove", "remove", "write", "write", "read"}
			}
			had := w.doc(0).paths != nil
			switch rapid.SampledFrom(moves).Draw(t, "move") {
			case "read":
				paths := rapid.SliceOfN(genIndexPath(3), 3, 6).Draw(t, "paths")
				shallow := rapid.SliceOfN(rapid.Bool(), len(paths), len(paths)).Draw(t, "shallow")
				w.reads(fmt.Sprint("n", rapid.IntRange(0, 19).Draw(t, "node")), paths, shallow)
			case "remove":
				if ids := slices.Sorted(maps.Keys(w.present)); len(ids) > 0 {
					w.remove(rapid.SampledFrom(ids).Draw(t, "gone"))
				}
			case "write":
				after, paths := genWrites(t, w.doc(0).value)
				w.change(after, paths)
			}
			has := w.doc(0).paths != nil
			made, dropped = made || has && !had, dropped || had && !has
		}
	})
	if !made || !dropped {
		t.Errorf("an index was made: %v, and dropped: %v; both must have happened", made, dropped)
	}
}
