package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePath(t *testing.T) {
	for pointer, want := range map[string]Path{
		"":             nil,
		"/":            {""},
		"/a/b":         {"a", "b"},
		"/a//":         {"a", "", ""},
		"/a~1b/~0/~01": {"a/b", "~", "~1"},
		"/0/-":         {"0", "-"},
	} {
		p, err := ParsePath(pointer)
		if err != nil || !slices.Equal(p, want) {
			t.Errorf("%q: got %q, %v", pointer, []string(p), err)
		}
		if p.String() != pointer {
			t.Errorf("%q prints as %q", pointer, p)
		}
	}
	for _, bad := range []string{"a", "a/b", "/~", "/a~", "/~2", "/~~0", "/\xff"} {
		if p, err := ParsePath(bad); err == nil {
			t.Errorf("%q was read as %q", bad, []string(p))
		}
	}
}

func TestPath_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Path(rapid.SliceOf(genKey()).Draw(t, "p"))
		q, err := ParsePath(p.String())
		if err != nil || !slices.Equal(p, q) {
			t.Fatalf("%q came back as %q, %v", []string(p), []string(q), err)
		}
	})
}

func TestPath_Overlaps(t *testing.T) {
	for _, c := range []struct {
		p, q           string
		below, overlap bool
	}{
		{"", "", true, true},
		{"/a", "", true, true},
		{"", "/a", false, true},
		{"/a/b", "/a", true, true},
		{"/a", "/a/b", false, true},
		{"/a", "/b", false, false},
		{"/ab", "/a", false, false},
		{"/a/b", "/a/c", false, false},
	} {
		p, _ := ParsePath(c.p)
		q, _ := ParsePath(c.q)
		if p.HasPrefix(q) != c.below || p.Overlaps(q) != c.overlap || q.Overlaps(p) != c.overlap {
			t.Errorf("%q, %q: HasPrefix %v, Overlaps %v", c.p, c.q, p.HasPrefix(q), p.Overlaps(q))
		}
	}
}

func TestSet_ReportsTheObstacle(t *testing.T) {
	v := parse(t, `{"s":"x","n":null,"a":[1,{"k":2}]}`)
	for _, c := range []struct{ path, want string }{
		{"/s/x", `set /s/x: there is a string at "/s"`},
		{"/n/x", `set /n/x: there is a null at "/n"`},
		{"/a/3", `set /a/3: "3" is not an index of the array of 2 at "/a"`},
		{"/a/-", `set /a/-: "-" is not an index`},
		{"/a/01", `set /a/01: "01" is not an index`},
		{"/a/0/x", `set /a/0/x: there is a int at "/a/0"`},
	} {
		p, _ := ParsePath(c.path)
		got, err := v.Set(p, Int(1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %s", c.path, err, c.want)
		}
		if !same(got, v) {
			t.Errorf("%s: the value changed along with the error", c.path)
		}
	}
	if _, err := v.Set(Path{"new", "\xff"}, Int(1)); err == nil {
		t.Error("a key that JSON cannot hold was accepted")
	}
	if _, err := v.Set(Path{"\xff"}, Int(1)); err == nil {
		t.Error("a key that JSON cannot hold was accepted")
	}
	if _, err := v.Delete(Path{"a", "0"}); err == nil || !strings.Contains(err.Error(), "write the whole array") {
		t.Errorf("deleting an element: %v", err)
	}
}

func TestSet_KeepsWithinMaxDepth(t *testing.T) {
	deep := parse(t, strings.Repeat("[", MaxDepth-1)+strings.Repeat("]", MaxDepth-1))
	v, err := Object().Set(Path{"a"}, deep)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseValue(v.AppendJSON(nil)); err != nil {
		t.Fatalf("the result of Set cannot be read: %v", err)
	}
	if _, err := v.Set(Path{"a"}, Array(deep)); err == nil {
		t.Error("one level too many was accepted")
	}
	if _, err := v.Set(make(Path, MaxDepth+1), Int(1)); err == nil {
		t.Error("a path of too many steps was accepted")
	}
}

func TestSet_SharesUnchangedParts(t *testing.T) {
	v := parse(t, `{"a":{"x":1},"b":[1,2],"c":3}`)
	w, err := v.Set(Path{"a", "x"}, Int(2))
	if err != nil {
		t.Fatal(err)
	}
	if !same(v.Get("b"), w.Get("b")) {
		t.Error("the sibling was copied")
	}
	vk, _ := v.members()
	wk, _ := w.members()
	if &vk[0] != &wk[0] {
		t.Error("the keys were copied")
	}
	if u, _ := v.Set(Path{"a"}, parse(t, `{"x":1}`)); !same(u, v) {
		t.Error("setting an equal value made a new version")
	}
}

// The oracle for Set and Delete: plain trees, changed in place.

func oracleSet(root any, p Path, x any) (any, error) {
	if len(p) == 0 {
		return x, nil
	}
	var err error
	switch c := root.(type) {
	case map[string]any:
		child, has := c[p[0]]
		if !has {
			c[p[0]], err = oracleNest(p[1:], x), nil
			return c, err
		}
		if child, err = oracleSet(child, p[1:], x); err != nil {
			return nil, err
		}
		c[p[0]] = child
		return c, nil
	case []any:
		i, bad := strconv.Atoi(p[0])
		switch {
		case bad != nil || strconv.Itoa(i) != p[0] || i < 0 || i > len(c):
			return nil, fmt.Errorf("no index")
		case i == len(c):
			return append(c, oracleNest(p[1:], x)), nil
		}
		c[i], err = oracleSet(c[i], p[1:], x)
		return c, err
	}
	return nil, fmt.Errorf("in the way")
}

func oracleNest(p Path, x any) any {
	if len(p) == 0 {
		return x
	}
	return map[string]any{p[0]: oracleNest(p[1:], x)}
}

func oracleAt(root any, p Path) (any, bool) {
	for _, step := range p {
		switch c := root.(type) {
		case map[string]any:
			x, has := c[step]
			if !has {
				return nil, false
			}
			root = x
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || strconv.Itoa(i) != step || i < 0 || i >= len(c) {
				return nil, false
			}
			root = c[i]
		default:
			return nil, false
		}
	}
	return root, true
}

// oracleDelete reports whether p may be deleted; it does not check the root.
func oracleDelete(root any, p Path) error {
	if _, has := oracleAt(root, p); !has {
		return nil
	}
	parent, _ := oracleAt(root, p[:len(p)-1])
	m, ok := parent.(map[string]any)
	if !ok {
		return fmt.Errorf("element")
	}
	delete(m, p[len(p)-1])
	return nil
}

// One long run over one document: every version agrees with the oracle when it is made, and has not changed
// when the run is over.
func TestSetDeleteAt_AgreeWithOracleAndChangeNoOldVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genObject(3).Draw(t, "v")
		model := oracleOf(v)
		versions, texts := []Value{v}, []string{v.String()}
		for n := rapid.IntRange(1, 12).Draw(t, "changes"); n > 0; n-- {
			p := genPath(v).Draw(t, "p")
			if len(p) == 0 {
				continue
			}
			at, has := oracleAt(model, p)
			if got := v.At(p); got.IsAbsent() == has || has && !oracleEqual(oracleOf(got), at) {
				t.Fatalf("%s at %s is %s, want %v", v, p, got, at)
			}

			var w Value
			var err, want error
			if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
				w, err = v.Delete(p)
				want = oracleDelete(model, p)
			} else {
				x := genValue(2).Draw(t, "x")
				w, err = v.Set(p, x)
				var m any
				if m, want = oracleSet(oracleOf(v), p, oracleOf(x)); want == nil {
					model = m
				}
			}
			if (err == nil) != (want == nil) {
				t.Fatalf("change of %s at %s: got %v, want %v", v, p, err, want)
			}
			if !oracleEqual(oracleOf(w), model) {
				t.Fatalf("change of %s at %s: got %s, want %v", v, p, w, model)
			}
			if Equal(v, w) != same(v, w) {
				t.Fatalf("a change of %s at %s made an equal copy", v, p)
			}
			wellFormed(t, w)
			v = w
			versions, texts = append(versions, w), append(texts, w.String())
		}
		for i, old := range versions {
			if old.String() != texts[i] {
				t.Fatalf("version %d was %s and is now %s", i, texts[i], old)
			}
		}
	})
}

func TestSet_AtTheRoot(t *testing.T) {
	if v, err := (Value{}).Set(nil, Int(1)); err != nil || !Equal(v, Int(1)) {
		t.Errorf("got %s, %v", v, err)
	}
	if v, err := Int(1).Set(nil, Value{}); err != nil || !v.IsAbsent() {
		t.Errorf("got %s, %v", v, err)
	}
	if v, err := (Value{}).Set(Path{"a", "0"}, Int(1)); err != nil || v.String() != `{"a":{"0":1}}` {
		t.Errorf("got %s, %v", v, err)
	}
	if v, err := (Value{}).Delete(Path{"a"}); err != nil || !v.IsAbsent() {
		t.Errorf("got %s, %v", v, err)
	}
}
