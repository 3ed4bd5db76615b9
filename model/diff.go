package model

import "iter"

// Diff returns the writes that turn the document from before into after: applied in order, they produce a
// document Equal to after. Objects are compared key by key, so that the writes contain only what changed;
// arrays and scalars are written as a whole. Equal values need no writes. The writes are ordered by path, key
// by key.
//
// Parts that the two versions share are not compared.
func Diff(doc string, before, after Value) (ws []Write) {
	for w := range Differences(doc, before, after) {
		ws = append(ws, w)
	}
	return ws
}

// Differences are the writes of Diff, for a caller that may need only some: all of them can be far larger than the documents, if many deep places differ.
func Differences(doc string, before, after Value) iter.Seq[Write] {
	return func(yield func(Write) bool) { diff(yield, doc, nil, before, after) }
}

// diff returns false if the caller needs no more.
func diff(yield func(Write) bool, doc string, at Path, before, after Value) bool {
	switch {
	case same(before, after):
		return true
	case before.Kind() == KindObject && after.Kind() == KindObject:
		return diffObjects(yield, doc, at, before, after)
	case Equal(before, after):
		return true
	case after.IsAbsent():
		return yield(Write{Doc: doc, Path: at, Delete: true})
	}
	return yield(Write{Doc: doc, Path: at, Value: after})
}

// diffObjects merges the sorted keys of the two.
func diffObjects(yield func(Write) bool, doc string, at Path, before, after Value) bool {
	bk, bv := before.members()
	ak, av := after.members()
	for len(bk) > 0 || len(ak) > 0 {
		var key string
		var b, a Value
		inBefore := len(ak) == 0 || len(bk) > 0 && bk[0] <= ak[0]
		inAfter := len(bk) == 0 || len(ak) > 0 && ak[0] <= bk[0]
		if inBefore {
			key, b, bk, bv = bk[0], bv[0], bk[1:], bv[1:]
		}
		if inAfter {
			key, a, ak, av = ak[0], av[0], ak[1:], av[1:]
		}
		if !same(b, a) && !diff(yield, doc, at.child(key), b, a) {
			return false
		}
	}
	return true
}
