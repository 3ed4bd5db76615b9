package space

import "github.com/settlehq/settle/model"

// documents has the records of documents: the space's own and those that it mirrors.
//
// The first mention of a document creates its record. The record is removed when the document is absent and
// nothing reads or writes it, so a space that keeps using new names, or deletes documents, does not grow with
// every name it has ever seen.
type documents struct {
	docs map[string]*doc // of this space
	far  map[docKey]*doc // of other spaces
	// spareDocs are preallocated records.
	spareDocs []doc
	// follows are the foreign documents for which the need may have begun or ended. Of the documents that
	// have not arrived, away are those that are read, and pending counts those that are needed.
	follows []*doc
	away    []*doc
	pending int
	leaving []*doc // see dropUnused
	// listings are the records of lists of documents, which are in docs, too.
	listings []*doc
	// tasks are the documents of single tasks that exist, by name.
	tasks map[string]*doc
	// trails has the trails of the documents whose values follow from other spaces.
	trails map[*doc]*model.Trail
}

// noteTask records that the document of a task has a value, or has none any more.
func (ds *documents) noteTask(d *doc) {
	switch {
	case d.key.space != "" || !model.IsTaskDoc(d.key.doc):
	case d.value.IsAbsent():
		delete(ds.tasks, d.key.doc)
	default:
		if ds.tasks == nil {
			ds.tasks = map[string]*doc{}
		}
		ds.tasks[d.key.doc] = d
	}
}

// local returns the record of a document of this space, or nil.
func (ds *documents) local(id string) *doc { return ds.docs[id] }

// known returns the record of a document of this space that exists, restoring one that was forgotten.
func (ds *documents) known(id string) *doc {
	d := ds.docs[id]
	if d == nil {
		d = &doc{key: docKey{doc: id}, loaded: true}
		ds.docs[id] = d
		ds.mayForget(d)
	}
	return d
}

// lookup returns the record of a document, or nil.
func (ds *documents) lookup(key docKey) *doc {
	if key.space == "" {
		return ds.docs[key.doc]
	}
	return ds.far[key]
}

// ensureDoc returns the record of a document, creating it if necessary. It validates each name once, because
// user code may make up names.
func (ds *documents) ensureDoc(key docKey) (*doc, error) {
	if d := ds.lookup(key); d != nil && !key.isListing() {
		return d, nil
	}
	if err := model.CheckName("document", key.doc); err != nil {
		return nil, err
	}
	d := ds.newDoc()
	d.key, d.loaded = key, key.space == ""
	ds.mayForget(d)
	if d.loaded {
		ds.docs[key.doc] = d
		return d, nil
	}
	if err := model.CheckName("space", key.space); err != nil {
		return nil, err
	}
	ds.far[key] = d
	return d, nil
}

func (ds *documents) newDoc() *doc {
	if len(ds.spareDocs) == 0 {
		return &doc{}
	}
	d := &ds.spareDocs[0]
	ds.spareDocs = ds.spareDocs[1:]
	return d
}

// setLoaded records that a foreign document has arrived, or is no longer followed.
func (ds *documents) setLoaded(d *doc, loaded bool) {
	if d.loaded == loaded {
		return
	}
	by := 1
	if loaded {
		by = -1
	}
	if d.refs > 0 {
		ds.pending += by
	}
	d.loaded = loaded
	ds.keepAway(d)
}

// keepAway adds a document to away, or removes it, depending on its state.
func (ds *documents) keepAway(d *doc) {
	keep(&ds.away, d, !d.loaded && len(d.readers) > 0, (*doc).awayPlace)
}

func (d *doc) awayPlace() *int32 { return &d.awayAt }

// needDoc adds or removes one reason to mirror a document.
func (ds *documents) needDoc(d *doc, more bool) {
	edge := int32(0) // the count at which the need for the document changes
	if more {
		d.refs++
		edge = 1
	} else {
		d.refs--
	}
	if d.refs != edge || d.key.space == "" {
		return
	}
	ds.follows = append(ds.follows, d)
	switch {
	case d.loaded:
	case more:
		ds.pending++
	default:
		ds.pending--
	}
}

// mayForget records that the last use of a document may have ended.
func (ds *documents) mayForget(d *doc) {
	if !d.leaving {
		d.leaving = true
		ds.leaving = append(ds.leaving, d)
	}
}

// dropUnused removes the records of unused documents. It is called at the end of Settle, when no transaction
// holds a record.
func (ds *documents) dropUnused() {
	for _, d := range ds.leaving {
		d.leaving = false
		switch {
		case d.inUse():
		case d.key.space == "":
			delete(ds.docs, d.key.doc)
			ds.dropListing(d)
			ds.setTrail(d, nil)
		default:
			delete(ds.far, d.key)
			ds.setTrail(d, nil)
		}
	}
	clear(ds.leaving)
	ds.leaving = ds.leaving[:0]
}

// setTrail records the trail of the value of a document, nil for none.
func (ds *documents) setTrail(d *doc, t *model.Trail) {
	switch {
	case t != nil:
		if ds.trails == nil {
			ds.trails = map[*doc]*model.Trail{}
		}
		ds.trails[d] = t
	case len(ds.trails) > 0:
		delete(ds.trails, d)
	}
}

// inUse reports whether the record holds anything that a new one would not.
func (d *doc) inUse() bool {
	here := d.key.space == "" && !d.value.IsAbsent() && !d.key.isListing()
	return here || d.followed || d.refs > 0 || len(d.readers) > 0 || d.writer != nil || len(d.others) > 0
}

// keep adds x to a list or removes it. place returns where x stores its position, counted from 1; 0 means
// none.
func keep[T any](list *[]*T, x *T, want bool, place func(*T) *int32) {
	switch at := place(x); {
	case want && *at == 0:
		*list = append(*list, x)
		*at = int32(len(*list))
	case !want && *at != 0:
		last := len(*list) - 1
		moved := (*list)[last]
		(*list)[*at-1] = moved
		*place(moved) = *at
		*at = 0
		(*list)[last] = nil
		*list = (*list)[:last]
	}
}
