package worker

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// purgeEvery is how often a partition's lane is checked for events that may be
// purged. Events stay up to that much longer than needed.
const purgeEvery = time.Minute

// purge holds the time of the next check.
type purge struct{ next time.Time }

// purge removes events from the lane that are done and beyond the horizon. Done means
// saved as done: the saved position is a fact about the log, so even a worker that has
// lost the partition, or was suspended for a week, purges only events that may go, and
// a repeated purge has no effect. The server decides the age of an event, by its own clock.
//
// An id with a time up to MaxClockSkew ahead is accepted, so events are kept for
// that much longer: by the time an event is forgotten, its id is too old.
func (p *partition) purge(ctx context.Context, last *purge) {
	p.mu.Lock()
	done := p.saved
	p.mu.Unlock()
	if now := time.Now(); done == 0 || now.Before(last.next) {
		return
	}
	more, err := p.bus.PurgeLane(ctx, p.number, done, p.horizon+model.MaxClockSkew)
	if err != nil && ctx.Err() == nil {
		p.cfg.faults.Warn("purge handled events from the lane", p.name(), "partition", p.number, "up to", done, "error", err)
	}
	if !more {
		last.next = time.Now().Add(purgeEvery)
	}
}
