package coordinator

import (
	"context"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// notice notifies the space that sent an event that it was not handled, for one of the reasons of
// model.Outcome.Notifies.
func (t *tail) notice(ctx context.Context, p *progress, e model.LogEntry, tx *model.Tx) {
	origin := history.NoticeTo(tx.Receipt)
	if origin == "" {
		return
	}
	if !t.enter(ctx) {
		return
	}
	r := &release{
		t: t, m: history.NoticeOf(e.Space, tx).Message(origin, tx.Trace), p: p, seq: e.Seq, from: e.Space,
		count: t.c.countNotice, end: func(error) {},
	}
	r.begin()
}

func (c *Coordinator) countNotice(model.SendResult) { c.noticed.Add(1) }
