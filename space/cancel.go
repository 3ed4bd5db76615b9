package space

import (
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// CancelDoc is the document that records cancelled events (see package ledger): an object with one member per
// event.
const CancelDoc = ledger.CancelDoc

// CancelKey returns the key of an event in CancelDoc.
func CancelKey(stream, id string) string { return ledger.CancelKey(stream, id) }

// CancelMark returns the value for an event in CancelDoc: the reason, and the slot of an event that waits for
// its time, 0 for any other.
func CancelMark(why string, slot uint64) model.Value {
	return model.Object(model.F("why", why), model.F("slot", int64(slot)))
}
