package space

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// Get reads the value at a path of a document of this space, absent if there is none. The transaction sees
// its own writes. In a computation or effect the address becomes part of the read set: the node runs again
// when the value there changes.
//
// A link on the way or at the end is followed, and becomes part of the read set as well: the node runs again
// when the link gets another target. Links inside the value stay links.
func (h *Tx) Get(doc string, path ...string) model.Value { return h.open().get(doc, path...) }

// GetShallow reads like Get, but for a computation or effect only the shape counts: it runs again when a key
// of the object or an element of the array is added or removed, or a scalar there changes, but not when
// something inside does. Use only the keys and the length of the result.
func (h *Tx) GetShallow(doc string, path ...string) model.Value {
	return h.open().read("", doc, path, readShallow)
}

// Peek reads without creating a dependency: the node does not run again because of the read, and the read
// does not make anything live or bring it up to date. It is for values that do not affect the result, such as
// the previous output.
func (h *Tx) Peek(doc string, path ...string) model.Value { return h.open().peek(doc, path...) }

// StoredVersion returns the version of the form of the object at a path (see model.VersionKey), 1 if there is none. It creates no
// dependency: a run that has read a document before a later version was written has read the earlier one. space is "" for a document of this
// space; one of another space must have been read before.
func (h *Tx) StoredVersion(space, doc string, path ...string) int {
	return model.VersionOf(h.open().read(space, doc, path, readNothing))
}

// Link reads the link at a path itself, without following it; false if there is none. A link that was found
// in another space, through links on the way, names that space.
func (h *Tx) Link(doc string, path ...string) (model.Link, bool) {
	return h.open().read("", doc, path, readLink).AsLink()
}

// GetFrom reads a document of another space, which is not involved in the transaction: the result is a
// confirmed value that this runtime mirrors, and may be slightly old. A derived document that is not observed
// in its space may be as old as its last observation; reading it makes it current there, but this read may
// still see the old value.
func (h *Tx) GetFrom(space, doc string, path ...string) model.Value {
	return h.open().read(space, doc, path, readDeep)
}

// Follow reads the target of a link, in any space.
func (h *Tx) Follow(l model.Link) model.Value { return h.open().read(l.Space, l.Doc, l.Path, readDeep) }

func (t *transaction) get(doc string, path ...string) model.Value {
	return t.read("", doc, path, readDeep)
}

func (t *transaction) peek(doc string, path ...string) model.Value {
	t.peeked = true
	return t.read("", doc, path, readNothing)
}

// maxHops bounds the links that one read follows, since links may form a circle.
const maxHops = 32

// read follows links until it has the value.
func (t *transaction) read(space, id string, path model.Path, how reading) model.Value {
	t.used()
	if t.node != nil && how == readDeep && len(t.after) == 0 {
		if v, ok := t.log.expected(space, id, path); ok {
			return v
		}
	}
	v, ok := t.resolve(space, id, path, how)
	if !ok {
		// As strings: if path escaped, every caller would have to allocate it.
		t.fail(fmt.Errorf("read %s: more than %d links on the way; they go round", docKey{space, id}.String()+path.String(), maxHops))
	}
	return v
}

// resolve is read, hop by hop. It returns false after too many hops.
func (t *transaction) resolve(space, id string, path model.Path, how reading) (v model.Value, ok bool) {
	for hops := 0; hops <= maxHops; {
		if space == t.space {
			space = ""
		}
		d := t.find(space, id, how)
		if d == nil {
			return model.Value{}, true
		}
		if how != readNothing && len(t.after) > 0 && d.isWritten() {
			t.derive(d, path, how == readShallow)
		}
		v, rest, hop := t.hop(d, path, how)
		if t.note(d, path[:len(path)-len(rest)], how, hop) {
			continue // its writer has run: look again
		}
		if !hop {
			return seenFrom(space, v, how), true
		}
		link, ok := v.AsLink()
		if !ok {
			return model.Value{}, true // it only resembles a link
		}
		if link.Space != "" {
			space = link.Space
		}
		id, path = link.Doc, join(link.Path, rest)
		hops++
	}
	return model.Value{}, false
}

// seenFrom adds the space to a link that is itself the result of a read.
func seenFrom(space string, v model.Value, how reading) model.Value {
	if how != readLink || space == "" {
		return v
	}
	l, ok := v.AsLink()
	if !ok || l.Space != "" {
		return v
	}
	l.Space = space
	return l.Value()
}

func join(a, b model.Path) model.Path {
	return append(a[:len(a):len(a)], b...)
}

// find returns the record of a document, nil if there is none and the read does not need one.
func (t *transaction) find(space, id string, how reading) *doc {
	if t.node != nil {
		if how != readNothing && model.IsTaskDoc(id) {
			t.fail(fmt.Errorf("read %s: it holds a task that exists only while it is pending, and %s %s would not learn of all changes; tell others of it in a document", id, t.node.kind, t.node.id()))
			return nil
		}
		if d := t.log.expect(space, id); d != nil {
			return t.present(d, how)
		}
	}
	d := t.graph.lookup(docKey{space, id})
	if d == nil {
		if d = t.remember(docKey{space, id}); d == nil {
			return nil
		}
	}
	return t.present(d, how)
}

// present records that a document has not arrived yet.
func (t *transaction) present(d *doc, how reading) *doc {
	if !d.loaded && t.missing == nil && how != readNothing {
		t.missing = d
	}
	return d
}

// remember creates the record of a document at its first mention, except when a handler merely reads a
// document of its own space.
func (t *transaction) remember(key docKey) *doc {
	if t.node == nil && key.space == "" && !key.isListing() {
		return nil
	}
	d, err := t.graph.ensureRead(key)
	if err != nil {
		t.fail(err)
	}
	return d
}

// note adds the address to the dependencies of the transaction. If a node reads it for the first time, its
// writers are brought up to date and note returns true; a handler's attempt is abandoned if one of them is
// stale. For a link that is followed, only the target counts.
func (t *transaction) note(d *doc, path model.Path, how reading, link bool) (looked bool) {
	flat := how == readShallow && !link
	if t.node == nil && how != readNothing && !t.rehearsal {
		t.core.inv.reads(t.attempt.Event, d, path, flat)
	}
	switch {
	case how == readNothing || t.rehearsal:
	case t.node != nil:
		if t.log.add(d, path, flat) {
			looked = t.freshen(d, path, flat)
			t.log.noteFresh(d)
		}
		return looked
	case t.stale == nil && !t.lax && d.isWritten():
		t.probe.doc, t.probe.path, t.probe.shallow = d, append(t.probe.path[:0], path...), flat
		t.stale = t.graph.staleWriter(&t.probe)
	}
	return false
}

// freshen brings the writers of an address up to date.
func (t *transaction) freshen(d *doc, path model.Path, shallow bool) bool {
	if !d.isWritten() {
		return false
	}
	probe := dep{node: t.node, doc: d, path: path, shallow: shallow}
	before := t.core.begun
	probe.eachWriter(true, func(s *surface) { t.core.refresh(s.node) })
	if t.core.abandoning {
		t.tooDeep = true
		panic(tooDeep{})
	}
	if t.core.begun != before {
		t.rebase()
	}
	return true
}

// rebase applies the transaction's writes to the present documents again: nodes that it has pulled may have
// written to them, too.
func (t *transaction) rebase() {
	for i := range t.after {
		w := &t.after[i]
		w.value = w.doc.value
		for j := range t.attempt.Writes {
			if t.attempt.Writes[j].Doc != w.doc.key.doc || t.err != nil {
				continue
			}
			v, err := t.attempt.Writes[j].Apply(w.value)
			if err != nil {
				t.fail(err)
				continue
			}
			w.value = v
		}
	}
}
