package worker

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// A client cancels an event with a mark in the log of its space (space.CancelDoc). A host whose loop is in
// the handler of that event applies no commits, so other goroutines look for the mark meanwhile, and end the
// attempt: what it does is refused anyway, and the space goes on.

// attendWithin is how long a loop that is not in code takes, at most, to attend to an attachment. A loop that
// takes longer is looked after by awaitMark.
const attendWithin = 100 * time.Millisecond

// cancelMarked ends the attempt under way if an entry of the log marks its event as cancelled.
func (h *host) cancelMarked(e model.LogEntry) {
	stream, event := h.code.running()
	if event == "" || !bytes.Contains(e.Data, []byte(space.CancelDoc)) {
		return
	}
	if c, err := model.DecodeCommit(e.Data); err == nil && space.MarksCancelled(c, stream, event) { // the loop reports what cannot be decoded
		h.code.cancel(stream, event)
	}
}

// awaitMark looks for marks in the log of the space, as an attachment has come that may write one, until the
// function that it returns is called: the loop has attended to the attachment then, and follows the log.
func (h *host) awaitMark() (attended func()) {
	ctx, attended := context.WithCancel(h.ctx)
	h.env.tasks.Go(func() { // ends with ctx
		select {
		case <-ctx.Done():
			return
		case <-time.After(attendWithin):
		}
		after := h.code.base.Load()
		retry(ctx, h.env.cfg, "look for cancelled events", h.space, []any{"space", h.space}, func(ctx context.Context) error {
			err := h.env.bus.FollowSpace(ctx, h.space, after, func(e model.LogEntry) {
				after = e.Seq
				h.cancelMarked(e)
			})
			if errors.Is(err, model.ErrRewound) || errors.Is(err, model.ErrPurged) {
				attended() // the loop finds out what that means
			}
			return err
		})
	})
	return attended
}
