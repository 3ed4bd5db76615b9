package host

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// A client cancels an event with a mark in the log of its space (ledger.CancelDoc). A host whose loop is in
// the handler of that event applies no commits, so another goroutine watches for the mark, and ends the
// attempt: its commit would be refused anyway, and the space continues.

// attendWithin is the longest time that a loop outside of application code takes to notice an attachment. For
// a slower loop, awaitMark watches the log.
const attendWithin = 100 * time.Millisecond

// cancelMarked ends the running attempt if an entry of the log marks its event as cancelled.
func (u *Code) cancelMarked(e model.LogEntry) {
	stream, event := u.running()
	if event == "" || !bytes.Contains(e.Data, []byte(ledger.CancelDoc)) {
		return
	}
	if c, err := model.DecodeCommit(e.Data); err == nil && ledger.MarksCancelled(c, stream, event) { // the loop reports what cannot be decoded
		u.cancel(stream, event)
	}
}

// awaitMark watches the log of the space for marks of a new attachment, until the
// function that it returns is called: the loop has noticed the attachment then, and follows the log itself.
func (u *Code) awaitMark(l *loop) (attended func()) {
	ctx, attended := context.WithCancel(l.ctx)
	l.beside(func() { // ends with ctx
		select {
		case <-ctx.Done():
			return
		case <-time.After(attendWithin):
		}
		after := u.base.Load()
		l.retry(ctx, "look for cancelled events", func(ctx context.Context) error {
			err := l.bus.FollowSpace(ctx, l.space, after, func(e model.LogEntry) {
				after = e.Seq
				u.cancelMarked(e)
			})
			if errors.Is(err, model.ErrRewound) || errors.Is(err, model.ErrPurged) {
				attended() // the loop handles the error itself
			}
			return err
		})
	})
	return attended
}
