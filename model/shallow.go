package model

// ShallowEqual is the comparison for a reader that looks only at the outside of a
// value. Two objects are equal if their keys are, two arrays if their lengths
// are, whatever they contain. A link is a pointer and has no outside: as soon as
// one of the two is a link, and for everything that is no container, they must be
// Equal.
//
// It looks at no value of an object and no element of an array, and at no key if
// the two versions share their key set, as they do unless a key came or went.
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

// shallowObjects is ShallowEqual for two objects. Those of different keys are
// different even if one is a link, so the keys come first; after them only
// objects of the one key of a link cost more than a glance.
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
