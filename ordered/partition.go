package ordered

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/status"
)

// positionLane names the saved position up to which a lane is done with, as workers have it.
const positionLane = truncation.PositionLane

// partition serves the keys of one partition: it reads the lane, hands events to the keys'
// hosts, and purges what nobody needs any more.
type partition struct {
	s      *server
	bus    Bus // a session
	number int
	name   string // the number, for the log
	began  time.Time

	ctx     context.Context
	cancel  context.CancelFunc
	leaving chan struct{} // closed when the partition is given up
	over    chan struct{} // closed when that is done
	undone  int           // keys that were cut off before they were saved; known when over is closed
	tasks   sync.WaitGroup
	serving sync.WaitGroup // the hosts

	clock  serverclock.Clock   // that of the server
	strays *misroute.Forwarder // what stands in the lane and belongs to other partitions

	mu    sync.Mutex
	hosts map[string]*host
	// read is the lane sequence up to which events were handed to hosts, saved the position
	// that was saved last.
	read, saved uint64
	aside       aside
	due         dues
	marks       map[string]uint64 // see retain
	// doubt is the range of the lane that is in doubt. Compared says that this is known.
	doubt    *truncation.Range
	compared bool
	// lost is what is refused, by key, and under "" all of the partition.
	lost map[string]status.Loss
	// still are the keys that hold the position back.
	still map[string]standstill
}

func startPartition(s *server, number int) *partition {
	p := &partition{s: s, bus: port.Session(s.bus), number: number, name: strconv.Itoa(number), began: time.Now(), leaving: make(chan struct{}), over: make(chan struct{}), hosts: map[string]*host{}, due: newDues()}
	p.strays = misroute.New(p.bus, number, s.cfg.Logger)
	p.ctx, p.cancel = context.WithCancel(s.ctx)
	p.keep("follow the lane", p.followLane)
	p.keep("list the keys that have to be loaded at a time", p.listDue)
	p.tasks.Go(p.tick)                         // ends with p.ctx
	p.tasks.Go(func() { p.strays.Run(p.ctx) }) // ends with p.ctx
	if number == 0 && !s.cfg.Coordinated {
		p.tasks.Go(p.coordinate) // ends with the partition
	}
	return p
}

// coordinate releases what all keys send, as long as this server has the first partition.
func (p *partition) coordinate() {
	c := coordinator.New(p.s.bus, coordinator.Config{ID: p.s.cfg.id + "-coordinator", Logger: p.s.cfg.Logger})
	c.Start()
	select {
	case <-p.leaving:
	case <-p.ctx.Done():
	}
	c.Stop()
}

// keep does something until the partition is given up, again and again if it fails.
func (p *partition) keep(what string, f func(ctx context.Context) error) {
	p.tasks.Go(func() { // ends with the partition
		for p.ctx.Err() == nil {
			err := f(p.ctx)
			if p.ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
				return
			}
			wait := 200 * time.Millisecond
			if lost := model.LossOf(err); lost != nil {
				p.noteLoss(lost)
				wait = lossPause
			} else if !errors.Is(err, model.ErrRewound) { // of which the bus has told
				p.fault(what, err)
			}
			_ = pause.For(p.ctx, wait)
		}
	})
}

func (p *partition) followLane(ctx context.Context) error {
	if p.s.bus.Epoch() != p.bus.Epoch() {
		p.beginAnew()
		return model.ErrStopped
	}
	from, err := p.bus.LoadPosition(ctx, p.number, positionLane)
	if err != nil {
		return err
	}
	ahead, err := p.bus.LoadAhead(ctx, p.number)
	if err != nil {
		return err
	}
	if from, err = p.compareLane(ctx, from); err != nil {
		return err
	}
	p.lossOver("")
	if p.cutOff(from) {
		p.beginAnew()
		return model.ErrStopped
	}
	p.mu.Lock()
	if p.read == 0 && p.doubt == nil && ahead.UpTo > from {
		p.takeAhead(&ahead, from)
	}
	p.read, p.saved = max(p.read, from), max(p.saved, from)
	from = p.read
	p.due.isPlaced()
	p.mu.Unlock()
	return p.bus.FollowLane(ctx, p.number, from, p.deliver)
}

// cutOff reports whether the lane was cut off while this partition read it, given from where on it
// is to be read now.
func (p *partition) cutOff(from uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt != nil && from < max(p.saved, p.aside.upTo)
}

// deliver hands an event to its key. It waits for a while where too much is in memory, which
// slows the reader down to what the keys can do.
func (p *partition) deliver(m model.Message) {
	p.s.makeRoom(p.ctx)
	astray := p.strays.Take(&m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining() || p.ctx.Err() != nil {
		return
	}
	if p.aside.known.Has(&m) {
		p.read = m.Seq
		return
	}
	if handled := p.doubt.Covers(m.Seq) && p.doubt.Handled(&m); !astray && !handled {
		p.host(m.Space, m.Seq-1).offer(m)
	}
	p.read = m.Seq
}

// host is the host of a key, which is started if there is none: the key is done with its lane
// up to a sequence. p.mu is held.
func (p *partition) host(key string, done uint64) *host {
	h := p.hosts[key]
	if h == nil {
		p.wakeAt(key, 0)
		h = newHost(p, key, done)
		p.start(h)
	}
	return h
}

// dismiss lets a host go that has nothing to do, unless something has come meanwhile.
func (p *partition) dismiss(h *host) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.inbox) > 0 || h.left > 0 {
		return false
	}
	delete(p.hosts, h.key)
	p.leaves(h.key, h.core.Replica().Later.Next())
	return true
}

// idle is for how long a key with nothing to do stays: not at all where there are too many.
func (p *partition) idle() time.Duration {
	if p.s.awake.Load() > int64(p.s.cfg.MaxAwake) {
		return 0
	}
	return p.s.cfg.Idle
}

// draining reports whether the partition is being given up, gone whether that is done.
func (p *partition) draining() bool { return closed(p.leaving) }
func (p *partition) gone() bool     { return closed(p.over) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tick does what is due now and then.
func (p *partition) tick() {
	t := time.NewTicker(p.s.cfg.Checkpoint)
	defer t.Stop()
	var purged, retained time.Time
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.leaving:
			return
		case now := <-t.C:
			p.tellLate(now)
			p.noteStuck(now)
			p.report("save the lane position", p.savePosition(p.ctx))
			if now.Sub(purged) >= purgeEvery {
				purged = now
				p.report("purge the lane", p.purgeLane())
			}
			if now.Sub(retained) >= retainEvery && p.purges() {
				retained = now
				p.report("purge the log", p.retain())
			}
		}
	}
}

func (p *partition) report(what string, err error) {
	if err != nil && p.ctx.Err() == nil {
		p.fault(what, err)
	}
}

func (p *partition) fault(what string, err error) {
	p.s.cfg.faults.Warn(what, p.name, "partition", p.number, "server", p.s.cfg.id, "error", err)
}

// stop gives the partition up in good order: what is under way is finished and saved, unless
// ctx ends before. Of a handler that never returns, the goroutine stays.
func (p *partition) stop(ctx context.Context) {
	defer close(p.over)
	wait(ctx, &p.serving)
	if ctx.Err() == nil {
		p.report("save the lane position", p.savePosition(ctx))
	}
	for _, h := range p.all() {
		if !h.clean.Load() {
			p.undone++
		}
	}
	p.cancel()
	wait(ctx, &p.serving)
	wait(ctx, &p.tasks)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.due.wakes { // any order: each on its own
		w.timer.Stop()
	}
}

// give begins to give the partition up: no event is handed to a key any more. It reports
// false if that has begun already.
func (p *partition) give() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining() {
		return false
	}
	close(p.leaving)
	return true
}

// beginAnew gives the partition up as a crash would: the store has gone back, or a loss was accepted,
// and what its keys have in memory follows from what is not there any more. It is served again from what is.
func (p *partition) beginAnew() {
	if !p.give() {
		return // it is given up anyway
	}
	p.cancel()
	p.s.cfg.Logger.Warn("partition begins anew: the store has gone back, or a loss was accepted", "server", p.s.cfg.id, "partition", p.number)
	p.s.tasks.Go(func() { // ends with the partition, or with the time for it
		ctx, cancel := context.WithTimeout(p.s.ctx, p.s.cfg.Handover)
		defer cancel()
		p.stop(ctx)
		p.s.peers.poke()
	})
}
