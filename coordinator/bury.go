package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/coordinator/trail"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// bury writes a dead letter about an event that failed or was refused. Any number of
// coordinators may: there is one per event. The log behind it is read on meanwhile, as
// far as the window allows.
func (t *tail) bury(ctx context.Context, p *progress, e model.LogEntry, tx *model.Tx) {
	if tx.Receipt.Outcome == model.Handled || !t.enter(ctx) {
		return
	}
	rc := tx.Receipt
	stream, _ := receipts.Stream(tx.By)
	d := &model.DeadLetter{
		Version: model.DeadVersion, Space: e.Space, Stream: stream, Event: rc.Event,
		Outcome: rc.Outcome, Error: rc.Error, Lane: rc.Lane, Commit: e.Seq,
		Noticed: time.Now().UTC(), Trace: tx.Trace,
	}
	p.begin(e.Seq)
	t.c.tasks.Go(func() { // ends when the letter is stored, or with t.c.ctx
		defer func() { <-t.window }()
		if t.write(d) {
			t.c.buried.Add(1)
			p.end(e.Seq)
		}
	})
}

// write stores a letter, and reports false if the coordinator is stopped before that.
// What keeps it from it is tried again, ever more rarely.
func (t *tail) write(d *model.DeadLetter) bool {
	var payload []byte
	ok := t.insist("read the payload of a dead letter", d, func() (err error) {
		payload, err = trail.Payload(t.c.ctx, t.c.bus, trail.Ref{Space: d.Space, Stream: d.Stream, Event: d.Event})
		if trail.IsGone(err) {
			d.Lost, err = err.Error(), nil
		}
		return err
	})
	d.SetBytes(payload)
	return ok && t.insist("store a dead letter", d, func() error {
		err := t.c.bus.Bury(t.c.ctx, d)
		if errors.Is(err, model.ErrTooLarge) && d.Lost == "" {
			d.SetBytes(nil)
			d.Lost = "too large for a dead letter; it lies in the lane"
			err = t.c.bus.Bury(t.c.ctx, d)
		}
		return err
	})
}

// insist does something until it succeeds, and reports false if the coordinator is
// stopped before that.
func (t *tail) insist(what string, d *model.DeadLetter, do func() error) bool {
	for pause := minPause; t.c.ctx.Err() == nil; pause = min(2*pause, maxPause) {
		err := do()
		if err == nil {
			return true
		}
		if t.c.ctx.Err() == nil && !errors.Is(err, model.ErrStopped) {
			t.c.cfg.Logger.Error(what, "space", d.Space, "stream", d.Stream, "event", d.Event, "error", err)
		}
		wait(t.c.ctx, pause)
	}
	return false
}
