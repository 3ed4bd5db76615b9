package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker/roster"
)

// place starts and stops partitions so that the worker serves exactly its own, and
// none that another worker still serves.
func (w *Worker) place() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.ctx.Err() != nil {
		return
	}
	now := time.Now()
	mine := w.roster.Share(w.bus.Partitions(), now)
	for p, part := range w.partitions { // any order: each on its own
		if !slices.Contains(mine, p) || w.ownerConflict(part, now) {
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
			if m := w.cfg.measures; m != nil {
				record(m.takeover, took, model.Trace{})
			}
			if s := w.cfg.Spans; s != nil {
				s.Takeover(p, took)
			}
			w.partitions[p] = startPartition(w.env(), p, took, w.bus.Epoch, w.restartPartition)
		}
	}
}

// env returns what the worker provides for its partitions.
func (w *Worker) env() env {
	return env{
		ctx: w.ctx, bus: w.bus, horizon: w.horizon, cfg: &w.cfg,
		counters: &w.counters, residency: &w.residency,
	}
}

// ownerConflict reports whether another worker serves a partition that this worker has had for a while: the
// other worker has taken this one for dead. Its takeovers are in the logs, so this worker leaves the
// partition alone until the other has noticed the error and has handed the partition back. w.mu is held.
func (w *Worker) ownerConflict(part *servedPartition, now time.Time) bool {
	return now.Sub(part.tenure.began) > 2*w.cfg.Heartbeat && w.roster.Contested(part.number, now)
}

// restartPartition gives up a partition whose store has gone back, as a crash would: the memory of its spaces
// depends on entries that no longer exist. The partition is then served again from the present store.
func (w *Worker) restartPartition(part *servedPartition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.partitions[part.number] != part || w.ctx.Err() != nil {
		return // it leaves anyway
	}
	delete(w.partitions, part.number)
	w.leaving[part.number] = part
	part.abandon()
	w.cfg.Logger.Warn("partition begins anew: the store has gone back, or a loss was accepted", "worker", w.cfg.ID, "partition", part.number)
	w.tasks.Go(func() { // ends with the partition's goroutines, some of which user code may hold up
		ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Handover)
		defer cancel()
		_ = wait(ctx, part.tasks)
		w.roster.LetGo(part.number)
		w.left(part)
	})
}

// left allows a partition that has been given up to be served again.
func (w *Worker) left(part *servedPartition) {
	w.mu.Lock()
	delete(w.leaving, part.number)
	w.mu.Unlock()
	w.recheckPlacement()
}

// handOver drains a partition that another worker now owns. This worker may own it again before that ends,
// and a stuck handler must not prevent it from being served, so there is a limit.
func (w *Worker) handOver(part *servedPartition) {
	if err := w.drain(w.ctx, part); err != nil && w.ctx.Err() == nil {
		w.cfg.Logger.Warn("partition was not handed over in good order", "worker", w.cfg.ID, "partition", part.number, "error", err)
	}
	w.left(part)
}

// drain drains a partition and releases it. If another worker waits for it, it takes at most
// as long as a handover may.
func (w *Worker) drain(ctx context.Context, part *servedPartition) error {
	if w.cfg.CutsOff || len(w.roster.Staying(time.Now())) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.cfg.Handover)
		defer cancel()
	}
	err := part.drain(ctx)
	w.roster.LetGo(part.number)
	w.recheckPlacement()
	return err
}

// Stop ends the worker in an orderly way. It announces that the worker is about to leave, finishes running
// work and saves, one partition after the other, so that each is unserved only while it is drained itself,
// and announces that the worker has left. It returns when nothing of the worker runs any more, or when ctx
// ends. It waits for a handler that does not return until that is given up (Config.RunLimit) or ctx ends; its
// transaction is then discarded. After Config.Handover it logs what it waits for. If no server can be reached
// for that long, the worker is cut off as well, and the error is port.ErrNoServer and lists what was not
// saved.
func (w *Worker) Stop(ctx context.Context) error {
	ctx, end := port.WhileReachable(ctx, w.bus, w.cfg.Handover)
	defer end()
	parts := w.withdraw()
	defer time.AfterFunc(w.cfg.Handover, func() { w.logStopping(parts) }).Stop()
	w.sidecars.leave()
	w.recheckPlacement()
	var drains sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		drained := make(chan struct{})
		drains.Go(func() { // not beyond ctx
			defer close(drained)
			errs[i] = w.drain(ctx, part)
		})
		waitWithin(ctx, drained, w.pace(ctx, len(parts)-i))
	}
	drains.Wait()
	left := w.takeLeave(ctx)
	if errors.Is(left, model.ErrStopped) {
		w.cancel() // the bus was stopped, and answers nothing
	}
	errs = append(errs, left, wait(ctx, &w.sidecars.tasks))
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

// takeLeave announces that the worker has left. If the announcement cannot be stored, as without the bucket of the workers, the
// worker leaves all the same: the others detect that its heartbeat has stopped.
func (w *Worker) takeLeave(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, w.cfg.Handover)
	defer cancel()
	err := w.members.announceNow(bounded, true)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("worker %s has left and could not announce it; the others notice its silence: %w", w.cfg.ID, err)
	}
	return err
}

// logStopping logs what Stop waits for.
func (w *Worker) logStopping(parts []*servedPartition) {
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
	for _, about := range w.cfg.UnderWay() {
		tell("stop waits for an action or input to return", about...)
	}
	if !told {
		tell("stop takes long", "spaces_to_save", awake)
	}
}

// withdraw takes all partitions out of service, and returns those that are still to be
// drained, by number.
func (w *Worker) withdraw() []*servedPartition {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.roster.Leave()
	for p, part := range w.partitions { // any order: all of them
		delete(w.partitions, p)
		w.leaving[p] = part
	}
	var parts []*servedPartition
	for _, part := range w.leaving { // any order: sorted below
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b *servedPartition) int { return a.number - b.number })
	return parts
}

// mostPace is how long a partition that is slow to drain delays the next.
const mostPace = 500 * time.Millisecond

// pace returns how long to wait for a partition before the next one is drained concurrently, with
// left partitions to go.
func (w *Worker) pace(ctx context.Context, left int) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded {
		return mostPace
	}
	return min(mostPace, time.Until(end)/time.Duration(2*left))
}
