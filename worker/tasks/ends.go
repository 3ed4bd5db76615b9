package tasks

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// ends are the outcomes that the space reports to itself, in transactions of its own: the event is a send of the
// transaction, in the same commit as its handling if there is room, and no message of the lane (docs/adr/0057).
type ends struct {
	// made are the tasks by the number of the transaction with their outcome, until they are not pending any more.
	made map[uint64]*task
	// bytes is the size of the events of made.
	bytes int
}

// maxOwnEnds bounds the size of the outcomes that the space has reported to itself and not handled. They are part of its
// saved mark, which is one message. Outcomes beyond it go through the lane, which has room.
const maxOwnEnds = 128 << 10

// forget removes a task whose outcome is handled, or undone.
func (e *ends) forget(t *task) {
	if t.tx == 0 {
		return
	}
	delete(e.made, t.tx)
	e.bytes -= t.size
	t.tx, t.size = 0, 0
}

// commit lets the space report the outcome of a task to itself, and calls over in the loop. It returns false if the outcome
// must be reported through the lane: another attempt follows, a performer waits until it is stored, the space is being handed
// over, or too many outcomes wait to be handled.
// It is called by a goroutine beside the loop.
func (l *List) commit(t *task, r *result, over func(*result)) bool {
	if r.completion.Attempt > 0 || r.stored != nil {
		return false
	}
	own, payload := *r, r.completion.Value()
	size := len(payload.String())
	made := make(chan bool, 1)
	l.host.Call(func() {
		ok := l.end(t, payload, size, own.trace)
		if ok {
			over(&own)
		}
		made <- ok
	})
	select {
	case ok := <-made:
		return ok
	case <-l.host.Ctx.Done(): // the loop has ended, and what it did last may not be in the log: an end that is reported twice counts once
		return false
	}
}

// end makes the transaction with the outcome of a task.
func (l *List) end(t *task, payload model.Value, size int, by model.Trace) bool {
	if l.host.Ctx.Err() != nil || t.gone || l.core == nil || l.ends.bytes > 0 && l.ends.bytes+size > maxOwnEnds {
		return false
	}
	n, err := l.core.Transact(model.EndBy(t.action), func(tx *space.Tx) error {
		tx.CausedBy(by)
		tx.Send(l.host.Space, t.action, payload)
		return tx.Err()
	})
	if err != nil {
		return false
	}
	l.ends.forget(t) // an earlier report that had no effect
	t.tx, t.size = n, size
	l.ends.made[n] = t
	l.ends.bytes += size
	return true
}

// Undone reports the outcomes again whose transactions were undone: through the lane, because the space may be another
// worker's by now.
func (l *List) Undone(txs []uint64) {
	for _, n := range txs {
		t := l.ends.made[n]
		if t == nil {
			continue
		}
		l.ends.forget(t)
		action, r, told := t.action, &result{completion: t.ended}, t.reports
		l.host.Go(func() { l.report(l.host.Ctx, action, r, told) }) // ends with the report, or with the host
	}
}
