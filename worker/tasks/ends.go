package tasks

import (
	"sync"

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
// must be reported through the lane: another attempt follows, the space is being handed
// over, or too many outcomes wait to be handled. If a performer waits until its answer is stored, commit waits, too.
// It is called by a goroutine beside the loop.
func (l *List) commit(t *task, r *result, over func(*result)) bool {
	if r.completion.Attempt > 0 {
		return false
	}
	own, payload := *r, r.completion.Value()
	size := sizeOf(payload)
	made := make(chan bool, 1)
	var stored chan bool
	if r.stored != nil {
		stored = make(chan bool, 1)
	}
	l.host.Call(func() {
		ok := l.end(t, payload, size, own.trace)
		if ok {
			t.stored = stored
			over(&own)
		}
		made <- ok
	})
	select {
	case ok := <-made:
		if ok && stored != nil {
			r.stored(l.isStored(t.action, r, stored))
		}
		return ok
	case <-l.host.Ctx.Done(): // the loop has ended, and what it did last may not be in the log: an end that is reported twice counts once
		return false
	}
}

// buffers are for sizeOf.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// sizeOf returns the size of a value as JSON.
func sizeOf(v model.Value) int {
	b := buffers.Get().(*[]byte)
	*b = v.AppendJSON((*b)[:0])
	n := len(*b)
	if n <= maxKeptBuffer {
		buffers.Put(b)
	}
	return n
}

// maxKeptBuffer is the size up to which a buffer is kept.
const maxKeptBuffer = 64 << 10

// isStored waits until the log has an outcome, and reports whether it does.
func (l *List) isStored(action string, r *result, stored chan bool) bool {
	select {
	case is := <-stored:
		return is
	case <-l.host.Ctx.Done(): // as in commit
		return l.report(l.host.Ctx, action, r, 0) != nil
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
		action, r, told, stored := t.action, &result{completion: t.ended}, t.reports, t.stored
		t.stored = nil
		l.host.Go(func() { // ends with the report, or with the host
			is := l.report(l.host.Ctx, action, r, told) != nil
			if stored != nil {
				stored <- is
			}
		})
	}
}
