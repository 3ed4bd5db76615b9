package space

import (
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// CancelDoc is the document with the marks of events that are taken back (see package ledger): an object,
// with a member for each event.
const CancelDoc = ledger.CancelDoc

// CancelKey is the member of an event in CancelDoc.
func CancelKey(stream, id string) string { return ledger.CancelKey(stream, id) }

// CancelMark is the value of the member: why the event is taken back, and in which slot it waits
// for its time, 0 if it does not.
func CancelMark(why string, slot uint64) model.Value {
	return model.Object(model.F("why", why), model.F("slot", int64(slot)))
}
