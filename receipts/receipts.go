// Package receipts defines what the receipt of a handling contains.
//
// A receipt is created by the commit that handled its event, so it exists if and only if the
// handling took effect, and at most one exists per event: the commit is a compare-and-set on the
// head of the space, and the runtime that makes it has read every earlier receipt. Exactly-once
// handling needs nothing else. The package does no I/O. The log is the index of its receipts:
// history.FindReceipt bisects it (docs/adr/0015).
//
//	event ----handled----> receipt with the handler's return value
//	      ----failed-----> receipt with the error; nothing the handler wrote is kept
//	      ----refused----> receipt with the reason; no handler ran
//	      ---rejected----> receipt with code, message and data; nothing the handler wrote is kept
//	      --cancelled----> receipt with the reason; nothing that a handler did is kept
//	      ----expired----> receipt with the time; nothing that a handler did is kept
//
// Every event of a lane ends in exactly one of these, so a poison event never blocks the lane and
// never disappears.
//
// # Without Settle's workers
//
// A program that handles events without Settle's workers (as package ordered does) makes one of these
// receipts for each event, and stores it as Tx.Receipt of the transaction that also contains the writes and
// sends, with By as Tx.By: Find and the settle command expect that form. With any outcome but Handled the
// transaction must contain nothing else. The example of the package shows such a commit.
package receipts

import (
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/model"
)

// MaxErrorLen bounds the error text in a receipt, so that a failing handler
// cannot make its own failure too large to record.
const MaxErrorLen = 2000

// Handled returns the receipt of an event whose handler returned result.
func Handled(ev *model.Event, result model.Value) *model.Receipt {
	r := base(ev, model.Handled)
	r.Result = result
	return r
}

// Failed returns the receipt of an event whose handler returned err or panicked with it.
func Failed(ev *model.Event, err error) *model.Receipt {
	r := base(ev, model.Failed)
	r.Error = clip(err.Error())
	return r
}

// Refused returns the receipt of an event for which no handler could be called.
func Refused(ev *model.Event, why string) *model.Receipt {
	return notified(ev, model.Refused, why)
}

// Rejected returns the receipt of an event that its handler has declined.
func Rejected(ev *model.Event, r *Rejection) *model.Receipt {
	rc := notified(ev, model.Rejected, r.Message)
	rc.Code, rc.Result = r.Code, r.Data
	return rc
}

// Cancelled returns the receipt of an event that was cancelled before it was handled.
func Cancelled(ev *model.Event, why string) *model.Receipt {
	return notified(ev, model.Cancelled, why)
}

// Expired returns the receipt of an event whose deadline has passed.
func Expired(ev *model.Event) *model.Receipt {
	return notified(ev, model.Expired, "it was not to be handled after "+time.UnixMilli(ev.Expires).UTC().Format(time.RFC3339Nano))
}

// Repeated returns the receipt of an event that repeats another one: it has the same outcome and result.
func Repeated(ev *model.Event) *model.Receipt {
	r := base(ev, ev.Earlier.Outcome)
	r.Result = ev.Earlier.Result
	if r.Outcome == model.Rejected {
		r.Error, r.Code = ev.Earlier.Error, ev.Earlier.Code
	}
	return r
}

// notified returns a receipt of one of the outcomes of which the sender of the event gets a notice, with what the notice contains.
func notified(ev *model.Event, o model.Outcome, why string) *model.Receipt {
	r := base(ev, o)
	r.Error, r.Depth = clip(why), ev.Depth
	if r.Pos > 0 && len(ev.Payload.AppendJSON(nil)) <= model.MaxReturned {
		r.Returned = ev.Payload
	}
	return r
}

func base(ev *model.Event, o model.Outcome) *model.Receipt {
	rc := &model.Receipt{Event: ev.ID, Lane: ev.Lane, Pos: ev.Position, Slot: ev.Slot, Outcome: o}
	if ev.Position > 0 && ev.Slot == 0 {
		rc.Term, rc.ReplayKey = ev.Term, ev.ReplayKey
	}
	return rc
}

func clip(s string) string {
	if len(s) <= MaxErrorLen {
		return s
	}
	end := MaxErrorLen
	for !utf8.RuneStart(s[end]) {
		end-- // not in the middle of a character
	}
	return s[:end] + " …"
}

// Key identifies an event within its space. The same id under another stream is another event.
type Key struct{ Stream, ID string }

// Find returns the transaction of c that handled the event, or nil.
func Find(c *model.Commit, k Key) *model.Tx {
	for i := range c.Txs {
		tx := &c.Txs[i]
		if tx.Receipt != nil && tx.Receipt.Event == k.ID && tx.By == By(k.Stream) {
			return tx
		}
	}
	return nil
}

const byHandler = "handle "

// LaterBy returns the Tx.By of the transaction by which an event of stream begins to wait for its
// time.
func LaterBy(stream string) string { return "later " + stream }

// By returns the Tx.By of the handling of an event of stream.
func By(stream string) string { return byHandler + stream }

// Stream is the inverse of By, and returns false for a transaction that is not a handling.
func Stream(by string) (string, bool) {
	if len(by) <= len(byHandler) || by[:len(byHandler)] != byHandler {
		return "", false
	}
	return by[len(byHandler):], true
}
