package space

import (
	"hash/fnv"

	"github.com/settlehq/settle/model"
)

// touches reports whether the change of a document from before to after concerns a reader of path: whether a
// read there now has a different result.
//
// Replacing an ancestor by an equal value, or changing a sibling, does not. If the path led nowhere before
// and leads nowhere now, the reader is concerned only if the path now ends at a different place, because the
// run may have read a container on the way that was added or removed; or if there is a link at that place,
// and it has changed.
func touches(before, after model.Value, path model.Path, shallow bool) bool {
	if len(path) == 0 {
		return differ(before, after, shallow)
	}
	vb, reachedB, depthB := walk(before, path)
	va, reachedA, depthA := walk(after, path)
	if reachedB != reachedA {
		return true
	}
	if !reachedB {
		return depthB != depthA || linksDiffer(vb, va)
	}
	return differ(vb, va, shallow)
}

// differ compares deep reads by value, and shallow reads by the keys of an object, the length of an array,
// the target of a link or a scalar.
func differ(before, after model.Value, shallow bool) bool {
	if shallow {
		return !model.ShallowEqual(before, after)
	}
	return !model.Equal(before, after)
}

// linksDiffer reports whether, of two values that are not containers, exactly one is a link, or both are, with
// different targets.
func linksDiffer(before, after model.Value) bool {
	return (before.IsLink() || after.IsLink()) && !model.Equal(before, after)
}

// walk follows path from root. reached reports that every segment but the last led into a container; depth is
// the number of segments that could be followed; v is the value there.
func walk(root model.Value, path model.Path) (v model.Value, reached bool, depth int) {
	v = root
	for i := range path {
		if !container(v) {
			return v, false, i
		}
		v = v.At(path[i : i+1])
	}
	return v, true, len(path)
}

// container reports whether a path can continue inside v. A link is not a container: its target is read
// elsewhere.
func container(v model.Value) bool {
	k := v.Kind()
	return k == model.KindArray || k == model.KindObject && !v.IsLink()
}

// fingerprint distinguishes the possible results of a read at a path of a document: values, or their shapes.
// An absent value differs from null, and a place behind a link from an absent one. The result is the same in
// every process.
func fingerprint(v model.Value, path model.Path, shallow bool) uint64 {
	h := fnv.New64a()
	for i := range path {
		if v.IsLink() {
			_, _ = h.Write([]byte{'>', byte(i)})
			break
		}
		v = v.At(path[i : i+1])
	}
	if v.IsAbsent() {
		_, _ = h.Write([]byte{'-'})
		return h.Sum64()
	}
	if !shallow || v.IsLink() || !container(v) {
		_, _ = h.Write(v.AppendJSON(nil))
		return h.Sum64()
	}
	if v.Kind() == model.KindArray {
		_, _ = h.Write([]byte{'['})
		_, _ = h.Write(model.Int(int64(v.Len())).AppendJSON(nil))
		return h.Sum64()
	}
	_, _ = h.Write([]byte{'{'})
	for _, key := range v.Keys() {
		_, _ = h.Write(model.String(key).AppendJSON(nil))
	}
	return h.Sum64()
}
