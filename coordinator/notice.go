package coordinator

import (
	"context"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// notice notifies the space that sent an event that it was not handled, for one of the reasons of
// model.Outcome.Notifies.
func (t *tail) notice(ctx context.Context, p *progress, e model.LogEntry, tx *model.Tx) {
	rc := tx.Receipt
	origin := history.NoticeTo(rc)
	if origin == "" {
		return
	}
	if !t.enter(ctx) {
		return
	}
	stream, _ := receipts.Stream(tx.By)
	n := &model.Notice{Event: rc.Event, To: e.Space, Stream: stream, Reason: rc.Error, Depth: rc.Depth, Code: rc.Code}
	if rc.Outcome == model.Rejected {
		n.Data = rc.Result
	}
	r := &release{
		t: t, m: n.Message(origin, tx.Trace), p: p, seq: e.Seq, from: e.Space,
		count: t.c.countNotice, end: func(error) {},
	}
	r.begin()
}

func (c *Coordinator) countNotice(model.SendResult) { c.noticed.Add(1) }
