package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker/roster"
)

// place starts and stops partitions so that the worker serves exactly its own, and
// none that another one still has.
func (w *Worker) place() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.ctx.Err() != nil {
		return
	}
	now := time.Now()
	mine := w.roster.Share(w.bus.Partitions(), now)
	for p, part := range w.partitions { // any order: each on its own
		if !slices.Contains(mine, p) || w.usurped(part, now) {
			delete(w.partitions, p)
			w.leaving[p] = part
			w.cfg.Logger.Info("partition leaves", "worker", w.cfg.ID, "partition", p)
			w.tasks.Go(func() { w.handOver(part) }) // ends when the partition's spaces are saved
		}
	}
	for p := range w.roster.Wanted() { // any order: each on its own
		if !slices.Contains(mine, p) {
			w.roster.LetGo(p)
		}
	}
	wait := roster.Patience{Holder: w.cfg.Handover + 2*w.cfg.Heartbeat, Echo: 2 * w.cfg.Heartbeat}
	for _, p := range mine {
		if w.partitions[p] == nil && w.leaving[p] == nil && w.roster.May(p, wait, now) {
			w.cfg.Logger.Info("partition joins", "worker", w.cfg.ID, "partition", p)
			took := w.roster.Hold(p, now)
			w.partitions[p] = startPartition(w, p, took)
		}
	}
}

// usurped reports whether another worker serves a partition, too, though this one has
// had it for a while: it has taken this one for dead. Its takeovers are in the logs, so
// it is left alone until it has seen that it was wrong and has handed the partition
// back. w.mu is held.
func (w *Worker) usurped(part *partition, now time.Time) bool {
	return now.Sub(part.began) > 2*w.cfg.Heartbeat && w.roster.Contested(part.number, now)
}

// beginAnew gives up a partition whose store has gone back, as a crash would: what its spaces
// have in memory follows from what is not there any more. It is served again from what is.
func (w *Worker) beginAnew(part *partition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.partitions[part.number] != part || w.ctx.Err() != nil {
		return // it leaves anyway
	}
	delete(w.partitions, part.number)
	w.leaving[part.number] = part
	part.abandon()
	w.cfg.Logger.Warn("partition begins anew: the store has gone back, or a loss was accepted", "worker", w.cfg.ID, "partition", part.number)
	w.tasks.Go(func() { // ends with the partition's goroutines, of which user code may hold up some
		ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Handover)
		defer cancel()
		_ = wait(ctx, &part.tasks)
		w.roster.LetGo(part.number)
		w.left(part)
	})
}

// left lets a partition that has been given up be served again.
func (w *Worker) left(part *partition) {
	w.mu.Lock()
	delete(w.leaving, part.number)
	w.mu.Unlock()
	w.poke()
}

// handOver drains a partition that has become another worker's. It may have become
// this worker's again meanwhile, and a handler that is stuck must not keep it from
// being served, so there is a limit.
func (w *Worker) handOver(part *partition) {
	if err := w.drain(w.ctx, part); err != nil && w.ctx.Err() == nil {
		w.cfg.Logger.Warn("partition was not handed over in good order", "worker", w.cfg.ID, "partition", part.number, "error", err)
	}
	w.left(part)
}

// drain drains a partition and lets go of it. If somebody waits for it, that takes as
// long as a handover may.
func (w *Worker) drain(ctx context.Context, part *partition) error {
	if len(w.roster.Staying(time.Now())) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.cfg.Handover)
		defer cancel()
	}
	err := part.drain(ctx)
	w.roster.LetGo(part.number)
	w.poke()
	return err
}

// Stop hands the worker's spaces back in good order: it says that it is about to leave,
// finishes what is under way and saves, one partition after the other, so that each is
// away for as long as its own draining takes, and says that it has left. It returns when
// nothing of the worker is running any more, or when ctx ends. It waits for a handler that does
// not return until that is given up (Config.RunLimit) or ctx ends; nothing of its transaction is kept then.
// What it waits for is logged after Config.Handover. If no server can be reached for as long as that,
// it is cut off as well, and the error is port.ErrNoServer and says what was not saved.
func (w *Worker) Stop(ctx context.Context) error {
	ctx, end := port.WhileReachable(ctx, w.bus, w.cfg.Handover)
	defer end()
	parts := w.withdraw()
	defer time.AfterFunc(w.cfg.Handover, func() { w.tellStopping(parts) }).Stop()
	w.besides.leave()
	w.poke()
	var drains sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		drained := make(chan struct{})
		drains.Go(func() { // not beyond ctx
			defer close(drained)
			errs[i] = w.drain(ctx, part)
		})
		within(ctx, drained, w.pace(ctx, len(parts)-i))
	}
	drains.Wait()
	errs = append(errs, w.takeLeave(ctx), wait(ctx, &w.besides.tasks))
	w.mu.Lock()
	w.cancel() // see begin
	w.mu.Unlock()
	if cutOff(ctx) {
		ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Handover)
		defer cancel()
		return errors.Join(w.awayError(parts), wait(ended, &w.tasks))
	}
	return errors.Join(append(errs, wait(ctx, &w.tasks))...)
}

// takeLeave says that the worker has left. Where that cannot be stored, as without the bucket of the workers, it leaves
// all the same: the others notice that it is silent.
func (w *Worker) takeLeave(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, w.cfg.Handover)
	defer cancel()
	err := w.say(bounded, true)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("worker %s has left and could not say so; the others notice when they hear nothing of it: %w", w.cfg.ID, err)
	}
	return err
}

// tellStopping tells an operator what Stop waits for.
func (w *Worker) tellStopping(parts []*partition) {
	awake, told := 0, false
	tell := func(what string, about ...any) {
		told = true
		w.cfg.Logger.Warn(what, append([]any{"worker", w.cfg.ID}, about...)...)
	}
	for _, p := range parts {
		for _, h := range p.all() {
			awake++
			if what := h.code.now(); what != nil {
				tell("stop waits for a handler or node to return", append([]any{"space", h.space}, what...)...)
			}
		}
	}
	for _, a := range w.performing.UnderWay() {
		tell("stop waits for an action or input to return", "space", a.Space, "action", a.Action, "key", a.Key)
	}
	if !told {
		tell("stop takes long", "spaces_to_save", awake)
	}
}

// withdraw takes all partitions out of service, and returns those that are still to be
// drained, by number.
func (w *Worker) withdraw() []*partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.roster.Leave()
	for p, part := range w.partitions { // any order: all of them
		delete(w.partitions, p)
		w.leaving[p] = part
	}
	var parts []*partition
	for _, part := range w.leaving { // any order: sorted below
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b *partition) int { return a.number - b.number })
	return parts
}

// mostPace is how long a partition that is slow to drain holds up the next.
const mostPace = 500 * time.Millisecond

// pace is how long to wait for a partition until the next one is drained beside it, if
// so many are left.
func (w *Worker) pace(ctx context.Context, left int) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded {
		return mostPace
	}
	return min(mostPace, time.Until(end)/time.Duration(2*left))
}

// within waits for done, but not longer than d, nor beyond ctx.
func within(ctx context.Context, done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
}
