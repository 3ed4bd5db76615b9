package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
)

// positionLane names the saved position up to which a partition's lane has been
// handled completely: where the next owner starts to read.
const positionLane = truncation.PositionLane

// partition serves the spaces of one partition: it reads the lane, passes events
// and leases to the spaces' hosts, and has them saved periodically.
type partition struct {
	w      *Worker
	bus    Bus // a session
	number int
	name   string // the number, for the log
	began  time.Time
	took   time.Duration // time between learning of its ownership and the start of serving
	undone int           // spaces that were not saved when it was drained; set by drain

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	hosts map[string]*host
	// asleep are the spaces without a host that are not done with their lane: those
	// without a program, and those whose host has ended.
	asleep map[string]backlog
	// waiting are the spaces that wait for their turn to be loaded, with the functions to
	// call then.
	waiting map[string][]func(*host)
	closed  bool // no new hosts
	leases  leases
	// credit belongs to the lane reader.
	credit credit
	// strays forwards events in the lane that belong to other partitions.
	strays *misroute.Forwarder
	// read is the lane sequence up to which events were passed to hosts, saved the
	// position that was saved last.
	read  uint64
	saved uint64
	aside aside
	// doubt is the range of the lane that is in doubt. compared is closed when the range is known,
	// or when laneErr holds the reason why it is not: no space is served before.
	doubt *truncation.Range
	// clock is the server's clock.
	clock      serverclock.Clock
	laneErr    error
	compared   chan struct{}
	isCompared func()
	dues       dues
	stuck      stuckSpaces
	losses     losses
	overruns   overruns
	failings   failings
	returns    returns

	activations, evictions uint64

	retention retention
}

// backlog is the remaining work of a space without a host: it is done with its lane
// up to done, and events were delivered up to last.
type backlog struct{ done, last uint64 }

func startPartition(w *Worker, number int, took time.Duration) *partition {
	bus := port.Session(w.bus)
	p := &partition{
		w: w, bus: bus, number: number, name: strconv.Itoa(number), began: time.Now(), took: took, hosts: map[string]*host{}, asleep: map[string]backlog{},
		waiting: map[string][]func(*host){}, leases: leases{}, dues: newDues(), overruns: overruns{}, failings: failings{},
		strays: misroute.New(bus, number, w.cfg.Logger),
	}
	p.losses.p = p
	p.compared = make(chan struct{})
	p.isCompared = sync.OnceFunc(func() { close(p.compared) })
	p.ctx, p.cancel = context.WithCancel(w.ctx)
	p.keep("follow leases", func(ctx context.Context) error {
		return bus.FollowLeases(ctx, number, p.lease)
	})
	p.keep("follow lane", p.followLane)
	p.retention.p = p
	p.keep("list the spaces that are due", p.listDue)
	p.tasks.Go(p.wakeDue)                      // ends with p.ctx
	p.tasks.Go(p.tick)                         // ends with p.ctx
	p.tasks.Go(p.retention.run)                // ends with p.ctx
	p.tasks.Go(p.callRoll)                     // ends within two seconds, or with p.ctx
	p.tasks.Go(func() { p.strays.Run(p.ctx) }) // ends with p.ctx
	return p
}

// env returns the surroundings of the partition's hosts.
func (p *partition) env() *env {
	return &env{
		ctx: p.ctx, bus: p.bus, horizon: p.w.horizon, cfg: &p.w.cfg, tasks: &p.tasks,
		clock: &p.clock, counters: &p.w.counters, runs: p.w.runs, performing: p.w.performing, partition: p, awake: &p.w.awake,
	}
}

func (p *partition) keep(what string, f func(ctx context.Context) error) {
	p.tasks.Go(func() { retry(p.ctx, &p.w.cfg, what, p.name, []any{"partition", p.number}, f) })
}

func (p *partition) followLane(ctx context.Context) error {
	if p.w.bus.Epoch() != p.bus.Epoch() {
		p.w.beginAnew(p)
		return model.ErrStopped
	}
	from, err := p.bus.LoadPosition(ctx, p.number, positionLane)
	var ahead model.Ahead
	if err == nil {
		ahead, err = p.bus.LoadAhead(ctx, p.number)
	}
	if err == nil {
		from, err = p.compareLane(ctx, from)
	}
	p.mu.Lock()
	p.laneErr = err
	back := err == nil && p.doubt != nil && from < max(p.saved, p.aside.upTo)
	p.mu.Unlock()
	switch {
	case err != nil:
		p.isCompared()
		return err
	case back: // the lane was truncated while this partition read it
		p.isCompared()
		p.w.beginAnew(p)
		return model.ErrStopped
	}
	p.mu.Lock()
	if p.read == 0 && p.doubt == nil && ahead.UpTo > from {
		p.takeAhead(&ahead, from)
	}
	p.read, p.saved = max(p.read, from), max(p.saved, from)
	from = p.read
	p.dues.place()
	p.mu.Unlock()
	p.isCompared() // the spaces that were set aside come first, in the same order every time
	return p.bus.FollowLane(ctx, p.number, from, p.deliver)
}

// deliver passes an event to its space, loading it if necessary. It waits for room for a
// while, which slows the reader down to the pace of the spaces. If a host stands still,
// or is flooded for longer than the other spaces may be delayed, its event is left in the
// stream instead. No lock is held meanwhile.
func (p *partition) deliver(m model.Message) {
	if d := p.inDoubt(); d.Covers(m.Seq) && d.Handled(&m) || p.strays.Take(&m) {
		p.mu.Lock()
		p.read = m.Seq
		p.mu.Unlock()
		return
	}
	for patient := p.credit.now() > 0; ; {
		h := p.take(&m, patient)
		if h == nil {
			return
		}
		patient = p.credit.wait(h)
	}
}

// take puts an event into its space's inbox, or records that it waits. It returns the
// host if the inbox has no room; if not patient, it then leaves the event in the stream.
func (p *partition) take(m *model.Message, patient bool) *host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.aside.known.Has(m) {
		p.read = m.Seq
		return nil
	}
	b, waits := p.asleep[m.Space]
	switch h := p.hostOf(m.Space, waits); {
	case h == nil:
		if !waits {
			b.done = m.Seq - 1
		}
		b.last = m.Seq
		p.asleep[m.Space] = b
	case h.tryOffer(*m):
	case patient:
		return h
	default:
		h.leave(m.Seq)
	}
	p.read = m.Seq
	return nil
}

// hostOf returns the host of a space and starts it if necessary; nil if the space is not of
// this partition or runs no program, or if others are loaded first: then it is started
// later. A missing program is logged, unless it is known. p.mu is held.
func (p *partition) hostOf(space string, known bool) *host {
	if h := p.hosts[space]; h != nil {
		return h
	}
	if _, waits := p.waiting[space]; waits {
		return nil
	}
	program := p.programOf(space, known)
	if program == nil {
		return nil
	}
	if p.putOff(space) {
		return nil
	}
	if !p.w.awake.admit(p, space) {
		p.waiting[space] = nil
		return nil
	}
	return p.startHost(space, program)
}

// programOf returns the program that a space is to run, nil if the space must not have a host. p.mu is held.
func (p *partition) programOf(name string, known bool) *space.Program {
	if p.closed || p.ctx.Err() != nil || model.PartitionOf(name, p.bus.Partitions()) != p.number {
		return nil
	}
	program, err := p.w.cfg.Programs(name)
	if err != nil || program == nil {
		if !known {
			log := p.w.cfg.Logger.With("space", name)
			if err != nil {
				log = log.With("error", err)
			}
			log.Error("space has no program to run; its events wait")
		}
		return nil
	}
	return program
}

// ask calls f with the host of a space, which is loaded if necessary: at once, or when
// its turn has come; with nil if there will be no host. f is called with p.mu
// held, so that its input reaches the host before the host leaves.
func (p *partition) ask(space string, f func(*host)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hostOf(space, true)
	if _, waits := p.waiting[space]; waits {
		p.waiting[space] = append(p.waiting[space], f)
		return nil
	}
	switch {
	case h != nil:
		f(h)
		return nil
	case p.closed || p.ctx.Err() != nil:
		return model.ErrElsewhere
	}
	return fmt.Errorf("space %s: %w", space, model.ErrNoProgram)
}

// admitted starts the host of a space whose turn has come. It returns false if the space
// needs no host any more.
func (p *partition) admitted(space string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	asks := p.waiting[space]
	delete(p.waiting, space)
	h := p.startWaiting(space, len(asks) > 0)
	for _, f := range asks {
		f(h)
	}
	return h != nil
}

func (p *partition) startWaiting(space string, asked bool) *host {
	_, behind := p.asleep[space]
	if !behind && !asked && !p.leases.any(space) {
		return nil
	}
	program := p.programOf(space, true)
	if program == nil {
		return nil
	}
	return p.startHost(space, program)
}

// startHost starts the host of a space that awake has admitted. p.mu is held.
func (p *partition) startHost(space string, program *space.Program) *host {
	b, behind := p.asleep[space]
	if !behind {
		b.done = p.read
	}
	delete(p.asleep, space)
	h := newHost(p.env(), space, program, b)
	p.hosts[space] = h
	p.activations++
	for k := range p.leases[space] { // any order: each counts once
		h.observe(k.doc, true)
	}
	h.overruns = p.overruns.of(space, time.Now())
	h.serve(&p.tasks, func() { p.forget(h) }) // ends when the host is done with the space
	return h
}

// forget drops a host that has ended. If this worker still serves the space, the
// next event or lease loads it again; a space that has events already
// is loaded again after a moment, by when the membership has settled.
func (p *partition) forget(h *host) {
	p.mu.Lock()
	if p.hosts[h.space] == h {
		delete(p.hosts, h.space)
		p.noteDue(h)
		if b := h.backlog(); b.done != allDone {
			p.asleep[h.space] = b
			p.noteFailure(h)
		}
	}
	p.mu.Unlock()
	h.unload() // it cannot be found any more
	p.w.awake.left(h)
	p.w.runs.leaves(h.space)
	p.bus.Forget(h.space)
	if h.handedOver() {
		return
	}
	p.returns.after(p.ctx, p.w.cfg.Heartbeat, h.space, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, behind := p.asleep[h.space]; behind || p.leases.any(h.space) {
			p.hostOf(h.space, false)
		}
	})
}

// tick does the periodic work: it ends leases, saves spaces and the lane
// position, purges the lane, and checks for code that does not return.
func (p *partition) tick() {
	t := time.NewTicker(p.w.cfg.Checkpoint)
	defer t.Stop()
	leases := time.NewTicker(model.LeaseTTL / 6)
	defer leases.Stop()
	var purged purge
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-leases.C:
			p.expireLeases(now)
			p.retryLost()
			for _, h := range p.all() {
				h.tellLate()
			}
		case <-t.C:
			for _, h := range p.all() {
				if !h.clean.Load() {
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
func (p *partition) callRoll() {
	for _, after := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		_ = pause.For(p.ctx, after)
		if p.ctx.Err() != nil {
			return
		}
		if err := p.bus.CallRoll(p.number); err != nil {
			p.w.cfg.Logger.Warn("call roll", "partition", p.number, "error", err)
		}
	}
}

func (p *partition) all() []*host {
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
func (p *partition) drain(ctx context.Context) error {
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
	return errors.Join(unsaved.err(), err, wait(ctx, &p.tasks))
}

// abandon ends the partition at once: nothing is finished, and nothing is saved.
func (p *partition) abandon() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
}

// collected holds the errors of several goroutines, some of which may still run.
type collected struct {
	mu   sync.Mutex
	list []error
}

func (c *collected) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, err)
}

func (c *collected) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.list...)
}
