package host

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// servedPartition serves the spaces of one partition: it reads the lane, passes events and leases to the
// spaces' hosts, and has them saved periodically.
type servedPartition struct {
	env    // shared with its hosts; its bus is a session
	cancel context.CancelFunc
	number int
	tenure tenure
	// current returns the epoch of the worker's bus, and restart gives the partition up, to be served
	// again.
	current func() uint64
	restart func(*servedPartition)

	mu     sync.Mutex
	closed bool // no new hosts
	hosts  map[string]*host
	// asleep are the spaces without a host that are not done with their lane: those
	// without a program, and those whose host has ended.
	asleep map[string]laneBacklog
	// waiting are the spaces that wait for their turn to be loaded, with the functions to
	// call then.
	waiting map[string][]func(*host)
	leases  leases
	lanePosition
	wakeups  wakeups
	stuck    stuckSpaces
	overruns overruns
	failings failings
	duels    duels

	losses    losses
	returns   returns
	retention retention
}

// tenure is the time for which a worker serves a partition. undone, activations and evictions are guarded by the
// lock of the partition.
type tenure struct {
	began time.Time
	took  time.Duration // time between learning of its ownership and the start of serving
	// undone is the number of spaces that were not saved when the partition was drained.
	undone int
	// activations and evictions count the spaces that were loaded and evicted.
	activations, evictions uint64
}

// startPartition begins to serve a partition. e is what the worker provides for it.
func startPartition(e env, number int, took time.Duration, current func() uint64, restart func(*servedPartition)) *servedPartition {
	p := &servedPartition{
		env: e, number: number, tenure: tenure{began: time.Now(), took: took}, current: current, restart: restart,
		hosts: map[string]*host{}, asleep: map[string]laneBacklog{}, waiting: map[string][]func(*host){},
		wakeups: newWakeups(), overruns: overruns{}, failings: failings{}, duels: duels{},
	}
	p.bus, p.tasks, p.clock, p.home = port.Session(e.bus), &sync.WaitGroup{}, &serverclock.Clock{}, p
	p.ctx, p.cancel = context.WithCancel(e.ctx)
	p.misrouted = misroute.New(p.bus, number, p.cfg.Logger)
	p.compared = make(chan struct{})
	p.isCompared = sync.OnceFunc(func() { close(p.compared) })
	p.losses = losses{number: number, cfg: p.cfg, about: []any{"worker", p.cfg.ID, "partition", number}}
	p.retention = retention{bus: p.bus, number: number, cfg: p.cfg, clock: p.clock, spaces: p}
	if !p.cfg.WithoutGraph {
		p.keep("follow leases", func(ctx context.Context) error {
			return p.bus.FollowLeases(ctx, number, p.lease)
		})
		p.tasks.Go(p.callRoll) // ends within two seconds, or with p.ctx
	}
	if p.cfg.Beside != nil {
		p.tasks.Go(func() { p.cfg.Beside(p.ctx, number) }) // ends with p.ctx
	}
	p.keep("follow lane", p.followLane)
	p.keep("list the spaces that are due", p.listDue)
	p.tasks.Go(p.wakeDue)                         // ends with p.ctx
	p.tasks.Go(p.tick)                            // ends with p.ctx
	p.tasks.Go(func() { p.retention.run(p.ctx) }) // ends with p.ctx
	p.tasks.Go(func() { p.misrouted.Run(p.ctx) }) // ends with p.ctx
	return p
}

// name is the number of the partition, for the log.
func (p *servedPartition) name() string { return strconv.Itoa(p.number) }

func (p *servedPartition) keep(what string, f func(ctx context.Context) error) {
	p.tasks.Go(func() { retry(p.ctx, p.cfg, what, p.name(), []any{"partition", p.number}, f) })
}

// tick does the periodic work: it ends leases, saves spaces and the lane
// position, purges the lane, and checks for code that does not return.
func (p *servedPartition) tick() {
	t := time.NewTicker(p.cfg.Checkpoint)
	defer t.Stop()
	leases := time.NewTicker(model.LeaseTTL / 6)
	defer leases.Stop()
	var purged lanePurge
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-leases.C:
			p.expireLeases(now)
			p.retryLost()
			for _, h := range p.all() {
				h.code.warnLate(time.Now())
			}
		case <-t.C:
			for _, h := range p.all() {
				if !h.saver.clean.Load() {
					h.checkpoint()
				}
			}
			p.savePosition(p.ctx)
			p.noteStuck(time.Now())
			p.purge(p.ctx, &purged)
		}
	}
}

// callRoll asks observers to repeat their leases: the last owner's
// list is lost with it. The first answers may arrive before this worker listens, so
// it asks twice more.
func (p *servedPartition) callRoll() {
	for _, after := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		_ = pause.For(p.ctx, after)
		if p.ctx.Err() != nil {
			return
		}
		if err := p.bus.CallRoll(p.number); err != nil {
			p.cfg.Logger.Warn("call roll", "partition", p.number, "error", err)
		}
	}
}

func (p *servedPartition) all() []*host {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*host, 0, len(p.hosts))
	for _, h := range p.hosts { // any order: each on its own
		out = append(out, h)
	}
	return out
}

// drain stops the partition in an orderly way: it accepts no new work, finishes running
// work, and saves. Work that is not finished by the end of ctx is cut off; the goroutine of a handler that
// never returns stays.
func (p *servedPartition) drain(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var done sync.WaitGroup
	var unsaved collected
	hosts := p.all()
	for _, h := range hosts {
		h.toDrain.Store(true)
	}
	for _, h := range hosts {
		done.Go(func() {
			if err := h.drain(); !errors.Is(err, model.ErrRewound) { // after a rewind there is nothing to save
				unsaved.add(err)
			}
		})
	}
	err := wait(ctx, &done)
	if err != nil {
		p.noteUndone()
	}
	saving, end := context.WithCancel(p.ctx)
	defer end()
	defer context.AfterFunc(ctx, end)()
	if ctx.Err() == nil && p.ctx.Err() == nil {
		p.savePosition(saving)
	}
	p.cancel()
	return errors.Join(unsaved.err(), err, wait(ctx, p.tasks))
}

// abandon ends the partition at once: nothing is finished, and nothing is saved.
func (p *servedPartition) abandon() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
}

// noteUndone records how many spaces of a partition are cut off before they are saved.
func (p *servedPartition) noteUndone() {
	for _, h := range p.all() {
		if !h.saver.clean.Load() {
			p.tenure.undone++
		}
	}
}
