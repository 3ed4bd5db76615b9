package model

import (
	"cmp"
	"iter"
	"slices"
	"unsafe"
)

// objectptr points to the cells of an object: its keys in cell 0 (as a keysptr with their number), then its
// values in the order of the keys. So an object takes one allocation; the keys are sorted, in an allocation
// of their own, and shared with every other version of the object that has the same keys. Nothing writes to
// cells or keys once they are in a Value.
//
// Changing one value copies all of them (24 bytes each); adding or removing a key also copies the keys (16
// bytes each). Objects of thousands of keys that change often belong in documents of their own.
type objectptr *Value

// keysptr points to the first key of an object; nil if there is none.
type keysptr *string

// Field is a key and its value, for Object.
type Field struct {
	Key   string
	Value Value
}

// F returns a field with the Value of anything that Of accepts. It panics if Of returns an error:
// use it for literals and for types known to convert.
func F(key string, v any) Field { return Field{key, MustOf(v)} }

// Object returns the object of the fields, in any order. Of two fields with the same key the latter counts;
// absent values are omitted, and bytes of a key that are not valid UTF-8 become U+FFFD.
func Object(fields ...Field) Value {
	if !plainFields(fields) {
		fields = normalFields(fields)
	}
	keys, cells := newKeys(len(fields)), newCells(len(fields))
	for i, f := range fields {
		keys[i], cells[i+1] = f.Key, f.Value
	}
	return objectOf(keys, cells)
}

// plainFields reports whether fields can be used unchanged.
func plainFields(fields []Field) bool {
	for i, f := range fields {
		if f.Value.IsAbsent() || validUTF8(f.Key) != f.Key || i > 0 && f.Key <= fields[i-1].Key {
			return false
		}
	}
	return true
}

// normalFields returns fields sorted, without absent values and overridden keys.
func normalFields(fields []Field) []Field {
	own := slices.Clone(fields)
	for i := range own {
		own[i].Key = validUTF8(own[i].Key)
	}
	slices.SortStableFunc(own, func(a, b Field) int { return cmp.Compare(a.Key, b.Key) })
	kept := own[:0]
	for i, f := range own {
		overridden := i+1 < len(own) && own[i+1].Key == f.Key
		if !overridden && !f.Value.IsAbsent() {
			kept = append(kept, f)
		}
	}
	return kept
}

func newKeys(n int) []string { return make([]string, n) }

// newCells allocates the cells of an object of n keys, the first of them reserved.
func newCells(n int) []Value { return make([]Value, n+1) }

// objectOf takes ownership of keys and cells. The keys must be sorted, unique and valid.
func objectOf(keys []string, cells []Value) Value {
	return objectWith(keys, cells, heightOver(cells[1:]))
}

// objectWith is objectOf for callers that know the height.
func objectWith(keys []string, cells []Value, height int) Value {
	cells[0] = Value{num: uint64(len(keys)), any: keysptr(unsafe.SliceData(keys))}
	return Value{num: pack(len(keys), height), any: objectptr(unsafe.SliceData(cells))}
}

// members returns v's sorted keys and their values, which must not be modified; nil unless v is an
// object.
func (v Value) members() (keys []string, values []Value) {
	p, ok := v.any.(objectptr)
	if !ok {
		return nil, nil
	}
	cells := unsafe.Slice((*Value)(p), v.num&lenMask+1)
	k, _ := cells[0].any.(keysptr)
	return unsafe.Slice((*string)(k), cells[0].num), cells[1:]
}

// indexOf returns the index of key in the sorted keys, or -1.
func indexOf(keys []string, key string) int {
	from := 0
	for to := len(keys); to-from > 8; { // for few keys, comparing for equality beats a search
		if mid := int(uint(from+to) >> 1); keys[mid] <= key {
			from = mid
		} else {
			to = mid
		}
	}
	for i, k := range keys[from:min(from+8, len(keys))] {
		if k == key {
			return from + i
		}
	}
	return -1
}

// Get returns the value at key, absent if there is none or v is not an object.
func (v Value) Get(key string) Value {
	keys, values := v.members()
	if i := indexOf(keys, key); i >= 0 {
		return values[i]
	}
	return Value{}
}

// Keys returns the keys of an object, sorted bytewise. The caller may modify the slice.
func (v Value) Keys() []string {
	keys, _ := v.members()
	return slices.Clone(keys)
}

// All iterates over the keys and values of an object in the order of the keys; over nothing for
// another kind.
func (v Value) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		keys, values := v.members()
		for i, k := range keys {
			if !yield(k, values[i]) {
				return
			}
		}
	}
}

// withMember returns the object v with the value of its i-th key replaced.
func (v Value) withMember(i int, x Value) Value {
	keys, values := v.members()
	cells := append([]Value(nil), unsafe.Slice((*Value)(v.any.(objectptr)), len(keys)+1)...)
	cells[i+1] = x
	return objectWith(keys, cells, reheight(v.height(), values[i], x, cells[1:]))
}

// plusMember returns the object v with a key added that it does not have.
func (v Value) plusMember(key string, x Value) Value {
	keys, values := v.members()
	i, _ := slices.BinarySearch(keys, key)
	ownKeys, cells := newKeys(len(keys)+1), newCells(len(keys)+1)
	copy(ownKeys, keys[:i])
	ownKeys[i] = key
	copy(ownKeys[i+1:], keys[i:])
	copy(cells[1:], values[:i])
	cells[i+1] = x
	copy(cells[i+2:], values[i:])
	return objectWith(ownKeys, cells, max(v.height(), x.height()+1))
}

// minusMember returns the object v without its i-th key.
func (v Value) minusMember(i int) Value {
	keys, values := v.members()
	ownKeys, cells := newKeys(len(keys)-1), newCells(len(keys)-1)
	copy(ownKeys, keys[:i])
	copy(ownKeys[i:], keys[i+1:])
	copy(cells[1:], values[:i])
	copy(cells[i+1:], values[i+1:])
	return objectOf(ownKeys, cells)
}
