package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// introduce announces the worker under its id, if no other process uses it. A
// previous process of that id that has crashed does not answer, and does not prevent it.
func (w *Worker) introduce(ctx context.Context) error {
	if old := w.roster.Older(); old.ID != "" {
		asking, cancel := context.WithTimeout(ctx, 3*w.cfg.Heartbeat)
		alive, err := w.bus.Ping(asking, w.cfg.ID)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case alive:
			return w.taken(old)
		case err != nil: // it listens, and does not answer: it hangs, or its machine is gone
			if err := w.expectNoBeat(ctx, old); err != nil {
				return err
			}
		}
	}
	before := w.roster.Older()
	if err := w.bus.AnswerPings(w.ctx, w.cfg.ID); err != nil {
		return err
	}
	w.mu.Lock()
	w.announced = time.Now()
	w.mu.Unlock()
	if err := w.say(ctx, false); err != nil {
		return err
	}
	within(ctx, w.roster.Echoed(), 2*w.cfg.Heartbeat)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if old := w.roster.Older(); old.Life != before.Life { // it has started at the same time
		return w.expectNoBeat(ctx, old)
	}
	return nil
}

// expectNoBeat waits for three heartbeats, in which a live process would
// announce itself again.
func (w *Worker) expectNoBeat(ctx context.Context, old model.Member) error {
	if err := pause.For(ctx, 3*w.cfg.Heartbeat); err != nil {
		return err
	}
	if now := w.roster.Older(); now.Life == old.Life && now.Beat != old.Beat {
		return w.taken(now)
	}
	return nil
}

// TakenError reports that a worker of that id is alive.
type TakenError struct{ Other model.Member }

func (e *TakenError) Error() string {
	where := ""
	if e.Other.Host != "" {
		where = " on " + e.Other.Host
	}
	return fmt.Sprintf("worker %s: a process of that id is running already%s, since %s; give this one another id, or stop the other",
		e.Other.ID, where, e.Other.Since.Format(time.RFC3339))
}

func (w *Worker) taken(by model.Member) error { return &TakenError{by} }

// judgeTwins stops this worker if another process has replaced it.
func (w *Worker) judgeTwins() {
	by, yes := w.roster.Replaced()
	if !yes || w.ctx.Err() != nil {
		return
	}
	w.cfg.Logger.Error("another process runs under this worker's id and was started later; this one ends",
		"worker", w.cfg.ID, "host", by.Host, "since", by.Since)
	w.Kill()
}
