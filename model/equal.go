package model

import "unsafe"

// Equal reports whether a and b are the same JSON value. Absent equals only absent. Shared containers are
// equal without being compared, so that comparing two versions of a document costs as much as their
// difference.
func Equal(a, b Value) bool {
	if a.num != b.num {
		return false // different content, length or height
	}
	switch p := a.any.(type) {
	case Kind:
		q, ok := b.any.(Kind)
		return ok && p == q
	case stringptr:
		q, ok := b.any.(stringptr)
		return ok && (p == q || unsafe.String(p, a.num) == unsafe.String(q, b.num))
	case arrayptr:
		q, ok := b.any.(arrayptr)
		return ok && (p == q || equalAll(a.elements(), b.elements()))
	case objectptr:
		q, ok := b.any.(objectptr)
		return ok && (p == q || equalObjects(a, b))
	}
	return b.IsAbsent()
}

func equalObjects(a, b Value) bool {
	ak, av := a.members()
	bk, bv := b.members()
	return equalKeys(ak, bk) && equalAll(av, bv)
}

// same reports whether a and b are identical: equal scalars, or strings and containers that share
// their memory.
func same(a, b Value) bool { return a.num == b.num && a.any == b.any }

// equalAll compares two slices of the same length.
func equalAll(a, b []Value) bool {
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// equalKeys compares two slices of the same length.
func equalKeys(a, b []string) bool {
	if unsafe.SliceData(a) == unsafe.SliceData(b) {
		return true
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
