package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/roster"
)

// Worker hosts the spaces of its partitions. See the package comment.
type Worker struct {
	cfg     Config
	bus     Bus
	horizon time.Duration // how long the deployment remembers events
	roster  *roster.Roster

	counters  counters
	residency residency

	// ctx ends when the worker stops or is killed.
	ctx     context.Context
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	moved   chan struct{} // the roster may have changed
	shared  chan struct{} // closed when the first share of the partitions is served
	members membership
	limits  limits

	mu         sync.Mutex
	partitions map[int]*servedPartition
	// leaving are partitions that are being handed over. A partition that returns before that is done is
	// served again afterwards: two instances of one partition would compete for every space.
	leaving  map[int]*servedPartition
	stopped  bool
	sidecars sidecars
}

// minPayload leaves room for a receipt of any event: see the minimum of
// space.Config.MaxCommitBytes, which is half of it.
const minPayload = 64 << 10

// New returns a worker that is not running yet.
func New(bus Bus, cfg Config) (*Worker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if n := bus.MaxPayload(); n < minPayload {
		return nil, fmt.Errorf("worker %s: the server takes messages of %d bytes (max_payload), a commit needs %d at least", cfg.ID, n, minPayload)
	}
	w := &Worker{
		cfg: cfg, bus: bus, horizon: bus.Horizon(),
		roster: roster.New(model.Member{
			ID: cfg.ID, Role: cfg.Role, Left: cfg.Role != "", Weight: cfg.Weight, Life: rand.Text(),
			Host: cfg.Host, Version: cfg.Version, Program: cfg.Program, Connection: cfg.Connection, Since: time.Now().UTC(),
		}, cfg.MemberTTL),
		moved: make(chan struct{}, 1), shared: make(chan struct{}),
		partitions: map[int]*servedPartition{}, leaving: map[int]*servedPartition{},
	}
	w.cfg.History = cmp.Or(w.cfg.History, w.horizon+model.MaxClockSkew)
	w.residency.limit, w.residency.idle = max(cfg.MaxAwake, 0), cfg.Idle
	if cfg.Lookups > 0 {
		w.residency.pace = rate.NewLimiter(rate.Limit(cfg.Lookups), maxLookups)
	}
	w.sidecars.leaving = make(chan struct{})
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.members = membership{
		ctx: w.ctx, bus: bus, cfg: &w.cfg, roster: w.roster, changed: w.recheckPlacement, speaking: make(chan struct{}, 1),
	}
	return w, nil
}

// Options returns the options that the worker runs with, defaults included.
func (w *Worker) Options() Options { return w.cfg.within(w.bus.MaxPayload()) }

// Start announces the worker, reads the other members and takes its share of the partitions. It returns once
// the shares are known and those partitions are served that no other worker has to hand over first. It fails
// if a worker with that id is alive.
func (w *Worker) Start(ctx context.Context) error {
	w.measure()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	known := make(chan struct{})
	ready := sync.OnceFunc(func() { close(known) }) // called by every successful subscription
	w.keep("follow members", func(ctx context.Context) error {
		return w.bus.FollowMembers(ctx, func(m model.Member) {
			w.roster.Receive(m, time.Now())
			w.recheckPlacement()
			w.limits.changed(w.roster)
		}, ready)
	})
	select {
	case <-known:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := w.members.introduce(ctx); err != nil {
		return err
	}
	w.members.lookAround()
	if !w.begin() {
		return context.Canceled
	}
	select {
	case <-w.shared:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts the worker's loops, unless it was stopped in the meantime: after a stop there must be no new
// goroutines.
func (w *Worker) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	w.tasks.Go(w.run)                               // ends with w.ctx
	w.tasks.Go(w.members.watchPeers)                // likewise
	w.tasks.Go(func() { w.residency.sweep(w.ctx) }) // likewise
	w.offerFigures()
	return true
}

// run maintains the heartbeat and the placement.
func (w *Worker) run() {
	beat := time.NewTicker(w.cfg.Heartbeat)
	defer beat.Stop()
	shared := sync.OnceFunc(func() { close(w.shared) })
	for due := false; ; {
		w.place()
		if !w.roster.Pending() {
			shared()
		}
		if !due && w.roster.Due(time.Now()) {
			_ = pause.For(w.ctx, announceDelay)
			due = true
		}
		if due {
			w.members.announce()
		}
		if w.members.checkDuplicateID() {
			w.Kill()
		}
		select {
		case <-w.ctx.Done():
			return
		case <-w.moved:
			due = ticked(beat.C) // whichever of the two is received first
		case <-beat.C:
			due = true
		}
	}
}

// announceDelay is how long a change waits for others to be announced with it: partitions that
// are released one by one at the same moment make one announcement.
const announceDelay = time.Millisecond

// Kill stops the worker at once, like a crash: nothing is finished, saved or announced. The bus should be
// killed with it.
func (w *Worker) Kill() {
	w.mu.Lock()
	w.stopped = true
	w.partitions, w.leaving = map[int]*servedPartition{}, map[int]*servedPartition{} // a killed worker keeps its counts only
	w.mu.Unlock()
	w.cancel()
}

// Done is closed when the worker has ended: it was stopped or killed, or
// another process runs under its id.
func (w *Worker) Done() <-chan struct{} { return w.ctx.Done() }

// recheckPlacement makes the run loop check the placement again.
func (w *Worker) recheckPlacement() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// Partitions returns the partitions that the worker serves now.
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

// keep runs f until the worker's end, and restarts it if it fails: a source may
// be lost and return. The goroutine ends with w.ctx.
func (w *Worker) keep(what string, f func(ctx context.Context) error) {
	w.tasks.Go(func() { retry(w.ctx, &w.cfg, what, "", nil, f) })
}

// Beside runs f along with the worker. leaving is closed when the worker begins to stop;
// f must then finish and return. Stop waits for it, but only after the worker's
// spaces are handed over and the other workers know that it leaves. ctx ends when the worker is killed, or
// when Stop has waited for too long.
func (w *Worker) Beside(f func(ctx context.Context, leaving <-chan struct{})) {
	w.sidecars.tasks.Go(func() { f(w.ctx, w.sidecars.leaving) }) // ends with Stop or Kill
}

// AddFigures registers f, which adds to the figures of the worker at each status request.
func (w *Worker) AddFigures(f func(*status.Figures)) {
	w.sidecars.mu.Lock()
	defer w.sidecars.mu.Unlock()
	w.sidecars.add = append(w.sidecars.add, f)
}

// Owner returns the worker that should serve a space now, as far as this worker knows: possibly
// itself, and possibly one to which another has yet to hand the space over. It is "" if this
// worker is leaving and knows of no other.
func (w *Worker) Owner(space string) string {
	n := w.bus.Partitions()
	return roster.Divide(n, w.roster.Staying(time.Now()))[model.PartitionOf(space, n)]
}

// Peers returns the ids of the workers that this one knows to be there, itself included, sorted.
func (w *Worker) Peers() (ids []string) {
	for _, m := range w.roster.Live(time.Now()) {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

// ID returns the worker's id.
func (w *Worker) ID() string { return w.cfg.ID }

// Life distinguishes this worker from earlier and later ones with its id; see model.Member.
func (w *Worker) Life() string { return w.roster.Self().Life }

// partitionOf returns the partition of a space, nil if this worker does not serve it.
func (w *Worker) partitionOf(name string) *servedPartition {
	return w.served(model.PartitionOf(name, w.bus.Partitions()))
}

// served returns the partition of that number, nil if this worker does not serve it.
func (w *Worker) served(number int) *servedPartition {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil
	}
	return w.partitions[number]
}
