package space

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The table of trigger semantics for deep reads: a change of a document, a path that was read, and whether
// the change concerns the reader.
func TestI3_WhichChangeConcernsWhichReader(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after string
		path          string
		want          bool
	}{
		{"an equal value", `{"a":1}`, `{"a":1}`, "/a", false},
		{"the value itself", `{"a":1}`, `{"a":2}`, "/a", true},
		{"a sibling", `{"a":1,"b":1}`, `{"a":1,"b":2}`, "/a", false},
		{"a new sibling", `{"a":1}`, `{"a":1,"b":2}`, "/a", false},
		{"a child", `{"a":{"x":1}}`, `{"a":{"x":2}}`, "/a", true},
		{"a grandchild, seen from the root", `{"a":{"x":1}}`, `{"a":{"x":2}}`, "", true},
		{"a new child", `{"a":{}}`, `{"a":{"x":2}}`, "/a", true},
		{"an ancestor replaced, equal here", `{"a":{"x":1,"y":1}}`, `{"a":{"x":1,"z":3}}`, "/a/x", false},
		{"an ancestor replaced, different here", `{"a":{"x":1}}`, `{"a":{"x":2}}`, "/a/x", true},
		{"an ancestor deleted", `{"a":{"x":1}}`, `{}`, "/a/x", true},
		{"an ancestor turned into a scalar", `{"a":{"x":1}}`, `{"a":7}`, "/a/x", true},
		{"an ancestor that appears, without the key", `{}`, `{"a":{}}`, "/a/x", true},
		{"an intermediate that appears, still leading nowhere", `{"a":{}}`, `{"a":{"b":{"x":1}}}`, "/a/b/c", true},
		{"a container where the path ends", `{"a":{}}`, `{"a":{"b":{}}}`, "/a/b/c/d", true},
		{"a scalar where the path ends", `{"a":{}}`, `{"a":{"b":1}}`, "/a/b/c/d", false},
		{"nowhere before and after, at the same depth", `{"a":1}`, `{"a":2}`, "/a/b/c", false},
		{"a scalar root", `42`, `43`, "/field", false},
		{"a document that appears", ``, `{"a":1}`, "/a", true},
		{"a document that disappears", `{"a":1}`, ``, "/a", true},
		{"a document that appears without what was read", ``, `{"b":1}`, "/a", true},
		{"absent to null", `{"a":{}}`, `{"a":{"x":null}}`, "/a/x", true},
		{"an element", `[1,2]`, `[1,3]`, "/1", true},
		{"another element", `[1,2]`, `[3,2]`, "/1", false},
		{"a push, seen from the array", `[1,2]`, `[1,2,3]`, "", true},
		{"a push, seen from an element", `[1,2]`, `[1,2,3]`, "/1", false},
		{"a push, seen from the new element", `[1,2]`, `[1,2,3]`, "/2", true},
		{"an element beyond the end", `[1,2]`, `[3,4]`, "/5", false},
		{"an index with a leading zero is none", `[1,2]`, `[1,3]`, "/01", false},
		{"a negative index is none", `[1,2]`, `[1,3]`, "/-1", false},
		{"array to object", `[1]`, `{"0":1}`, "", true},
		{"array to object, same member", `[1]`, `{"0":1}`, "/0", false},
		{"1 and 1.0", `{"a":1}`, `{"a":1.0}`, "/a", false},
	} {
		path, err := model.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := touches(doc0(t, c.before), doc0(t, c.after), path, false); got != c.want {
			t.Errorf("%s: %s -> %s, read at %q: concerned %v, want %v", c.what, c.before, c.after, c.path, got, c.want)
		}
		if got := touches(doc0(t, c.after), doc0(t, c.before), path, false); got != c.want {
			t.Errorf("%s, the other way: %v, want %v", c.what, got, c.want)
		}
	}
}

func doc0(t tester, text string) model.Value {
	if text == "" {
		return model.Value{}
	}
	v, err := model.ParseValue([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// dumbTouches states the rule as plainly as possible, over plain trees.
func dumbTouches(before, after any, path []string) bool {
	vb, reachedB, depthB := dumbWalk(before, path)
	va, reachedA, depthA := dumbWalk(after, path)
	if !reachedB && !reachedA {
		return depthB != depthA
	}
	return reachedB != reachedA || !reflect.DeepEqual(vb, va)
}

type nothing struct{}

func dumbWalk(root any, path []string) (v any, reached bool, depth int) {
	for i, step := range path {
		switch c := root.(type) {
		case map[string]any:
			next, ok := c[step]
			if !ok {
				next = nothing{}
			}
			root = next
		case []any:
			root = any(nothing{})
			for j, e := range c {
				if fmt.Sprint(j) == step {
					root = e
				}
			}
		default:
			return nil, false, i
		}
	}
	return root, true, len(path)
}

func TestTouches_AgreesWithADumbVersion(t *testing.T) {
	var gen func(depth int) *rapid.Generator[any]
	gen = func(depth int) *rapid.Generator[any] {
		scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.IntRange(0, 1), func(i int) any { return float64(i) }))
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "0", "1"}), gen(depth-1), 0, 3), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(gen(depth-1), 0, 2), func(s []any) any { return s }))
	}
	rapid.Check(t, func(t *rapid.T) {
		before, after := gen(3).Draw(t, "before"), gen(3).Draw(t, "after")
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "0", "1"}), 0, 4).Draw(t, "path")
		b, err1 := json.Marshal(before)
		a, err2 := json.Marshal(after)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if got, want := touches(doc0(t, string(b)), doc0(t, string(a)), path, false), dumbTouches(before, after, path); got != want {
			t.Fatalf("%s -> %s, read at %q: %v, want %v", b, a, path, got, want)
		}
	})
}

// A change concerns a reader of several paths once, whichever of them it touches; a path below another one is
// covered by it.
func TestReadSetsKeepWhatCoversTheRest(t *testing.T) {
	g := newGraph(&Trace{}, &Stats{})
	n, err := g.register(&declaration{ID: "n", Kind: Effect}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.ensureDoc(docKey{doc: "d"})
	if err != nil {
		t.Fatal(err)
	}
	run := int32(0)
	reads := func(paths ...string) *readLog {
		run++
		log := &readLog{node: n, run: run}
		for _, p := range paths {
			path, err := model.ParsePath(p)
			if err != nil {
				t.Fatal(err)
			}
			log.add(d, path, false)
		}
		return log
	}
	for _, c := range []struct {
		reads   []string
		changed bool
		want    string
	}{
		{[]string{"/a/b", "/c"}, true, "[d/a/b d/c]"},
		{[]string{"/a/b", "/c"}, false, "[d/a/b d/c]"},
		{[]string{"/c", "/a/b", "/c"}, false, "[d/c d/a/b]"},
		{[]string{"/a/b", "/a", "/c"}, true, "[d/a d/c]"},
		{[]string{"/a", "/a/b/c", "/c"}, false, "[d/a d/c]"},
		{[]string{"/a", ""}, true, "[d]"},
		{[]string{""}, false, "[d]"},
		{nil, true, "[]"},
		{nil, false, "[]"},
	} {
		if got := g.applyReads(reads(c.reads...)); got != c.changed {
			t.Errorf("reads %q: changed %v, want %v", c.reads, got, c.changed)
		}
		if got := fmt.Sprint(n.readNames()); got != c.want {
			t.Errorf("reads %q: registered %s, want %s", c.reads, got, c.want)
		}
		if want := len(n.readNames()); int(d.refs) != want || len(d.readers) != want {
			t.Errorf("reads %q: %d refs, %d readers", c.reads, d.refs, len(d.readers))
		}
	}
}
