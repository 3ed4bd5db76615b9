package model

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see the package
)

// Writes as a program without this package would apply them: encoding/json reads the texts of a document and
// of a write, and plain trees are changed.

// nothing represents absent in the oracle.
type nothing struct{}

// oracleTree returns v as encoding/json reads it.
func oracleTree(t rapid.TB, v Value) any {
	if v.IsAbsent() {
		return nothing{}
	}
	x, err := oracleParse(v.AppendJSON(nil))
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return x
}

// oracleApply applies a write, read from its JSON form, to root.
func oracleApply(root any, write any) (any, error) {
	w := write.([]any)
	var p Path
	if pointer := w[1].(string); pointer != "" {
		for _, step := range strings.Split(pointer[1:], "/") {
			p = append(p, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	switch {
	case len(w) == 3 && root == any(nothing{}):
		return oracleNest(p, w[2]), nil
	case len(w) == 3:
		return oracleSet(root, p, w[2])
	case len(p) == 0:
		return nothing{}, nil
	}
	return root, oracleDelete(root, p)
}

// oracleDiff lists the writes of a difference in their JSON form.
func oracleDiff(at string, before, after any) []any {
	bm, bMap := before.(map[string]any)
	am, aMap := after.(map[string]any)
	switch {
	case oracleEqual(before, after):
		return nil
	case after == any(nothing{}):
		return []any{[]any{"doc", at}}
	case !bMap || !aMap:
		return []any{[]any{"doc", at, after}}
	}
	all := maps.Clone(bm)
	maps.Copy(all, am)
	var ws []any
	for _, k := range slices.Sorted(maps.Keys(all)) {
		step := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		ws = append(ws, oracleDiff(at+step, orNothing(bm, k), orNothing(am, k))...)
	}
	return ws
}

func orNothing(m map[string]any, k string) any {
	if x, has := m[k]; has {
		return x
	}
	return nothing{}
}

func genRoot() *rapid.Generator[Value] {
	return rapid.OneOf(genObject(3), genObject(3), genValue(1), rapid.Just(Value{}))
}

func TestWriteApply_AgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genRoot().Draw(t, "v")
		for n := rapid.IntRange(1, 6).Draw(t, "writes"); n > 0; n-- {
			w := Write{Doc: "doc", Path: genPath(v).Draw(t, "p")}
			if rapid.IntRange(0, 2).Draw(t, "delete") > 0 {
				w.Value = genValue(2).Draw(t, "x")
			}
			text, err := oracleParse([]byte(w.String()))
			if err != nil {
				t.Fatalf("%s: %v", w, err)
			}
			want, wantErr := oracleApply(oracleTree(t, v), text)
			got, err := w.Apply(v)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%s to %s: got %v, want %v", w, v, err, wantErr)
			}
			if err != nil {
				if !same(got, v) {
					t.Fatalf("%s to %s failed, but changed it to %s", w, v, got)
				}
				continue
			}
			if !oracleEqual(oracleTree(t, got), want) {
				t.Fatalf("%s to %s gave %s, want %v", w, v, got, want)
			}
			wellFormed(t, got)
			v = got
		}
	})
}

func TestDiff_AgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := genRoot().Draw(t, "before"), genRoot().Draw(t, "after")
		if rapid.Bool().Draw(t, "derived") {
			after = before
			for n := rapid.IntRange(0, 3).Draw(t, "changes"); n > 0; n-- {
				x := rapid.OneOf(genValue(2), rapid.Just(Value{})).Draw(t, "x")
				if c, err := after.Set(genPath(after).Draw(t, "p"), x); err == nil {
					after = c
				}
			}
		}
		var texts []string
		for _, w := range Diff("doc", before, after) {
			texts = append(texts, w.String())
		}
		ws, err := oracleParse([]byte("[" + strings.Join(texts, ",") + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if want := oracleDiff("", oracleTree(t, before), oracleTree(t, after)); !oracleEqual(ws, want) {
			t.Fatalf("%s -> %s: got %v, want %v", before, after, texts, want)
		}
		got := oracleTree(t, before)
		for _, w := range ws.([]any) {
			if got, err = oracleApply(got, w); err != nil {
				t.Fatalf("%s -> %s: %v: %v", before, after, w, err)
			}
		}
		if !oracleEqual(got, oracleTree(t, after)) {
			t.Fatalf("%s -> %s: %v gave %v", before, after, texts, got)
		}
	})
}

// Of converts plain trees itself; the result must be what encoding/json would produce.
func TestOf_AgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := plainTree(genValue(3).Draw(t, "v"))
		text, err := stdjson.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		want, err := oracleParse(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Of(x)
		if err != nil || !oracleEqual(oracleTree(t, v), want) {
			t.Fatalf("Of(%s) = %s, %v", text, v, err)
		}
		wellFormed(t, v)
		var back any
		if err := v.Decode(&back); err != nil || fmt.Sprint(MustOf(back)) != fmt.Sprint(MustOf(floats(x))) {
			t.Fatalf("%s was decoded as %v, %v", v, back, err)
		}
	})
}

// plainTree returns v as a tree of plain Go types.
func plainTree(v Value) any {
	switch v.Kind() {
	case KindBool:
		b, _ := v.AsBool()
		return b
	case KindInt:
		i, _ := v.AsInt()
		return i
	case KindFloat:
		f, _ := v.AsFloat()
		return f
	case KindString:
		s, _ := v.AsString()
		return s
	case KindArray:
		a := []any{}
		for e := range v.Elements() {
			a = append(a, plainTree(e))
		}
		return a
	case KindObject:
		m := map[string]any{}
		for k, x := range v.All() {
			m[k] = plainTree(x)
		}
		return m
	}
	return nil
}

// floats returns a plain tree in which every number is a float64, as when decoding into any.
func floats(x any) any {
	switch x := x.(type) {
	case int64:
		return float64(x)
	case []any:
		for i := range x {
			x[i] = floats(x[i])
		}
	case map[string]any:
		for k := range x { // any order: each is independent
			x[k] = floats(x[k])
		}
	}
	return x
}
