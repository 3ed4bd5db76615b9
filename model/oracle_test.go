package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The oracle of the value tests is as simple as possible: trees of nil, bool, *big.Rat, string, []any and
// map[string]any, changed in place, read and written by encoding/json.

// oracleOf returns the oracle's tree of v, which must not be absent.
func oracleOf(v Value) any {
	switch v.Kind() {
	case KindNull:
		return nil
	case KindBool:
		b, _ := v.AsBool()
		return b
	case KindInt:
		i, _ := v.AsInt()
		return new(big.Rat).SetInt64(i)
	case KindFloat:
		f, _ := v.AsFloat()
		return new(big.Rat).SetFloat64(f)
	case KindString:
		s, _ := v.AsString()
		return s
	case KindArray:
		a := []any{}
		for e := range v.Elements() {
			a = append(a, oracleOf(e))
		}
		return a
	case KindObject:
		m := map[string]any{}
		for k, x := range v.All() {
			m[k] = oracleOf(x)
		}
		return m
	}
	panic("no oracle for " + v.Kind().String())
}

// oracleParse reads JSON with encoding/json. Integers within int64 are exact, all other numbers are rounded
// to float64.
func oracleParse(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more after the value")
	}
	return oracleNumbers(x)
}

func oracleNumbers(x any) (any, error) {
	var err error
	switch x := x.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return new(big.Rat).SetInt64(i), nil
		}
		f, err := x.Float64()
		if err != nil {
			return nil, err
		}
		return new(big.Rat).SetFloat64(f), nil
	case []any:
		for i := range x {
			if x[i], err = oracleNumbers(x[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range x {
			if x[k], err = oracleNumbers(x[k]); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// oracleEqual is an implementation of equality independent of Equal.
func oracleEqual(a, b any) bool {
	switch a := a.(type) {
	case *big.Rat:
		b, ok := b.(*big.Rat)
		return ok && a.Cmp(b) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, oracleEqual)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, oracleEqual)
	}
	switch b.(type) {
	case *big.Rat, []any, map[string]any:
		return false
	}
	return a == b
}

// wellFormed checks the invariants of every Value.
func wellFormed(t interface{ Fatalf(string, ...any) }, v Value) {
	if v.IsAbsent() {
		return
	}
	switch v.Kind() {
	case KindArray:
		for e := range v.Elements() {
			if e.IsAbsent() {
				t.Fatalf("%s has a hole", v)
			}
			wellFormed(t, e)
		}
		if v.height() != heightOver(v.elements()) {
			t.Fatalf("%s: height is %d, want %d", v, v.height(), heightOver(v.elements()))
		}
	case KindObject:
		keys, values := v.members()
		if !slices.IsSorted(keys) || len(slices.Compact(v.Keys())) != v.Len() {
			t.Fatalf("keys %q of %s are not sorted and unique", keys, v)
		}
		for _, x := range values {
			if x.IsAbsent() {
				t.Fatalf("%s has a key without a value", v)
			}
			wellFormed(t, x)
		}
		if v.height() != heightOver(values) {
			t.Fatalf("%s: height is %d, want %d", v, v.height(), heightOver(values))
		}
	}
}

// Generators. There are few keys, so that random paths and random values match.

func genKey() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "c", "", "0", "1", "~", "/", "a/b~", "ключ", "\"\\\n"}),
		rapid.StringN(0, 4, -1).Filter(isUTF8),
	)
}

func isUTF8(s string) bool { return validUTF8(s) == s }

func genScalar() *rapid.Generator[Value] {
	return rapid.OneOf(
		rapid.Just(Null()),
		rapid.Map(rapid.Bool(), Bool),
		rapid.Map(rapid.Int64(), Int),
		rapid.Map(rapid.Int64Range(-2, 2), Int),
		rapid.Map(rapid.Float64(), Float),
		rapid.Map(rapid.SampledFrom([]float64{0.5, 1, -1, 1 << 53, 1 << 60, 1 << 63, 1e20, 1e21, 1e-6, 1e-7, 5e-324}), Float),
		rapid.Map(rapid.String(), String),
		rapid.Map(genKey(), String),
	)
}

// genValue makes any value that is not absent, nested no deeper than depth.
func genValue(depth int) *rapid.Generator[Value] {
	if depth == 0 {
		return genScalar()
	}
	return rapid.OneOf(genScalar(), genArray(depth), genObject(depth), genObject(depth))
}

func genArray(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		return Array(rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "elements")...)
	})
}

func genObject(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		var fields []Field
		for _, k := range rapid.SliceOfN(genKey(), 0, rapid.SampledFrom([]int{2, 4, 12}).Draw(t, "size")).Draw(t, "keys") {
			fields = append(fields, Field{k, genValue(depth-1).Draw(t, "value")})
		}
		return Object(fields...)
	})
}

// genPath makes a path that mostly follows v, and sometimes leaves it.
func genPath(v Value) *rapid.Generator[Path] {
	return rapid.Custom(func(t *rapid.T) Path {
		var p Path
		for n := rapid.IntRange(0, 4).Draw(t, "steps"); n > 0; n-- {
			step := genKey().Draw(t, "step")
			if rapid.IntRange(0, 9).Draw(t, "stray") > 0 {
				switch {
				case v.Kind() == KindObject && v.Len() > 0:
					step = rapid.SampledFrom(v.Keys()).Draw(t, "key")
				case v.Kind() == KindArray:
					step = fmt.Sprint(rapid.IntRange(0, v.Len()).Draw(t, "index"))
				}
			}
			p, v = p.child(step), v.At(Path{step})
		}
		return p
	})
}

func parse(t testing.TB, text string) Value {
	t.Helper()
	v, err := ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
