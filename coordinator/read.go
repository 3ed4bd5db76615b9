package coordinator

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// members are the JSON members that mark commits of interest to a coordinator. Quotes inside a JSON string
// are escaped, so a commit without these has no sends and no such receipts, and need not be decoded; that is
// true of most commits.
var members = func() [][]byte {
	list := [][]byte{[]byte(`"snd":[`)}
	for _, o := range model.Outcomes {
		if o.Notifies() || o.Lost() {
			list = append(list, []byte(`"o":"`+string(o)+`"`))
		}
	}
	return list
}()

// relevant reports whether a commit may be of interest to a coordinator. One that was appended with a note that it is not need not even be
// searched.
func relevant(e *model.LogEntry) bool {
	return !e.Inert && slices.ContainsFunc(members, func(member []byte) bool { return bytes.Contains(e.Data, member) })
}

// read processes one log entry: it releases the sends to other spaces, notifies origins of
// refusals, and writes dead letters.
func (t *tail) read(ctx context.Context, p *progress, q *quarantine, e model.LogEntry) error {
	if ctx.Err() != nil {
		return nil // an entry before this one was not released
	}
	if relevant(&e) && !q.has(e.Space) {
		c, err := history.ReadCommit(ctx, p.bus, &e)
		if _, is := errors.AsType[*model.UnreadableError](err); is {
			t.setAside(p, q, e, err)
			c = &model.Commit{}
		} else if err != nil {
			return err
		}
		for i := range c.Txs {
			t.act(ctx, p, e, &c.Txs[i])
		}
	}
	if ctx.Err() == nil { // else the tail is shutting down, possibly in the middle of the entry
		p.read(e.Seq)
	}
	return nil
}

func (t *tail) act(ctx context.Context, p *progress, e model.LogEntry, tx *model.Tx) {
	for i := range tx.Sends {
		if s := &tx.Sends[i]; s.To != e.Space {
			t.send(ctx, p, e, s)
		}
	}
	if tx.Receipt != nil {
		t.notice(ctx, p, e, tx)
		t.queueDeadLetter(ctx, p, e, tx)
	}
}
