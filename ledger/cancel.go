package ledger

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// An event can be cancelled until it is handled: a mark is written into a document of the space, in a
// transaction like any other, so the log decides which came first. Once the mark is in the log, the event ends as
// cancelled, in any runtime in which it reaches the head of the lane; a concurrent handling expects a head of the log that
// has moved, is refused, and finds the mark when it is repeated. The transaction with the receipt removes
// the mark.

// CancelDoc is the document with the marks: an object with a member for each event.
const CancelDoc = "settle-cancelled"

// CancelKey returns the key of an event in CancelDoc.
func CancelKey(stream, id string) string { return stream + "/" + id }

// marks returns the document with the marks, absent if there is none.
func (l *Ledger) marks() model.Value {
	if !l.mayBeMarked {
		return model.Value{}
	}
	v := l.Value(CancelDoc)
	l.mayBeMarked = v.Len() > 0 || l.suffix.undecided()
	return v
}

// takenBack returns the receipt of an event that was cancelled or has expired, nil if it is to be handled.
func (l *Ledger) takenBack(ev *model.Event) *model.Receipt {
	if mark := l.marks().Get(CancelKey(ev.Stream, ev.ID)); !mark.IsAbsent() {
		why, _ := mark.Get("why").AsString()
		return receipts.Cancelled(ev, why)
	}
	if ev.Expires > 0 && l.wall > ev.Expires && ev.Invalid == "" {
		return receipts.Expired(ev)
	}
	return nil
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
