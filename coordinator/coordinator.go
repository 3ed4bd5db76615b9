package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Position is the name under which the released position of a partition's log is saved.
const Position = port.PositionReleased

// Config configures a coordinator. All fields are optional.
type Config struct {
	// ID names the coordinator in the list of the fleet; a coordinator without one is not listed.
	ID string
	// Host, Version and Connection are listed with it.
	Host, Version, Connection string
	// Window is the maximum number of releases in flight; default 1024. While it is full, the log is not read
	// further: this is the back-pressure of a slow target.
	Window int
	// Save is the interval at which the position is saved; default 1 s.
	Save   time.Duration
	Logger *slog.Logger
	Tracer trace.Tracer
	// Meter makes the instruments of the coordinator's metrics; nil measures nothing.
	Meter metric.Meter
}

// Coordinator releases sends. See the package documentation.
type Coordinator struct {
	bus port.Bus
	cfg Config

	ctx         context.Context
	cancel      context.CancelFunc
	tasks       sync.WaitGroup
	tails       []*tail
	ends        *laneEnds
	faults      *faultlog.Log
	full        fullLanes
	released    atomic.Uint64
	repeated    atomic.Uint64
	noticed     atomic.Uint64
	deadLetters atomic.Uint64
}

// New returns a coordinator that is not running yet.
func New(bus port.Bus, cfg Config) *Coordinator {
	if cfg.Window == 0 {
		cfg.Window = 1024
	}
	if cfg.Save == 0 {
		cfg.Save = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Coordinator{bus: bus, cfg: cfg, faults: faultlog.New(cfg.Logger)}
	c.ends, c.full.c = newLaneEnds(c), c
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Start begins to tail the logs of all partitions, and to answer requests.
func (c *Coordinator) Start() {
	c.tasks.Go(c.serve) // ends after registering, or with c.ctx
	for p := range c.bus.Partitions() {
		t := newTail(c, p)
		c.tails = append(c.tails, t)
		c.tasks.Go(t.run)              // ends with c.ctx
		c.tasks.Go(t.save)             // ends with c.ctx
		c.tasks.Go(t.writeDeadLetters) // ends with c.ctx
	}
	c.measure()
	c.tasks.Go(c.ends.await)   // ends with c.ctx
	c.tasks.Go(c.countLetters) // ends with c.ctx
	if c.cfg.ID != "" {
		c.tasks.Go(c.announce) // ends soon after c.ctx
	}
}

// serve offers the service of package history as soon as possible.
func (c *Coordinator) serve() {
	service := history.Service(c.ctx, c.bus)
	for backoff := minPause; c.ctx.Err() == nil; backoff = min(2*backoff, maxPause) {
		err := c.bus.Serve(c.ctx, service)
		if err == nil || c.ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		c.faults.Error("offer the coordinator's service", "", "error", err)
		_ = pause.For(c.ctx, backoff)
	}
}

// Stop ends the coordinator. The next one repeats the releases that were in flight.
func (c *Coordinator) Stop() {
	c.cancel()
	c.tasks.Wait()
}

// Released returns how many sends this coordinator has put into lanes, and how many of those were there
// already.
func (c *Coordinator) Released() (released, repeated uint64) {
	return c.released.Load(), c.repeated.Load()
}

// Noticed returns the number of failure notices that this coordinator has put into lanes.
func (c *Coordinator) Noticed() uint64 { return c.noticed.Load() }

// DeadLetters returns the number of dead letters that this coordinator has written or found written.
func (c *Coordinator) DeadLetters() uint64 { return c.deadLetters.Load() }

// tail reads the log of one partition.
type tail struct {
	c         *Coordinator
	partition int
	name      string // the partition, for the log
	window    chan struct{}
	letters   chan deadLetter
	sent      []atomic.Uint64 // per lane: the last event that was put there, see laneEnds
	// progress belongs to the current subscription; late answers to releases of an earlier one count there.
	progress atomic.Pointer[progress]
}

func newTail(c *Coordinator, partition int) *tail {
	t := &tail{c: c, partition: partition, name: strconv.Itoa(partition), window: make(chan struct{}, c.cfg.Window), letters: make(chan deadLetter, c.cfg.Window), sent: make([]atomic.Uint64, c.bus.Partitions())}
	t.progress.Store(newProgress(port.Session(c.bus), 0))
	return t
}

// run follows the log until the coordinator stops. If the subscription breaks, it resumes from there; an
// entry that cannot be read is retried with growing pauses, since it may contain sends and must not be
// skipped.
func (t *tail) run() {
	backoff := minPause
	for reached := uint64(0); t.c.ctx.Err() == nil; {
		err := t.follow()
		switch {
		case errors.Is(err, model.ErrRewound):
			t.restart()
			reached, backoff = 0, minPause
			_ = pause.For(t.c.ctx, minPause)
		case errors.Is(err, errLogLost):
			reached = 0 // follow has logged it
		case errors.Is(err, errReadable):
			reached = 0
			t.c.cfg.Logger.Warn("a commit in quarantine is decided; the log is released from there", "partition", t.partition)
		case err != nil && t.c.ctx.Err() == nil:
			t.c.faults.Error("tail log", t.name, "partition", t.partition, "error", err)
			_ = pause.For(t.c.ctx, backoff)
		}
		if done := t.progress.Load().done(); done > reached {
			reached, backoff = done, minPause
		} else {
			backoff = min(2*backoff, maxPause)
		}
	}
}

// The pauses before a log is followed again.
const (
	minPause = 200 * time.Millisecond
	maxPause = 10 * time.Second
)

// restart forgets how far the log was released: the store has gone back, and with it the saved position,
// from which the log is released again. Targets recognize repetitions by their positions.
func (t *tail) restart() {
	t.c.cfg.Logger.Warn("the store has gone back; the log is released again from the saved position", "partition", t.partition)
	renewal, _ := t.c.ends.current()
	t.newProgress(port.Session(t.c.bus), 0, renewal)
}

// newProgress starts a progress at the position up to which the log is known to be released.
func (t *tail) newProgress(bus port.Bus, from, renewal uint64) *progress {
	p := newProgress(bus, from)
	p.renewal = renewal
	t.progress.Store(p)
	return p
}

func (t *tail) follow() error {
	bus, before := t.progress.Load().bus, t.progress.Load().done()
	renewal, renewed := t.c.ends.current()
	if bus.Epoch() != t.c.bus.Epoch() || renewal != t.progress.Load().renewal {
		return model.ErrRewound
	}
	if err := t.c.ends.compare(bus); err != nil {
		return err
	}
	from, err := bus.LoadPosition(t.c.ctx, t.partition, Position)
	if err != nil {
		return err
	}
	if from, err = t.within(max(from, before)); err != nil {
		return err
	}
	saved, err := bus.PositionStored(t.c.ctx, t.partition, Position)
	if err != nil {
		return err
	}
	p := t.newProgress(bus, from, renewal)
	ctx, cancel := context.WithCancelCause(t.c.ctx)
	defer cancel(nil)
	go func() { // ends with ctx
		select {
		case <-renewed:
			cancel(model.ErrRewound)
		case <-ctx.Done():
		}
	}()
	q := &quarantine{}
	t.c.tasks.Go(func() { t.awaitDecision(ctx, q, func() { cancel(errReadable) }) }) // ends with ctx
	err = bus.FollowReleases(ctx, t.partition, max(from, 1)-1, func(e model.LogEntry) {
		switch {
		case e.Seq == from && before == 0 && isLater(bus, e.Stored, saved):
			cancel(errLogLost)
		case e.Seq == from:
		default:
			if err := t.read(ctx, p, q, e); err != nil {
				cancel(err)
			}
		}
	})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLogLost):
		t.newProgress(bus, 0, renewal)
		if _, err := t.recoverLostEnd(from); err != nil {
			return err
		}
		return cause
	case cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	}
	return err
}

// within returns where to start releasing a log that was released up to a sequence. A log that ends before
// that has lost its end, and assigns sequences again: everything in it that lanes remember is released again.
// Targets recognize repetitions.
func (t *tail) within(from uint64) (uint64, error) {
	bus := t.progress.Load().bus
	st, err := bus.LogState(t.c.ctx, t.partition, bus.Horizon())
	for began := time.Now(); err == nil && st.Last < from && time.Since(began) < bus.StaleWindow(); { // possibly a lagging leader
		if err = pause.For(t.c.ctx, minPause); err == nil {
			st, err = bus.LogState(t.c.ctx, t.partition, bus.Horizon())
		}
	}
	if err != nil || st.Last >= from {
		return from, err
	}
	return t.recoverLostEnd(from)
}

// errLogLost ends the subscription to a log that has lost its end and has grown to the same length since.
var errLogLost = errors.New("the log has lost its end")

// recoverLostEnd moves the position of a log that has lost its end back, and returns it.
func (t *tail) recoverLostEnd(released uint64) (uint64, error) {
	bus := t.progress.Load().bus
	saved, err := bus.PositionStored(t.c.ctx, t.partition, Position)
	if err != nil {
		return 0, err
	}
	from, st, err := moveBack(t.c.ctx, bus, t.partition, saved)
	if err == nil {
		t.c.faults.Error("the log ends before the released position (a power cut without fsync, or an old backup): it is released again", t.name,
			"partition", t.partition, "ends_at", st.Last, "released_up_to", released, "after", from)
	}
	return from, err
}

// save keeps the saved position close to the released one.
func (t *tail) save() {
	ticker := time.NewTicker(t.c.cfg.Save)
	defer ticker.Stop()
	var saved, epoch, renewal uint64 // saved, and the session and renewal it belongs to
	ends := map[int]anchor{}         // the ends that were saved in them
	for {
		select {
		case <-t.c.ctx.Done():
			return
		case <-ticker.C:
		}
		p := t.progress.Load()
		if e := p.bus.Epoch(); e != epoch || p.renewal != renewal {
			epoch, renewal, saved = e, p.renewal, 0
			clear(ends)
		}
		done := p.done()
		if done <= saved {
			continue
		}
		err := t.saveEnds(p.bus, ends)
		if err == nil {
			err = t.c.ends.within(p.renewal, func() error { return p.bus.SavePosition(t.c.ctx, t.partition, Position, done) })
		}
		if err == nil {
			saved = done
		} else if t.c.ctx.Err() == nil && !errors.Is(err, model.ErrRewound) {
			t.c.faults.Warn("save position", t.name, "partition", t.partition, "error", err)
		}
	}
}
