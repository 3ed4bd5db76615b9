package model

import (
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func TestW13_Diff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"a":1,"b":{"c":2,"d":4}}`, `[["doc","/b/d",4]]`},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, `[["doc","/a"] ["doc","/b",3] ["doc","/c",4]]`},
		{`{"a":[1,2]}`, `{"a":[1,3]}`, `[["doc","/a",[1,3]]]`},
		{`{"a":[1,2]}`, `{"a":[0,1,2]}`, `[["doc","/a",[0,1,2]]]`},
		{`{"a":[1,2]}`, `{"a":[2]}`, `[["doc","/a",[2]]]`},
		{`{"a":[{"x":1},{"x":2}]}`, `{"a":[{"x":1},{"x":3},{"x":2}]}`, `[["doc","/a",[{"x":1},{"x":3},{"x":2}]]]`},
		{`{"a":1}`, `{}`, `[["doc","/a"]]`},
		{`{"a":{}}`, `{"a":[]}`, `[["doc","/a",[]]]`},
		{`{"a":null}`, `{"b":null}`, `[["doc","/a"] ["doc","/b",null]]`},
		{`{"a/b":1}`, `{"a/b":2}`, `[["doc","/a~1b",2]]`},
		{`1`, `{"a":1}`, `[["doc","",{"a":1}]]`},
		{`{"a":[1.0,{"x":1}]}`, `{"a":[1,{"x":1}]}`, `[]`},
		{``, `{"a":1}`, `[["doc","",{"a":1}]]`},
		{`{"a":1}`, ``, `[["doc",""]]`},
		{``, ``, `[]`},
	} {
		if got := fmt.Sprint(Diff("doc", parseOrAbsent(t, c.before), parseOrAbsent(t, c.after))); got != c.want {
			t.Errorf("%s -> %s: got %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

func parseOrAbsent(t *testing.T, text string) Value {
	if text == "" {
		return Value{}
	}
	return parse(t, text)
}

func TestDiff_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.OneOf(genObject(4), genValue(1), rapid.Just(Value{})).Draw(t, "before")
		after := rapid.OneOf(genObject(4), genValue(1), rapid.Just(Value{})).Draw(t, "after")
		if rapid.Bool().Draw(t, "derived") {
			after = before
			for n := rapid.IntRange(0, 3).Draw(t, "changes"); n > 0; n-- {
				if x, err := after.Set(genPath(after).Draw(t, "p"), genValue(2).Draw(t, "x")); err == nil {
					after = x
				}
			}
		}
		ws := Diff("doc", before, after)
		if Equal(before, after) != (len(ws) == 0) {
			t.Fatalf("%s -> %s: %v", before, after, ws)
		}
		got := before
		for i, w := range ws {
			next, err := w.Apply(got)
			if err != nil {
				t.Fatalf("%s: %v", w, err)
			}
			if Equal(next, got) {
				t.Fatalf("%s -> %s: %s changes nothing", before, after, w)
			}
			for _, other := range ws[:i] {
				if w.Path.Overlaps(other.Path) {
					t.Fatalf("%s and %s overlap", w, other)
				}
			}
			got = next
		}
		if !Equal(got, after) {
			t.Fatalf("%s -> %s: %v gave %s", before, after, ws, got)
		}
	})
}

func TestWrite_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Write{
			Doc:  rapid.StringN(1, 8, -1).Filter(isUTF8).Draw(t, "doc"),
			Path: rapid.SliceOfN(genKey(), 0, 4).Draw(t, "path"),
		}
		if w.Delete = rapid.Bool().Draw(t, "delete"); !w.Delete {
			w.Value = genValue(3).Draw(t, "value")
		}
		v1, err1 := stdjson.Marshal([]Write{w})
		v2, err2 := json.Marshal([]Write{w})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var a, b []Write
		if err := stdjson.Unmarshal(v1, &a); err != nil {
			t.Fatalf("%s: %v", v1, err)
		}
		if err := json.Unmarshal(v2, &b); err != nil {
			t.Fatalf("%s: %v", v2, err)
		}
		for _, got := range []Write{a[0], b[0]} {
			if got.Doc != w.Doc || !slices.Equal(got.Path, w.Path) || got.Delete != w.Delete || !Equal(got.Value, w.Value) {
				t.Fatalf("%s came back as %s", w, got)
			}
		}
	})
}

func TestWrite_Form(t *testing.T) {
	for _, c := range []struct {
		w    Write
		want string
	}{
		{Write{Doc: "stats", Path: Path{"departures"}, Value: Int(5)}, `["stats","/departures",5]`},
		{Write{Doc: "stats", Path: Path{"departures"}, Delete: true}, `["stats","/departures"]`},
		{Write{Doc: "stats", Path: Path{"departures"}}, `["stats","/departures"]`},
		{Write{Doc: "stats", Value: Null()}, `["stats","",null]`},
		{Write{Doc: "stats", Delete: true, Value: Int(5)}, `["stats",""]`},
	} {
		got, err := json.Marshal(c.w)
		if err != nil || string(got) != c.want || c.w.String() != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}

func TestWrite_RefusesEverythingElse(t *testing.T) {
	for _, text := range []string{
		`[]`, `["d"]`, `["d","",1,2]`, `["","",1]`, `[1,"",1]`, `["d",1,1]`, `["d","a",1]`, `["d","/~",1]`,
		`{"doc":"d"}`, `null`, `"d"`, `["d","",`, `["d",""`, `["d"`, `[`, ``, `["d","",{"a":1,"a":2}]`, `["d",null,1]`,
	} {
		w := Write{Doc: "kept"}
		if err := w.UnmarshalJSON([]byte(text)); err == nil || w.Doc != "kept" {
			t.Errorf("%s was read as %s", text, w)
		}
	}
	deep := Array()
	for range MaxDepth - 1 {
		deep = Array(deep)
	}
	for _, w := range []Write{
		{Value: Int(1)},
		{Doc: "\xff", Value: Int(1)},
		{Doc: "d", Path: Path{"\xff"}, Value: Int(1)},
		{Doc: "d", Path: Path{"a"}, Value: deep},
	} {
		if data, err := json.Marshal(w); err == nil {
			t.Errorf("%.100s was written", data)
		}
		if data, err := stdjson.Marshal(w); err == nil {
			t.Errorf("%.100s was written", data)
		}
	}
}

func TestWrite_Apply(t *testing.T) {
	root := parse(t, `{"a":{"b":1},"s":"x"}`)
	for _, c := range []struct{ write, want string }{
		{`["d","/a/b",2]`, `{"a":{"b":2},"s":"x"}`},
		{`["d","/a/b"]`, `{"a":{},"s":"x"}`},
		{`["d","/none/x"]`, `{"a":{"b":1},"s":"x"}`},
		{`["d","",[1]]`, `[1]`},
		{`["d",""]`, `absent`},
	} {
		var w Write
		if err := w.UnmarshalJSON([]byte(c.write)); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Apply(root); err != nil || got.String() != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.write, got, err, c.want)
		}
	}
	got, err := Write{Doc: "d", Path: Path{"s", "x"}, Value: Int(1)}.Apply(root)
	if err == nil || !strings.Contains(err.Error(), "document d: set /s/x: there is a string") || !same(got, root) {
		t.Errorf("got %s, %v", got, err)
	}
}
