package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Of converts a Go value. A Value is used as it is, a Link as its Value; nil is null; scalars,
// map[string]any, map[string]Value, []any, []Value and []string are converted directly, and everything else
// through its JSON encoding by github.com/go-json-experiment/json, with `json` tags.
//
// Unlike the constructors, Of does not repair: NaN, the infinities, invalid UTF-8 and a Link with names that
// CheckName refuses are errors, and so is nesting deeper than MaxDepth (a map that contains itself, for
// example). An integer beyond int64 becomes a float.
//
// Values that are not converted directly are written as text and parsed again, which costs five times as much
// as the typed cells of package settle, with the same result.
func Of(x any) (Value, error) {
	v, err := convert(x, 0)
	if err != nil {
		return Value{}, fmt.Errorf("convert %T: %w", x, err)
	}
	return v, nil
}

// MustOf is Of for values known to convert. It panics on an error.
func MustOf(x any) Value {
	v, err := Of(x)
	if err != nil {
		panic("model: " + err.Error())
	}
	return v
}

// convert is Of for x nested in depth containers.
func convert(x any, depth int) (Value, error) {
	if depth > MaxDepth {
		return Value{}, errTooDeep
	}
	switch x := x.(type) {
	case nil:
		return Null(), nil
	case Value:
		return x, checkDepth(x, depth)
	case Link:
		return convertLink(x, depth)
	case bool:
		return Bool(x), nil
	case string:
		return convertString(x)
	case int:
		return Int(int64(x)), nil
	case int64:
		return Int(x), nil
	case int32:
		return Int(int64(x)), nil
	case uint64:
		return convertUint(x), nil
	case uint32:
		return Int(int64(x)), nil
	case uint:
		return convertUint(uint64(x)), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Value{}, fmt.Errorf("%v is not a JSON number", x)
		}
		return Float(x), nil
	case []any:
		return convertSlice(x, depth)
	case []Value:
		return convertSlice(x, depth)
	case []string:
		return convertSlice(x, depth)
	case map[string]any:
		return convertMap(x, depth)
	case map[string]Value:
		return convertMap(x, depth)
	}
	return viaJSON(x, depth)
}

func convertLink(l Link, depth int) (Value, error) {
	if err := l.check(); err != nil {
		return Value{}, fmt.Errorf("link: %w", err)
	}
	v := l.Value()
	return v, checkDepth(v, depth)
}

func convertString(s string) (Value, error) {
	if !utf8.ValidString(s) {
		return Value{}, fmt.Errorf("string %q: %w", s, errUTF8)
	}
	return validString(s), nil
}

func convertUint(u uint64) Value {
	if u > math.MaxInt64 {
		return Float(float64(u))
	}
	return Int(int64(u))
}

func convertSlice[T any](xs []T, depth int) (Value, error) {
	elements := make([]Value, len(xs))
	for i, x := range xs {
		e, err := convert(x, depth+1)
		if err != nil {
			return Value{}, fmt.Errorf("[%d]: %w", i, err)
		}
		if e.IsAbsent() {
			e = Null()
		}
		elements[i] = e
	}
	v := arrayOf(elements)
	return v, checkDepth(v, depth)
}

func convertMap[T any](m map[string]T, depth int) (Value, error) {
	keys, cells := newKeys(len(m))[:0], newCells(len(m))[:1]
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !utf8.ValidString(k) {
			return Value{}, fmt.Errorf("key %q: %w", k, errUTF8)
		}
		x, err := convert(m[k], depth+1)
		if err != nil {
			return Value{}, fmt.Errorf("[%q]: %w", k, err)
		}
		if x.IsAbsent() {
			continue
		}
		keys, cells = append(keys, k), append(cells, x)
	}
	v := objectOf(keys, cells)
	return v, checkDepth(v, depth)
}

func viaJSON(x any, depth int) (Value, error) {
	data, err := json.Marshal(x)
	if err != nil {
		return Value{}, err
	}
	v, err := ParseValue(data)
	if err != nil {
		return Value{}, err
	}
	return v, checkDepth(v, depth)
}

// Decode stores v in the Go value that into points to, as github.com/go-json-experiment/json does with v's
// text. An absent v leaves it unchanged, as a missing key leaves a struct's field.
//
// It writes v as text and parses that, like Of in the other direction.
func (v Value) Decode(into any) error {
	if v.IsAbsent() {
		return nil
	}
	if p, ok := into.(*Value); ok && p != nil {
		*p = v
		return nil
	}
	err := withText(v.AppendJSON, func(text []byte) error { return json.Unmarshal(text, into) })
	if err != nil {
		return fmt.Errorf("decode value: %w", err)
	}
	return nil
}
