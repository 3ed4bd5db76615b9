package ordered

import (
	"context"
	"strconv"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// An event may wait for a time (docs/adr/0018): it is part of the state of its key then, and the lane is done with
// it. So a key with such events has an item in its saved state that says when it has to be loaded, as a worker
// saves it. The item is saved with the checkpoint, before the mark, and the lane position does not pass what is not
// saved: each event that waits is found again, through the lane or through the item.

const (
	// atOnce as the time of an item says that there is something to do now.
	atOnce = 1
	// unknownDue says that it is not known which time is saved.
	unknownDue = -1
	// longestNap bounds for how long a change of the clock goes unnoticed.
	longestNap = time.Minute
)

// dues are the keys of a partition that are not in memory and have to be loaded at a time. They are guarded by the
// partition's lock.
type dues struct {
	wakes map[string]wake
	// served are the keys that have left memory before all items were read: what they have said is newer. It is
	// nil when that is over.
	served map[string]bool
	// placed is closed when the position of the lane is known: items that are read later are not older.
	placed chan struct{}
}

// wake is a time at which a key has to be loaded, in milliseconds since 1970.
type wake struct {
	at    int64
	timer *time.Timer
}

func newDues() dues {
	return dues{wakes: map[string]wake{}, served: map[string]bool{}, placed: make(chan struct{})}
}

// isPlaced notes that the position of the lane is known.
func (d *dues) isPlaced() {
	if !closed(d.placed) {
		close(d.placed)
	}
}

// wakeAt has a key loaded at a time, 0 for never. p.mu is held.
func (p *partition) wakeAt(key string, at int64) {
	if w, set := p.due.wakes[key]; set {
		w.timer.Stop()
		delete(p.due.wakes, key)
	}
	if at == 0 || p.draining() || p.ctx.Err() != nil {
		return
	}
	nap := min(max(time.Until(time.UnixMilli(at)), 0), longestNap)
	p.due.wakes[key] = wake{at, time.AfterFunc(nap, func() { p.wakeDue(key, at) })}
}

// wakeDue loads a key if its time has come.
func (p *partition) wakeDue(key string, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.due.wakes[key].at != at || p.draining() || p.ctx.Err() != nil:
	case time.Now().UnixMilli() < at:
		p.wakeAt(key, at)
	default:
		delete(p.due.wakes, key)
		p.host(key, p.read)
	}
}

// listDue reads the saved items: at once, and again when no replica can be behind any more.
func (p *partition) listDue(ctx context.Context) error {
	select {
	case <-p.due.placed:
	case <-ctx.Done():
		return nil
	}
	for _, then := range []time.Duration{port.StaleLeader, 0} {
		list, err := p.bus.DueSpaces(ctx, p.number)
		if err != nil {
			return err
		}
		p.mu.Lock()
		for _, of := range list {
			if w, set := p.due.wakes[of.Space]; p.hosts[of.Space] == nil && !p.due.served[of.Space] && (!set || of.At < w.at) {
				p.wakeAt(of.Space, of.At)
			}
		}
		p.mu.Unlock()
		_ = pause.For(ctx, then)
	}
	p.mu.Lock()
	p.due.served = nil
	p.mu.Unlock()
	<-ctx.Done()
	return nil
}

// leaves notes when a key has to be loaded again that leaves memory. p.mu is held.
func (p *partition) leaves(key string, at int64) {
	if p.due.served != nil {
		p.due.served[key] = true
	}
	p.wakeAt(key, at)
}

// takeDue adds to a checkpoint when the key has to be loaded, unless the time is never, and that is saved. What an
// event that waited has sent to its own key is found by nothing else: the lane may have passed its place long ago.
func (s *saver) takeDue(rep *replica.Replica, c *replica.Checkpoint) {
	at := rep.Later.Next()
	if len(rep.Own) > 0 && s.dueAt != 0 {
		at = atOnce
	}
	if s.underDue = at; at == 0 && s.dueAt == 0 {
		return
	}
	d := model.StateDoc{Doc: model.DueKey, Seq: rep.Seq}
	if at != 0 {
		d.Data = strconv.AppendInt(nil, at, 10)
	}
	c.Docs = append(c.Docs, d)
}
