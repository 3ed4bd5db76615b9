package coordinator

import (
	"context"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// notice tells the space that sent an event that it was refused: its program has no
// handler for the stream, the payload cannot be read, or it is a tombstone. Who sends
// from outside asks for the receipt instead.
//
// The event's id says which space that is, and can be trusted as far as the target's
// lane can: only a coordinator puts a position there.
func (t *tail) notice(ctx context.Context, p *progress, e model.LogEntry, tx *model.Tx) {
	rc := tx.Receipt
	origin, minted := model.OriginOf(rc.Event)
	if rc.Outcome != model.Refused || rc.Pos == 0 || !minted || model.CheckName("space", origin.Space) != nil {
		return
	}
	if !t.enter(ctx) {
		return
	}
	stream, _ := receipts.Stream(tx.By)
	n := &model.Notice{Event: rc.Event, To: e.Space, Stream: stream, Reason: rc.Error}
	r := &release{
		t: t, m: n.Message(origin.Space, tx.Trace), p: p, seq: e.Seq, from: e.Space,
		count: t.c.countNotice, end: func(error) {},
	}
	r.begin()
}

func (c *Coordinator) countNotice(model.SendResult) { c.noticed.Add(1) }
