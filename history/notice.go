package history

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// NoticeTo returns the space that is notified about the end of an event, "" if none is: the space that sent
// it, if the event was refused, rejected or cancelled, or has expired. Senders outside read the receipt instead.
//
// The event's id names that space, and is as trustworthy as the target's lane: only a coordinator sets a
// position there.
func NoticeTo(rc *model.Receipt) string {
	origin, minted := model.OriginOf(rc.Event)
	if !rc.Outcome.Notifies() || rc.Pos == 0 || !minted || model.CheckName("space", origin.Space) != nil {
		return ""
	}
	return origin.Space
}

// NoticeOf returns the notice about an event that a transaction of a space has ended.
func NoticeOf(space string, tx *model.Tx) *model.Notice {
	rc := tx.Receipt
	stream, _ := receipts.Stream(tx.By)
	n := &model.Notice{Event: rc.Event, To: space, Stream: stream, Outcome: rc.Outcome, Reason: rc.Error, Payload: rc.Returned, Depth: rc.Depth}
	if no := receipts.RejectionOf(rc); no != nil {
		n.Code, n.Data = no.Code, no.Data
	}
	return n
}
