package space

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// Set writes a value at a path of a document; without a path it replaces the document. Objects along the path
// are created; a link on the way is followed, one at the end is replaced. Writing an equal value has no
// effect. v may be a model.Value or anything that encodes to JSON.
func (h *Tx) Set(doc string, v any, path ...string) {
	t := h.open()
	val, err := model.Of(v)
	if err != nil {
		t.fail(fmt.Errorf("write %s%s: %w", doc, model.Path(path), err))
		return
	}
	t.write(model.Write{Doc: doc, Path: slices.Clone(path), Value: val, Delete: val.IsAbsent()})
}

// Delete removes the value at a path of a document, or the whole document.
func (h *Tx) Delete(doc string, path ...string) {
	h.open().delete(doc, path...)
}

func (t *transaction) delete(doc string, path ...string) {
	t.write(model.Write{Doc: doc, Path: slices.Clone(path), Delete: true})
}

// notVersion refuses a write that names the version of an object: a key that comes from outside could make the object one that no program reads.
func notVersion(path model.Path) error {
	if slices.Contains(path, model.VersionKey) {
		return fmt.Errorf("the key %s is reserved for the version of a document", model.VersionKey)
	}
	return nil
}

func (t *transaction) write(w model.Write) {
	t.used()
	if t.err != nil {
		return
	}
	d, err := t.throughLinks(&w)
	if err == nil {
		err = t.notOwn(w.Doc)
	}
	if err == nil {
		err = notVersion(w.Path)
	}
	if err == nil {
		err = t.mayWrite(d, w.Path)
	}
	if err != nil {
		t.fail(fmt.Errorf("write %s%s: %w", w.Doc, w.Path, err))
		return
	}
	if t.node != nil && t.core.graph.recorder.Compares() {
		t.wrote = foldWrite(t.wrote, &w)
	}
	t.apply(d, w)
}

// mayWrite refuses a write to a computation's output, and any write of a node that has declared none.
func (t *transaction) mayWrite(d *doc, path model.Path) error {
	switch n := t.node; {
	case n != nil && n == d.owner():
		return fmt.Errorf("this document is the node's output; return its value instead")
	case d.writer != nil:
		return fmt.Errorf("this document is the output of computation %s; change what that reads instead", d.writer.node.id())
	case n == nil || n.mayWriteAt(d, path):
		return nil
	case len(n.spec.Writes)+len(n.spec.Envelope) == 0:
		return fmt.Errorf("%s %s may only read; a computation writes by returning a value, and elsewhere to what it declares in Writes or Envelope", n.kind, n.id())
	}
	// Readers of that place do not demand the node.
	if !t.rehearsal {
		t.graph.stats.OutsideWrites++
	}
	return nil
}

// apply adds a write to the transaction unless it changes nothing.
func (t *transaction) apply(d *doc, w model.Write) {
	before := t.current(d)
	after, err := w.Apply(before)
	if err != nil {
		t.fail(err)
		return
	}
	if model.Equal(before, after) {
		if d.key.space == "" && t.core.ledger.Holds(d.key.doc) {
			t.speculative = d
		}
		return
	}
	t.attempt.Writes = append(t.attempt.Writes, w)
	if t.preview != nil && t.preview.of == t {
		t.preview, t.derived = nil, nil // what followed from the earlier writes
	}
	if i := t.place(d); i >= 0 {
		t.after[i].value = after
		return
	}
	t.addPlace(docValue{doc: d, value: after})
}

// throughLinks resolves the links on the way of a write as a file system does: a link to a directory is
// followed, and a link in the place of a file is replaced. The destination depends on the links, so they
// count as reads: a node runs again when they change, and a handler waits until they are up to date.
func (t *transaction) throughLinks(w *model.Write) (*doc, error) {
	doc, path := w.Doc, w.Path
	for hops := 0; hops <= maxHops; hops++ {
		d, err := t.graph.ensureDoc(docKey{doc: w.Doc})
		if err != nil {
			return nil, err
		}
		if len(t.after) > 0 && mayLead(d, w.Path, t.node) {
			t.derive(d, w.Path, false)
		}
		v, rest, hop := t.hop(d, w.Path, readLink)
		if !hop {
			if mayLead(d, w.Path, t.node) && t.note(d, w.Path, readDeep, false) {
				hops--
				continue
			}
			return d, nil
		}
		at := w.Path[:len(w.Path)-len(rest)]
		if t.note(d, at, readLink, true) {
			hops--
			continue // its writer has run: look again
		}
		link, ok := v.AsLink()
		switch {
		case !ok:
			return nil, fmt.Errorf("%s%s has the key $link and is not a link", w.Doc, at)
		case link.Space != "" && link.Space != t.space:
			return nil, fmt.Errorf("%s%s links to space %s; a space is changed by itself only, send it an event", w.Doc, at, link.Space)
		}
		w.Doc, w.Path = link.Doc, join(link.Path, rest)
	}
	w.Doc, w.Path = doc, path
	return nil, fmt.Errorf("more than %d links on the way; they go round", maxHops)
}

// notOwn refuses writes to the documents of actions.
func (t *transaction) notOwn(doc string) error {
	owner := t.core.tasks.owner[doc]
	switch {
	case t.tasking:
		return nil
	case model.IsTaskDoc(doc):
		return errors.New("this document holds a task; start, cancel or forget that")
	case owner == "":
		return nil
	}
	return fmt.Errorf("this document holds the tasks of %s; start, cancel or forget those", owner)
}

// mayLead reports whether a write into a document may meet a link later although it met none now: a derived
// document can only be written through links, except by its own node.
func mayLead(d *doc, path model.Path, by *node) bool {
	return len(path) > 0 && d.writer != nil && d.writer.node != by
}
