package model

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Keys are the keys shared by objects with the same keys, such as all objects made from one Go struct type:
// an object made with Keys costs a single allocation, and Equal of two of them does not compare keys.
//
// The zero Keys are those of the empty object.
type Keys struct{ sorted []string }

// KeysOf takes ownership of keys and sorts them. Duplicate keys and invalid UTF-8 are errors.
func KeysOf(keys []string) (Keys, error) {
	slices.Sort(keys)
	for i, k := range keys {
		if !utf8.ValidString(k) {
			return Keys{}, fmt.Errorf("key %q: %w", k, errUTF8)
		}
		if i > 0 && keys[i-1] == k {
			return Keys{}, fmt.Errorf("key %q: occurs twice in an object", k)
		}
	}
	return Keys{keys}, nil
}

// Object calls value for each key, in sorted order, and returns the object of the results. Absent values are
// omitted; such an object has keys of its own. The first error of value is returned. Nesting deeper than
// MaxDepth is an error.
func (k Keys) Object(value func(i int) (Value, error)) (Value, error) {
	cells, absent := newCells(len(k.sorted)), 0
	for i := range k.sorted {
		x, err := value(i)
		if err != nil {
			return Value{}, err
		}
		if x.IsAbsent() {
			absent++
		}
		cells[i+1] = x
	}
	keys := k.sorted
	if absent > 0 {
		keys, cells = present(keys, cells, absent)
	}
	v := objectOf(keys, cells)
	return v, checkDepth(v, 0)
}

// present returns an object's keys and cells without those of absent values.
func present(keys []string, cells []Value, absent int) ([]string, []Value) {
	kept := newKeys(len(keys) - absent)[:0]
	for i, k := range keys {
		if x := cells[i+1]; !x.IsAbsent() {
			kept = append(kept, k)
			cells[len(kept)] = x
		}
	}
	return kept, cells[:len(kept)+1]
}

// ArrayFunc returns the array of n elements, obtained from element in order. Absent ones become
// null; the first error of element is returned. Nesting deeper than MaxDepth is an error.
func ArrayFunc(n int, element func(i int) (Value, error)) (Value, error) {
	elements := make([]Value, n)
	for i := range elements {
		x, err := element(i)
		if err != nil {
			return Value{}, err
		}
		if x.IsAbsent() {
			x = Null()
		}
		elements[i] = x
	}
	v := arrayOf(elements)
	return v, checkDepth(v, 0)
}
