package space

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

const (
	linkX  = `{"$link":{"doc":"x"}}`
	linkY  = `{"$link":{"doc":"y"}}`
	noLink = `{"$link":{"doc":"x","more":1}}` // resembles a link, but is plain data
)

// triggers has the effect of a change on a deep and on a shallow reader of a path, with every line of the
// tables of trigger semantics, in their order.
var triggers = []struct {
	what          string
	before, after string
	path          string
	deep, shallow bool
}{
	// 4.4: where the path leads before and after.
	{"reached twice, equal", `{"a":{"b":1}}`, `{"a":{"b":1},"c":1}`, "/a/b", false, false},
	{"reached twice, different", `{"a":{"b":1}}`, `{"a":{"b":2}}`, "/a/b", true, true},
	{"reached twice, the same shape", `{"a":{"b":{"x":1}}}`, `{"a":{"b":{"x":2}}}`, "/a/b", true, false},
	{"reached twice, a key that is missing twice", `{"a":{"x":1}}`, `{"a":{"x":2}}`, "/a/b", false, false},
	{"reached twice, a key that comes", `{"a":{}}`, `{"a":{"b":1}}`, "/a/b", true, true},
	{"reached before only", `{"a":{"b":1}}`, `{"a":1}`, "/a/b", true, true},
	{"reached before only, and nothing was there", `{"a":{}}`, `{"a":1}`, "/a/b", true, true},
	{"reached after only", `{"a":1}`, `{"a":{"b":1}}`, "/a/b", true, true},
	{"reached after only, and nothing is there", `{"a":1}`, `{"a":{}}`, "/a/b", true, true},
	{"never reached, ending at the same depth", `{"a":1}`, `{"a":2}`, "/a/b/c", false, false},
	{"never reached, an intermediate that appears", `{"a":{}}`, `{"a":{"b":{}}}`, "/a/b/c/d", true, true},
	{"never reached, an intermediate that is a scalar", `{"a":{}}`, `{"a":{"b":1}}`, "/a/b/c/d", false, false},
	{"never reached, deeper below", `{}`, `{"a":{}}`, "/a/b/c/d/e", true, true},
	{"a sibling that comes", `{"a":1}`, `{"a":1,"b":1}`, "/a", false, false},
	{"a literal that becomes an object, seen from below it", `{"a":1}`, `{"a":{"x":1}}`, "/a/b/c", true, true},

	// 4.5: shapes.
	{"links to one place", `{"a":` + linkX + `}`, `{"a":` + linkX + `,"b":1}`, "/a", false, false},
	{"links to two places", `{"a":` + linkX + `}`, `{"a":` + linkY + `}`, "/a", true, true},
	{"a link and what is none", `{"a":` + linkX + `}`, `{"a":` + noLink + `}`, "/a", true, true},
	{"two that are none, of the same keys", `{"a":` + noLink + `}`, `{"a":{"$link":1}}`, "/a", true, false},
	{"a link and an object", `{"a":` + linkX + `}`, `{"a":{"x":1}}`, "/a", true, true},
	{"objects of the same keys", `{"a":{"x":1,"y":2}}`, `{"a":{"x":3,"y":{"z":1}}}`, "/a", true, false},
	{"objects of other keys", `{"a":{"x":1}}`, `{"a":{"y":1}}`, "/a", true, true},
	{"as many keys, one replaced", `{"a":{"x":1,"y":1}}`, `{"a":{"x":1,"z":1}}`, "/a", true, true},
	{"arrays of the same length", `{"a":[1,2]}`, `{"a":[3,[4]]}`, "/a", true, false},
	{"arrays of another length", `{"a":[1,2]}`, `{"a":[1,2,3]}`, "/a", true, true},
	{"an array and an object", `{"a":["x"]}`, `{"a":{"0":"x"}}`, "/a", true, true},
	{"an empty array and an empty object", `{"a":[]}`, `{"a":{}}`, "/a", true, true},
	{"scalars", `{"a":1}`, `{"a":2}`, "/a", true, true},
	{"a scalar and an object", `{"a":1}`, `{"a":{}}`, "/a", true, true},
	{"null and nothing", `{"a":null}`, `{}`, "/a", true, true},
	{"text and a number", `{"a":"1"}`, `{"a":1}`, "/a", true, true},

	// A link on the way: whatever is below it is read elsewhere, before or after the change.
	{"an object that becomes a link, seen from below", `{"a":{"x":1}}`, `{"a":` + linkX + `}`, "/a/b", true, true},
	{"a scalar that becomes a link, seen from below", `{"a":1}`, `{"a":` + linkX + `}`, "/a/b", true, true},
	{"nothing that becomes a link, seen from far below", `{}`, `{"a":` + linkX + `}`, "/a/b/c", true, true},
	{"a link that becomes another, seen from below", `{"a":` + linkX + `}`, `{"a":` + linkY + `}`, "/a/b/c", true, true},
	{"the same link, seen from below", `{"a":` + linkX + `}`, `{"a":` + linkX + `,"b":1}`, "/a/b", false, false},
	{"a document that becomes a link", `{"a":1}`, linkX, "/b", true, true},
	{"what only looks like a link", `{"a":{"x":1}}`, `{"a":` + noLink + `}`, "/a/b", false, false},

	// 4.6: the place of the write, relative to the reader.
	{"at it, equal", `{"a":{"x":1}}`, `{"a":{"x":1}}`, "/a", false, false},
	{"at it, another shape", `{"a":{"x":1}}`, `{"a":{"x":1,"y":1}}`, "/a", true, true},
	{"an ancestor, equal here", `{"p":{"a":{"x":1},"q":1}}`, `{"p":{"a":{"x":1},"q":2}}`, "/p/a", false, false},
	{"an ancestor, different here", `{"p":{"a":{"x":1}}}`, `{"p":{"a":{"x":2}}}`, "/p/a", true, false},
	{"an ancestor, another shape here", `{"p":{"a":{"x":1}}}`, `{"p":{"a":{"y":1}}}`, "/p/a", true, true},
	{"an ancestor deleted", `{"p":{"a":1}}`, `{}`, "/p/a", true, true},
	{"an ancestor turned into a scalar", `{"p":{"a":1}}`, `{"p":1}`, "/p/a", true, true},
	{"a scalar ancestor deleted, never reached", `{"p":1}`, `{}`, "/p/a/b", false, false},
	{"a child changed", `{"a":{"x":1}}`, `{"a":{"x":2}}`, "/a", true, false},
	{"a child added", `{"a":{"x":1}}`, `{"a":{"x":1,"y":1}}`, "/a", true, true},
	{"a child removed", `{"a":{"x":1,"y":1}}`, `{"a":{"x":1}}`, "/a", true, true},
	{"a descendant changed", `{"a":{"x":{"y":1}}}`, `{"a":{"x":{"y":2}}}`, "/a", true, false},
	{"a descendant added", `{"a":{"x":{}}}`, `{"a":{"x":{"y":2}}}`, "/a", true, false},
	{"an element replaced, seen from the array", `{"a":[1,2]}`, `{"a":[1,3]}`, "/a", true, false},
	{"an element replaced, seen from it", `{"a":[1,2]}`, `{"a":[1,3]}`, "/a/1", true, true},
	{"an element replaced by one of its shape, seen from it", `{"a":[[1]]}`, `{"a":[[2]]}`, "/a/0", true, false},
	{"an element replaced, seen from another", `{"a":[1,2]}`, `{"a":[1,3]}`, "/a/0", false, false},
	{"a push, seen from the array", `{"a":[1]}`, `{"a":[1,2]}`, "/a", true, true},
	{"a push, seen from an element", `{"a":[1]}`, `{"a":[1,2]}`, "/a/0", false, false},
	{"a push, seen from the new element", `{"a":[1]}`, `{"a":[1,2]}`, "/a/1", true, true},
	{"a push, seen from above the array", `{"a":[1]}`, `{"a":[1,2]}`, "", true, false},
	{"a sibling", `{"a":1,"b":1}`, `{"a":1,"b":2}`, "/a", false, false},
	{"a link repointed", `{"a":` + linkX + `}`, `{"a":` + linkY + `}`, "/a", true, true},
	{"a link repointed, seen from above", `{"p":{"a":` + linkX + `}}`, `{"p":{"a":` + linkY + `}}`, "/p", true, false},
	{"the document appears", ``, `{"a":{}}`, "/a", true, true},
	{"the document appears, seen whole", ``, `{}`, "", true, true},
	{"a key of the document, seen whole", `{"a":1}`, `{"a":1,"b":1}`, "", true, true},
	{"a value of the document, seen whole", `{"a":1}`, `{"a":2}`, "", true, false},
}

// The whole table, forward and backward, by the test of one reader and by the index.
func TestI3_EveryLineOfTheTriggerTables(t *testing.T) {
	for _, c := range triggers {
		path, err := model.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		before, after := doc0(t, c.before), doc0(t, c.after)
		for _, way := range []string{"", ", the other way"} {
			for shallow, want := range map[bool]bool{false: c.deep, true: c.shallow} {
				if got := touches(before, after, path, shallow); got != want {
					t.Errorf("%s%s: %s -> %s, shallow %v, read at %q: concerned %v, want %v", c.what, way, before, after, shallow, c.path, got, want)
				}
				if model.Equal(before, after) {
					continue // graph.change does not use the index then
				}
				var b readerBench
				b.add(path, shallow)
				if got, _ := b.visited(before, after, nil); len(got) == 1 != want {
					t.Errorf("%s%s: %s -> %s, shallow %v, read at %q: the index visits %v, want %v", c.what, way, before, after, shallow, c.path, got, want)
				}
			}
			before, after = after, before
		}
	}
}

// dumbShape returns what a shallow reader sees of a plain tree, as a comparable tree.
func dumbShape(v any) any {
	switch c := v.(type) {
	case map[string]any:
		if raw, err := json.Marshal(c); err == nil && json.Unmarshal(raw, &model.Link{}) == nil {
			return c // a link, which has a target
		}
		keys := map[string]any{}
		for k := range c {
			keys[k] = true
		}
		return keys
	case []any:
		return make([]bool, len(c))
	default:
		return v
	}
}

// dumbPlace returns what a reader finds at a path, in a form in which equal means untouched: the value or its
// shape, or how far the path leads, and the link if there is one at its end.
func dumbPlace(root any, path []string, shallow bool) any {
	for i, step := range path {
		if raw, err := json.Marshal(root); err == nil && json.Unmarshal(raw, &model.Link{}) == nil {
			return []any{"link", i, root}
		}
		next, reached, _ := dumbWalk(root, []string{step})
		if !reached {
			return []any{"end", i}
		}
		root = next
	}
	if shallow {
		return dumbShape(root)
	}
	return root
}

func TestTouches_WithLinksAndShallowAgreesWithADumbVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := genTree(3).Draw(t, "before"), genTree(3).Draw(t, "after")
		if rapid.Bool().Draw(t, "little") {
			after, _ = genWrites(t, before)
		}
		path := genIndexPath(4).Draw(t, "path")
		plain := func(v model.Value) (out any) {
			if v.IsAbsent() {
				return nothing{}
			}
			if err := json.Unmarshal(v.AppendJSON(nil), &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		for _, shallow := range []bool{false, true} {
			want := !reflect.DeepEqual(dumbPlace(plain(before), path, shallow), dumbPlace(plain(after), path, shallow))
			if got := touches(before, after, path, shallow); got != want {
				t.Fatalf("%s -> %s, read at %q, shallow %v: %v, want %v", before, after, path, shallow, got, want)
			}
		}
	})
}

// Which surface is connected with which reader (4.7): the edges of the graph, which do not depend on values.
func TestEdges_EveryLineOfTheTable(t *testing.T) {
	for _, c := range []struct {
		what          string
		write, read   string
		deep, shallow bool
	}{
		{"the same place", "/a", "/a", true, true},
		{"whole documents", "", "", true, true},
		{"a document and a place in it", "", "/a/b/c", true, true},
		{"an ancestor of the read", "/a", "/a/b/c", true, true},
		{"a child of the read", "/a/b", "/a", true, true},
		{"a grandchild of the read", "/a/b/c", "/a", true, false},
		{"a descendant further down", "/a/b/c/d", "/a", true, false},
		{"a child of the document", "/a", "", true, true},
		{"a grandchild of the document", "/a/b", "", true, false},
		{"siblings", "/a/b", "/a/c", false, false},
		{"other places", "/a", "/b", false, false},
		{"names that begin alike", "/ab", "/a", false, false},
		{"an element and its array", "/a/0", "/a", true, true},
		{"two elements", "/a/0", "/a/1", false, false},
	} {
		write, err1 := model.ParsePath(c.write)
		read, err2 := model.ParsePath(c.read)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for shallow, want := range map[bool]bool{false: c.deep, true: c.shallow} {
			s, d := surface{path: write}, dep{path: read, shallow: shallow}
			if got := s.overlaps(&d); got != want {
				t.Errorf("%s: written at %q, read at %q, shallow %v: an edge is %v, want %v", c.what, c.write, c.read, shallow, got, want)
			}
		}
	}
}

// Edges cover every write inside a surface that changes the result of a read. They do not cover everything
// that triggers: a write may create the path to its place, which makes a reader next to it reachable without
// changing its result; and, for a shallow reader, it may create a key on the level between the two.
func TestEdges_CoverWhatAWriteChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := genTree(3).Draw(t, "before")
		w := model.Write{Doc: "d", Path: genIndexPath(4).Draw(t, "at"), Value: genTree(1).Draw(t, "value")}
		after, err := w.Apply(before)
		if err != nil {
			return
		}
		s := surface{path: w.Path[:rapid.IntRange(0, len(w.Path)).Draw(t, "within")]}
		d := dep{path: genIndexPath(4).Draw(t, "read"), shallow: rapid.Bool().Draw(t, "shallow")}
		if s.overlaps(&d) || !differ(before.At(d.path), after.At(d.path), d.shallow) {
			return
		}
		if !d.shallow || !before.At(s.path[:len(d.path)+1]).IsAbsent() {
			t.Fatalf("a write at %q within %q changes what is read at %q, shallow %v, and there is no edge", w.Path, s.path, d.path, d.shallow)
		}
	})
}
