package space

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// A listing is a record whose key is a pattern of names. That of documents, "order-*", has a key for each document of this space
// that matches, exists, and is written by no node: what nodes write comes and goes with demand, and a node would read what it is about to
// write. Names that begin with '-' are Settle's own, and listed only by a pattern that begins so. That of spaces,
// "@lot-*/spaces", is mirrored like a document of another space; the host knows which spaces there are.
//
// A listing is no document: it is in no log, and nothing but this file changes it (docs/adr/0086).

func (k docKey) isListing() bool { return k.space == "" && model.IsPattern(k.doc) }

// checkListing returns an error unless the key of a listing is valid; false if it is that of a document.
func checkListing(key docKey) (is bool, err error) {
	switch {
	case key.isListing():
		return true, model.CheckPattern("document", key.doc)
	case key.doc == model.SpacesDoc && model.IsPattern(key.space):
		return true, model.CheckPattern("space", key.space)
	}
	return false, nil
}

// ensureRead is ensureDoc for a place that is read, which may be a listing.
func (ds *documents) ensureRead(key docKey) (*doc, error) {
	is, err := checkListing(key)
	if err != nil {
		return nil, err
	}
	if d := ds.lookup(key); d != nil || !is {
		if d == nil {
			d, err = ds.ensureDoc(key)
		}
		return d, err
	}
	d := ds.newDoc()
	d.key = key
	ds.mayForget(d)
	if key.space != "" {
		ds.far[key] = d
		return d, nil
	}
	d.loaded, d.value = true, ds.list(key.doc)
	ds.docs[key.doc] = d
	ds.listings = append(ds.listings, d)
	return d, nil
}

// list returns the listing of a pattern of documents.
func (ds *documents) list(pattern string) model.Value {
	var names []model.Field
	for id, d := range ds.docs { // any order: sorted by Object
		if lists(pattern, id) && d.listed(d.value) {
			names = append(names, model.Field{Key: id, Value: model.Bool(true)})
		}
	}
	return model.Object(names...)
}

// lists reports whether a pattern lists a name.
func lists(pattern, name string) bool {
	return model.MatchesPattern(pattern, name) && !model.IsPattern(name) && (name[0] != '-' || pattern[0] == '-')
}

// listed reports whether listings have a document of this space, if it has that value.
func (d *doc) listed(v model.Value) bool {
	return !v.IsAbsent() && !d.isWritten() && !model.IsTaskDoc(d.key.doc)
}

// dropListing forgets a listing that nothing reads any more.
func (ds *documents) dropListing(d *doc) {
	if d.key.isListing() {
		ds.listings = slices.DeleteFunc(ds.listings, func(l *doc) bool { return l == d })
	}
}

// relist brings the listings up to date after a document may have entered or left them.
func (c *changes) relist(d *doc) {
	if d.key.space != "" || d.key.isListing() {
		return
	}
	for _, l := range c.documents.listings {
		if lists(l.key.doc, d.key.doc) {
			paths := c.from.paths
			c.from.paths = nil // they are places in d
			c.apply(l, withName(l.value, d.key.doc, d.listed(d.value)))
			c.from.paths = paths
		}
	}
}

// rewritten is relist after a node has begun or ceased to write a document.
func (c *changes) rewritten(d *doc) {
	if len(c.documents.listings) > 0 {
		c.from = origin{}
		c.relist(d)
	}
}

// withName returns a listing with or without a name.
func withName(listing model.Value, name string, there bool) model.Value {
	after, err := listing, error(nil)
	if there {
		after, err = listing.Set(model.Path{name}, model.Bool(true))
	} else if !listing.Get(name).IsAbsent() {
		after, err = listing.Delete(model.Path{name})
	}
	if err != nil {
		return listing // a listing is an object, and a name a key
	}
	return after
}

// listing returns a listing as a transaction leaves it.
func (o *overlay) listing(l *doc) model.Value {
	v := l.value
	for i := range o.after {
		if d := o.after[i].doc; d.key.space == "" && lists(l.key.doc, d.key.doc) {
			v = withName(v, d.key.doc, d.listed(o.after[i].value))
		}
	}
	return v
}

// hasListingReaders reports whether a node reads a listing that a name may enter or leave.
func (ds *documents) hasListingReaders(name string) bool {
	return slices.ContainsFunc(ds.listings, func(l *doc) bool { return len(l.readers) > 0 && lists(l.key.doc, name) })
}
