package ledger

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// An event can be taken back until it is handled: a mark is written into a document of the space, in a
// transaction like any other, so the log decides which was first. Once the mark is in it, the event ends as
// cancelled, in whichever runtime it comes to the head; a handling that was under way stands on a head that
// has moved, is refused, and finds the mark when it is made again. The transaction with the receipt takes
// the mark away.

// CancelDoc is the document with the marks: an object, with a member for each event.
const CancelDoc = "settle-cancelled"

// CancelKey is the member of an event in CancelDoc.
func CancelKey(stream, id string) string { return stream + "/" + id }

// marks is the document with the marks, absent if there is none.
func (l *Ledger) marks() model.Value {
	if !l.mayBeMarked {
		return model.Value{}
	}
	v := l.Value(CancelDoc)
	l.mayBeMarked = v.Len() > 0 || l.suffix.undecided()
	return v
}

// takenBack is the receipt of an event that is not to be handled any more, nil if it is to be.
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
