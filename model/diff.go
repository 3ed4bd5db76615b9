package model

// Diff returns the writes that turn the document from before into after: applied in order, they produce a
// document Equal to after. Objects are compared key by key, so that the writes contain only what changed;
// arrays and scalars are written as a whole. Equal values need no writes. The writes are ordered by path, key
// by key.
//
// Parts that the two versions share are not compared.
func Diff(doc string, before, after Value) []Write {
	return diff(nil, doc, nil, before, after)
}

func diff(ws []Write, doc string, at Path, before, after Value) []Write {
	switch {
	case same(before, after):
		return ws
	case before.Kind() == KindObject && after.Kind() == KindObject:
		return diffObjects(ws, doc, at, before, after)
	case Equal(before, after):
		return ws
	case after.IsAbsent():
		return append(ws, Write{Doc: doc, Path: at, Delete: true})
	}
	return append(ws, Write{Doc: doc, Path: at, Value: after})
}

// diffObjects merges the sorted keys of the two.
func diffObjects(ws []Write, doc string, at Path, before, after Value) []Write {
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
		if !same(b, a) {
			ws = diff(ws, doc, at.child(key), b, a)
		}
	}
	return ws
}
