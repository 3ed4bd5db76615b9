package model

// ShallowEqual is the comparison for a shallow reader. Two objects are equal if their keys are, two arrays if
// their lengths are, whatever they contain. A link has no keys in this sense: if one of the two is a link,
// and for scalars, they must be Equal.
//
// It compares no values of objects and no elements of arrays, and no keys if the two versions share their key
// set, which they do unless a key was added or removed.
func ShallowEqual(a, b Value) bool {
	switch p := a.any.(type) {
	case arrayptr:
		_, ok := b.any.(arrayptr)
		return ok && a.Len() == b.Len()
	case objectptr:
		q, ok := b.any.(objectptr)
		return ok && (p == q || shallowObjects(a, b))
	}
	return Equal(a, b)
}

// shallowObjects is ShallowEqual for two objects. Objects with different keys differ even if one is a link,
// so the keys come first; after that, only objects with the single key of a link need more work.
func shallowObjects(a, b Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	ak, _ := a.members()
	bk, _ := b.members()
	if !equalKeys(ak, bk) {
		return false
	}
	return !a.IsLink() && !b.IsLink() || Equal(a, b)
}
