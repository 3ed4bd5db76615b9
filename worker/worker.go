package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// Worker hosts the spaces of its partitions. See the package comment.
type Worker struct {
	cfg     Config
	bus     Bus
	horizon time.Duration // for how long the deployment remembers events
	roster  *roster
	runs    *RunCounts

	counters counters
	awake    awake

	// ctx ends when the worker stops or is killed.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	moved  chan struct{} // the roster may have changed
	// announced is when the worker last announced itself, outage when that last took
	// far too long. They belong to run.
	announced, outage time.Time

	mu         sync.Mutex
	partitions map[int]*partition
	// leaving are partitions that are being handed over. One that comes back
	// meanwhile is served again when that is done: two of one number would fight
	// over every space.
	leaving map[int]*partition
	stopped bool
}

// minPayload leaves room for a receipt, whatever its event was like: see the least
// space.Config.MaxCommitBytes, which is half of it.
const minPayload = 64 << 10

// New makes a worker that is not running yet.
func New(bus Bus, cfg Config) (*Worker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if n := bus.MaxPayload(); n < minPayload {
		return nil, fmt.Errorf("worker %s: the server takes messages of %d bytes (max_payload), a commit needs %d at least", cfg.ID, n, minPayload)
	}
	w := &Worker{
		cfg: cfg, bus: bus, horizon: bus.Horizon(), runs: newRunCounts(),
		roster:     newRoster(model.Member{ID: cfg.ID, Weight: cfg.Weight}, cfg.MemberTTL),
		moved:      make(chan struct{}, 1),
		partitions: map[int]*partition{}, leaving: map[int]*partition{},
	}
	if w.cfg.History == 0 {
		w.cfg.History = w.horizon + model.MaxClockSkew
	}
	w.awake.limit, w.awake.idle = max(cfg.MaxAwake, 0), cfg.Idle
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// Start announces the worker, learns of the others and takes its share of the
// partitions. It returns once the shares are known and being served.
func (w *Worker) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if err := w.bus.AnswerPings(w.ctx, w.cfg.ID); err != nil {
		return err
	}
	known := make(chan struct{})
	w.keep("follow members", func(ctx context.Context) error {
		return w.bus.FollowMembers(ctx, func(m model.Member) {
			w.roster.hear(m, time.Now())
			w.poke()
		}, sync.OnceFunc(func() { close(known) }))
	})
	if err := w.bus.Announce(ctx, w.roster.beat(false)); err != nil {
		return err
	}
	select {
	case <-known:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.lookAround()
	w.place()
	w.tasks.Go(w.run)                           // ends with w.ctx
	w.tasks.Go(func() { w.awake.sweep(w.ctx) }) // likewise
	return nil
}

// run keeps the heartbeat and the placement going.
func (w *Worker) run() {
	beat := time.NewTicker(w.cfg.Heartbeat)
	defer beat.Stop()
	w.announced = time.Now()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.moved:
		case <-beat.C:
			if w.announce() {
				w.lookAround()
			}
		}
		w.place()
	}
}

// announce says that the worker is there. It reports whether it means anything if
// somebody else does not answer: after an outage of the store, or of this process,
// the others need a moment to be back.
func (w *Worker) announce() bool {
	if w.ctx.Err() != nil {
		return false // a beat that came due with the end has nothing to say any more
	}
	err := w.bus.Announce(w.ctx, w.roster.beat(false))
	if err != nil && w.ctx.Err() == nil {
		w.cfg.Logger.Warn("announce worker", "worker", w.cfg.ID, "error", err)
	}
	now := time.Now()
	if err != nil || now.Sub(w.announced) > 3*w.cfg.Heartbeat {
		w.roster.excuse(w.announced, now)
		w.outage = now
	}
	w.announced = now
	return now.Sub(w.outage) > w.cfg.MemberTTL/3
}

// lookAround pings the other members, all at once: a process that is gone has
// nobody listening.
func (w *Worker) lookAround() {
	ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Heartbeat)
	defer cancel()
	var pings sync.WaitGroup
	for _, m := range w.roster.live(time.Now()) {
		if m.ID == w.cfg.ID {
			continue
		}
		pings.Go(func() { // ends with ctx at the latest
			if alive, err := w.bus.Ping(ctx, m.ID); err == nil && !alive {
				w.roster.suspect(m.ID, m.Beat)
			}
		})
	}
	pings.Wait()
}

// place starts and stops partitions so that the worker serves exactly its own.
func (w *Worker) place() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.ctx.Err() != nil {
		return
	}
	mine := partitionsOf(w.cfg.ID, w.bus.Partitions(), w.roster.live(time.Now()))
	for p, part := range w.partitions { // any order: each on its own
		if !slices.Contains(mine, p) {
			delete(w.partitions, p)
			w.leaving[p] = part
			w.cfg.Logger.Info("partition leaves", "worker", w.cfg.ID, "partition", p)
			w.tasks.Go(func() { w.handOver(part) }) // ends when the partition's spaces are saved
		}
	}
	for _, p := range mine {
		if w.partitions[p] == nil && w.leaving[p] == nil {
			w.cfg.Logger.Info("partition joins", "worker", w.cfg.ID, "partition", p)
			w.partitions[p] = startPartition(w, p)
		}
	}
}

// handOver drains a partition that has become another worker's. It may have become
// this worker's again meanwhile, and a handler that is stuck must not keep it from
// being served, so there is a limit.
func (w *Worker) handOver(part *partition) {
	ctx, cancel := context.WithTimeout(w.ctx, w.cfg.MemberTTL)
	defer cancel()
	if err := part.drain(ctx); err != nil && w.ctx.Err() == nil {
		w.cfg.Logger.Warn("partition was not handed over in good order", "worker", w.cfg.ID, "partition", part.number, "error", err)
	}
	w.mu.Lock()
	delete(w.leaving, part.number)
	w.mu.Unlock()
	w.poke()
}

// Stop hands the worker's spaces back in good order: it finishes what is under
// way, saves, and says that it has left. It returns when nothing of the worker is
// running any more, or when ctx ends.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	for p, part := range w.partitions { // any order: all at once
		delete(w.partitions, p)
		w.leaving[p] = part
	}
	parts := slices.Collect(maps.Values(w.leaving))
	w.mu.Unlock()
	var drains sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		drains.Go(func() { errs[i] = part.drain(ctx) })
	}
	drains.Wait() // not beyond ctx
	errs = append(errs, w.bus.Announce(ctx, w.roster.beat(true)))
	w.cancel()
	return errors.Join(append(errs, wait(ctx, &w.tasks))...)
}

// Kill stops the worker dead, as a crash would: nothing is finished, nothing is
// saved, nobody is told. The bus should be killed with it.
func (w *Worker) Kill() {
	w.mu.Lock()
	w.stopped = true
	w.partitions, w.leaving = map[int]*partition{}, map[int]*partition{} // the dead remember their counts only
	w.mu.Unlock()
	w.cancel()
}

// poke asks the run loop to look at the placement again.
func (w *Worker) poke() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// Partitions lists the partitions that the worker serves now.
func (w *Worker) Partitions() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []int
	for p := range w.partitions { // any order: sorted below
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// keep runs f until the worker's end, again and again if it fails: a source may
// be lost and come back. The goroutine ends with w.ctx.
func (w *Worker) keep(what string, f func(ctx context.Context) error) {
	w.tasks.Go(func() { retry(w.ctx, w.cfg, what, f) })
}

func retry(ctx context.Context, cfg Config, what string, f func(ctx context.Context) error) {
	for ctx.Err() == nil {
		err := f(ctx)
		if ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		cfg.Logger.Warn(what, "worker", cfg.ID, "error", err)
		_ = pause.For(ctx, 200*time.Millisecond)
	}
}

// wait waits for a group, but not beyond ctx.
func wait(ctx context.Context, g *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }() // ends with the group
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
