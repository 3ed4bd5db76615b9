package space

import "github.com/settlehq/settle/model"

// reading is how a transaction reads an address.
type reading uint8

const (
	readDeep    reading = iota // the value and everything below it matters
	readShallow                // only its keys, its length, or the scalar matter
	readNothing                // nothing matters: it creates no dependency
	readLink                   // like readDeep, but a link at the end is not followed
)

// overlay holds the documents as a transaction leaves them.
type overlay struct {
	after  []docValue
	places map[*doc]int // indexes after, when there are many
	// derived has the outputs of computations that follow from these documents and are others than the present ones.
	derived map[*doc]model.Value
}

// current returns the document as the transaction sees it.
func (o *overlay) current(d *doc) model.Value {
	if i := o.place(d); i >= 0 {
		return o.after[i].value
	}
	if len(o.after) > 0 && d.key.isListing() {
		return o.listing(d)
	}
	if o.derived != nil {
		if v, ok := o.derived[d]; ok {
			return v
		}
	}
	return d.value
}

// place returns the index of a document in after, -1 if the transaction has not written it.
func (o *overlay) place(d *doc) int {
	if len(o.after) > manyReads {
		if i, ok := o.places[d]; ok {
			return i
		}
		return -1
	}
	for i := range o.after {
		if o.after[i].doc == d {
			return i
		}
	}
	return -1
}

// addPlace adds an entry of after to the index.
func (o *overlay) addPlace(v docValue) {
	o.after = append(o.after, v)
	switch n := len(o.after); {
	case n == manyReads+1:
		o.places = make(map[*doc]int, 2*n)
		for i := range o.after {
			o.places[o.after[i].doc] = i
		}
	case n > manyReads:
		o.places[v.doc] = n - 1
	}
}

// hop follows the path in the document up to the first link that has to be followed. It returns the value
// there, the rest of the path, and whether it is a link.
func (o *overlay) hop(d *doc, path model.Path, how reading) (v model.Value, rest model.Path, hop bool) {
	v = o.current(d)
	for i := range path {
		if v.IsLink() {
			return v, path[i:], true
		}
		v = v.At(path[i : i+1])
	}
	return v, nil, v.IsLink() && how != readLink
}

// pathsIn returns the places of writes in a document, nil if there are many.
func pathsIn(writes []model.Write, d *doc) []model.Path {
	if d.paths == nil {
		return nil // no index would use them
	}
	var paths []model.Path
	for i := range writes {
		if writes[i].Doc == d.key.doc {
			paths = append(paths, writes[i].Path)
		}
	}
	return paths
}
