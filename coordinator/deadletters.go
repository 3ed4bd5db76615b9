package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// deadLetter is a dead letter to be written.
type deadLetter struct {
	*model.DeadLetter
	p *progress
}

// queueDeadLetter queues a dead letter about an event that failed or was refused. Any number of coordinators may do so:
// there is one letter per event. The tail continues to read the log as long as the queue has room.
func (t *tail) queueDeadLetter(ctx context.Context, p *progress, e model.LogEntry, tx *model.Tx) {
	rc := tx.Receipt
	if !rc.Outcome.Lost() {
		return
	}
	stream, _ := receipts.Stream(tx.By)
	b := deadLetter{p: p, DeadLetter: &model.DeadLetter{
		Version: model.DeadVersion, Space: e.Space, Stream: stream, Event: rc.Event,
		Outcome: rc.Outcome, Error: rc.Error, Attempts: rc.Attempts, Lane: rc.Lane, Commit: e.Seq,
		Ended: e.Stored.UTC(), Trace: tx.Trace,
	}}
	p.begin(e.Seq)
	select {
	case t.letters <- b:
	case <-ctx.Done():
	}
}

// writeDeadLetters writes letters in the order of the log, until the coordinator stops.
func (t *tail) writeDeadLetters() {
	for {
		select {
		case b := <-t.letters:
			if t.write(b) {
				t.c.deadLetters.Add(1)
				b.p.end(b.Commit)
			}
		case <-t.c.ctx.Done():
			return
		}
	}
}

// write stores a letter. It returns false if the coordinator stops before that, or if the store has gone back
// and the event may not have ended. Errors are retried with growing pauses.
func (t *tail) write(b deadLetter) bool {
	d, bus := b.DeadLetter, b.p.bus
	var payload []byte
	hindsight := bus.StaleWindow()
	doubted := time.Now().Add(min(hindsight-time.Since(d.Ended), hindsight))
	// A deposed leader that does not know that yet may lack the newest events.
	ok := t.retry("read the payload of a dead letter", d, func() (err error) {
		payload, err = history.Payload(t.c.ctx, bus, history.EventRef{Space: d.Space, Stream: d.Stream, Event: d.Event})
		if history.IsGone(err) && (d.Lane == 0 || !time.Now().Before(doubted)) {
			d.Lost, err = err.Error(), nil
		}
		return err
	})
	d.SetBytes(payload)
	return ok && t.retry("store a dead letter", d, func() error {
		err := bus.StoreDead(t.c.ctx, d)
		if errors.Is(err, model.ErrTooLarge) && d.Lost == "" {
			d.SetBytes(nil)
			d.Lost = "too large for a dead letter; it is in the lane"
			err = bus.StoreDead(t.c.ctx, d)
		}
		return err
	})
}

// retry calls do until it succeeds. It returns false if the coordinator stops before that, or if the store
// has gone back.
func (t *tail) retry(what string, d *model.DeadLetter, do func() error) bool {
	for backoff := minPause; t.c.ctx.Err() == nil; backoff = min(2*backoff, maxPause) {
		err := do()
		if err == nil {
			return true
		}
		if errors.Is(err, model.ErrRewound) {
			return false
		}
		if t.c.ctx.Err() == nil && !errors.Is(err, model.ErrStopped) {
			about := []any{"space", d.Space, "stream", d.Stream, "event", d.Event, "error", err}
			if history.IsGone(err) {
				t.c.cfg.Logger.Debug(what, about...) // not certain yet, and reported by the letter
			} else {
				t.c.faults.Error(what, t.name, about...)
			}
		}
		_ = pause.For(t.c.ctx, backoff)
	}
	return false
}
