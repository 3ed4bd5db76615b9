package space

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The index of readers by path decides without looking at most of them, so it is held
// against what looks at every one: touches, which match_test.go holds against the rules.

var indexSteps = []string{"a", "b", "0", "1"}

// genTree makes a value in which paths over indexSteps often lead somewhere, with links
// among the leaves.
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

// genWrites makes writes that can be made to v, with what they make of it.
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

// A bench of readers of one document, with the index whatever their number.
type readerBench struct {
	index   pathIndex
	readers []*dep
	next    int
}

func (b *readerBench) add(path model.Path, shallow bool) {
	b.next++
	r := &dep{node: &node{spec: &NodeSpec{ID: fmt.Sprint("n", b.next)}}, doc: &doc{key: docKey{doc: "d"}}, path: path, shallow: shallow}
	b.readers = append(b.readers, r)
	b.index.add(r)
}

func (b *readerBench) remove(i int) {
	r := b.readers[i]
	b.readers = slices.Delete(b.readers, i, i+1)
	b.index.root.remove(r, r.path)
}

// concerned are the readers that touches says a change concerns, by name.
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

// Readers come, go and come again, values change under them, and each change visits
// exactly those that it concerns, once each: with the places of the writes known and
// without, over links, arrays, and paths that lead somewhere now and did not before.
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
		return // graph.change asks nobody then
	}
	got, tested := b.visited(before, after, paths)
	if want := b.concerned(before, after); !slices.Equal(got, want) {
		t.Fatalf("%s -> %s, written at %q: visited %v, want %v", before, after, paths, got, want)
	}
	if tested > len(b.readers) {
		t.Fatalf("%d readers tested, there are %d", tested, len(b.readers))
	}
	if n := b.index.root.size; n != len(b.readers) {
		t.Fatalf("the index says that it has %d readers, there are %d", n, len(b.readers))
	}
}
