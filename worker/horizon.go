package worker

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// purgeEvery is how often a partition's lane is looked at for events that are old
// enough to go. Events stay that much longer than they must.
const purgeEvery = time.Minute

// purge says when to look again.
type purge struct{ next time.Time }

// purge removes from the lane what is done and beyond the horizon. What is done is
// what is saved as done: the position is a fact about the log, so a worker that has
// lost the partition, or has slept for a week, asks for no more than what may go, and
// asking twice does nothing. How old an event is, the server decides by its own clock.
//
// An id whose time is up to MaxClockSkew ahead is accepted, so events are kept for
// that much longer: when what an id named is forgotten, the id is too old.
func (p *partition) purge(ctx context.Context, last *purge) {
	p.mu.Lock()
	done := p.saved
	p.mu.Unlock()
	if now := time.Now(); done == 0 || now.Before(last.next) {
		return
	}
	more, err := p.bus.PurgeLane(ctx, p.number, done, p.w.horizon+model.MaxClockSkew)
	if err != nil && ctx.Err() == nil {
		p.w.cfg.faults.Warn("purge handled events from the lane", p.name, "partition", p.number, "up to", done, "error", err)
	}
	if !more {
		last.next = time.Now().Add(purgeEvery)
	}
}
