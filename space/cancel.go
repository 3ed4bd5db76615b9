package space

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// An event can be taken back until it is handled. Whoever wants that writes a mark into a document
// of the space, in a transaction like any other, so the log decides which was first: once the
// mark is in it, the event ends as cancelled, whoever comes to it; a handling that was under way stands on
// a head that has moved, is refused, and finds the mark when it is made again. The transaction with the receipt
// takes the mark away.

// CancelDoc is the document with the marks: an object, with a member for each event.
const CancelDoc = "settle-cancelled"

// CancelKey is the member of an event in CancelDoc.
func CancelKey(stream, id string) string { return stream + "/" + id }

// CancelMark is the value of the member: why the event is taken back, and in which slot it waits
// for its time, 0 if it does not.
func CancelMark(why string, slot uint64) model.Value {
	return model.Object(model.F("why", why), model.F("slot", int64(slot)))
}

// takenBack is the receipt of an event that is not to be handled any more, nil if it is to be.
func (s *Space) takenBack(ev *model.Event) *model.Receipt {
	if mark := s.cancelMark(ev); !mark.IsAbsent() {
		why, _ := mark.Get("why").AsString()
		return receipts.Cancelled(ev, why)
	}
	if ev.Expires > 0 && s.wall > ev.Expires && ev.Invalid == "" {
		return receipts.Expired(ev)
	}
	return nil
}

func (s *Space) cancelMark(ev *model.Event) model.Value {
	return s.Value(CancelDoc).Get(CancelKey(ev.Stream, ev.ID))
}

// endUnhandled ends an event that is not to be handled any more.
func (s *Space) endUnhandled(ev *model.Event, rc *model.Receipt, first bool) progress {
	tx := s.begin(nil)
	tx.event = ev
	if !s.cancelMark(ev).IsAbsent() {
		tx.Delete(CancelDoc, CancelKey(ev.Stream, ev.ID))
	}
	if tx.err != nil { // a program that derives a document of that name keeps the mark
		tx.drop()
	}
	return s.endEvent(tx, ev, rc, nil, first, ev.Trace)
}

// queueCancelled puts events into the lane that wait for their time and were taken back.
func (s *Space) queueCancelled(a *agenda) {
	for _, mark := range s.Value(CancelDoc).All() { // any order: sorted keys
		slot, _ := mark.Get("slot").AsInt()
		w := a.bySlot[uint64(slot)]
		if slot <= 0 || w == nil || w.queued || s.Value(CancelDoc).Get(CancelKey(w.Stream, w.ID)).IsAbsent() {
			continue
		}
		w.queued = true
		a.queued++
		s.lane.Follow(w.Event(s.cfg.Space))
	}
}

// expiry is when the event at the head of the lane expires that could not be handled so far, 0
// if it does not.
func (s *Space) expiry() int64 {
	if ev := s.peek(); ev != nil && ev.Expires > 0 {
		return ev.Expires + 1
	}
	return 0
}
