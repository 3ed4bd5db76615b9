package ledger

import "github.com/settlehq/settle/model"

// An event can be cancelled until it is handled: a mark is written into a document of the space, in a
// transaction like any other, so the log decides which came first. Once the mark is in the log, the event
// ends as cancelled, in any runtime in which it reaches the head of the lane; a concurrent handling expects a
// head of the log that has moved, is refused, and finds the mark when it is repeated. The transaction with
// the receipt removes the mark.

// CancelDoc is the document with the marks: an object with one member per event.
const CancelDoc = "settle-cancelled"

// CancelKey returns the key of an event in CancelDoc.
func CancelKey(stream, id string) string { return stream + "/" + id }

// marks reads CancelDoc.
type marks struct {
	docs *suffix
	// maybe is cleared when the document is found empty, and set again when it changes.
	maybe bool
}

// changed records that a document has changed.
func (m *marks) changed(doc string) { m.maybe = m.maybe || doc == CancelDoc }

// all returns the document with the marks, absent if there is none.
func (m *marks) all() model.Value {
	if !m.maybe {
		return model.Value{}
	}
	v := m.docs.Value(CancelDoc)
	m.maybe = v.Len() > 0 || m.docs.undecided()
	return v
}

// of returns the mark of an event, absent if there is none.
func (m *marks) of(stream, id string) model.Value {
	all := m.all()
	if all.IsAbsent() {
		return all
	}
	return all.Get(CancelKey(stream, id))
}

// MarksCancelled reports whether a commit marks an event as cancelled.
func MarksCancelled(c *model.Commit, stream, id string) bool {
	key := CancelKey(stream, id)
	for i := range c.Txs {
		for _, w := range c.Txs[i].Writes {
			if w.Doc == CancelDoc && len(w.Path) == 1 && w.Path[0] == key && !w.Value.IsAbsent() {
				return true
			}
		}
	}
	return false
}
