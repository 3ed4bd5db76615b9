package ordered

import (
	"context"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// How often lane and log are purged. What goes from the log must be covered by a checkpoint
// that has stood for longer than servers take to write to disk what they have accepted.
const (
	purgeEvery  = time.Minute
	retainEvery = 10 * time.Minute
)

// purgeLane removes events that are done and beyond the horizon.
func (p *partition) purgeLane() error {
	p.mu.Lock()
	done := p.saved
	p.mu.Unlock()
	for more := done > 0; more; {
		var err error
		if more, err = p.bus.PurgeLane(p.ctx, p.number, done, p.bus.Horizon()+model.MaxClockSkew); err != nil {
			return err
		}
	}
	return nil
}

// retain removes commits that are older than the history, that coordinators are done with, and
// that a checkpoint covers which was there when it was looked the last time (docs/adr/0019).
// It comes upon keys that nobody has saved to the end, as their server died; it wakes them.
func (p *partition) retain() error {
	released, err := p.bus.LoadPosition(p.ctx, p.number, port.PositionReleased)
	if err != nil {
		return err
	}
	log, err := p.bus.LogState(p.ctx, p.number, p.s.cfg.History)
	if err != nil {
		return err
	}
	p.clock.Set(log.Now)
	keys, err := p.bus.LogSpaces(p.ctx, p.number)
	if err != nil {
		return err
	}
	before := p.marks
	p.marks = make(map[string]uint64, len(keys))
	for _, key := range keys {
		mark, _, err := p.bus.LoadMark(p.ctx, key)
		if err != nil {
			return err
		}
		p.marks[key] = mark.Seq
		if below := min(before[key], mark.Seq, released+1, log.Old+1); below > 1 {
			if err := p.bus.PurgeLog(p.ctx, key, below); err != nil {
				return err
			}
		}
		if err := p.wakeUnsaved(key, mark.Seq); err != nil {
			return err
		}
	}
	return nil
}

// wakeUnsaved has a key loaded, and so saved, of which the log says more than the checkpoint.
func (p *partition) wakeUnsaved(key string, saved uint64) error {
	head, err := p.bus.Head(p.ctx, key)
	if err != nil || head <= saved {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.draining() {
		p.host(key, p.read)
	}
	return nil
}

// wait waits for a group, but not beyond ctx.
func wait(ctx context.Context, g *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }() // ends with the group
	select {
	case <-done:
	case <-ctx.Done():
	}
}
