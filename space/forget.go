package space

// A record of a document is made by whoever mentions it first. It goes when the document is
// absent and nobody reads or writes it any more, so that a space which hops from name to
// name, or deletes what it has done with, does not grow with all that there ever was (C20).

// mayForget notes that the last use of a document may have ended.
func (g *graph) mayForget(d *doc) {
	if !d.leaving {
		d.leaving = true
		g.leaving = append(g.leaving, d)
	}
}

// dropUnused forgets the documents that are in no use. It is called at the end of Settle,
// when no transaction holds a record.
func (g *graph) dropUnused() {
	for _, d := range g.leaving {
		d.leaving = false
		switch {
		case d.inUse():
		case d.key.space == "":
			delete(g.docs, d.key.doc)
		default:
			delete(g.far, d.key)
		}
	}
	clear(g.leaving)
	g.leaving = g.leaving[:0]
}

// inUse reports whether the record says anything that an absent one would not.
func (d *doc) inUse() bool {
	here := d.key.space == "" && !d.value.IsAbsent()
	return here || d.followed || d.refs > 0 || len(d.readers) > 0 || d.writer != nil || len(d.others) > 0
}
