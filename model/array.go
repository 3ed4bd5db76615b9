package model

import (
	"iter"
	"unsafe"
)

// arrayptr points to the first element of an array, whose length is in num. It is nil for the empty array.
// Nothing writes to the elements once they are in a Value.
//
// Changing one element copies all of them (24 bytes each). That is fine for the arrays that documents should
// have; a large collection belongs in an object or in documents of its own.
type arrayptr *Value

// Array returns the array of the elements, which are copied. Absent ones become null, because JSON
// arrays have no holes.
func Array(elements ...Value) Value {
	own := append([]Value(nil), elements...)
	for i := range own {
		if own[i].IsAbsent() {
			own[i] = Null()
		}
	}
	return arrayOf(own)
}

// arrayOf takes ownership of elements.
func arrayOf(elements []Value) Value {
	return arrayWith(elements, heightOver(elements))
}

// arrayWith is arrayOf for callers that know the height.
func arrayWith(elements []Value, height int) Value {
	return Value{num: pack(len(elements), height), any: arrayptr(unsafe.SliceData(elements))}
}

// elements returns v's elements, which must not be modified; nil unless v is an array.
func (v Value) elements() []Value {
	p, ok := v.any.(arrayptr)
	if !ok {
		return nil
	}
	return unsafe.Slice((*Value)(p), v.num&lenMask)
}

// Index returns the i-th element, absent if there is none or v is not an array.
func (v Value) Index(i int) Value {
	if e := v.elements(); uint(i) < uint(len(e)) {
		return e[i]
	}
	return Value{}
}

// Elements iterates over the elements of an array in order; over nothing for another kind.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for _, e := range v.elements() {
			if !yield(e) {
				return
			}
		}
	}
}

// withElement returns the array v with its i-th element replaced, or appended if i is its length.
func (v Value) withElement(i int, x Value) Value {
	old := v.elements()
	if i == len(old) {
		grown := make([]Value, len(old)+1)
		copy(grown, old)
		grown[i] = x
		return arrayWith(grown, max(v.height(), x.height()+1))
	}
	own := append([]Value(nil), old...)
	own[i] = x
	return arrayWith(own, reheight(v.height(), old[i], x, own))
}
