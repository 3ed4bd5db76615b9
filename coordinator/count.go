package coordinator

import (
	"errors"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// countEvery is how often a coordinator checks for dead letters that are not in the totals.
const countEvery = 5 * time.Second

// countLetters maintains the totals of the dead letters until the coordinator stops, if the bus supports
// them. All coordinators do so: one of them stores its count, and the others continue from that.
func (c *Coordinator) countLetters() {
	counter, can := c.bus.(port.DeadCounter)
	for can && c.ctx.Err() == nil {
		err := counter.KeepDeadTotals(c.ctx)
		switch {
		case err == nil || c.ctx.Err() != nil || errors.Is(err, model.ErrOutdated):
		case errors.Is(err, model.ErrForbidden):
			c.cfg.Logger.Warn("the totals of the dead letters are not kept, and counting these takes longer: the user of the coordinator may not store them; give it the permissions of its role (settle permissions)", "error", err)
			return
		default:
			c.faults.Warn("count the dead letters", "", "error", err)
		}
		_ = pause.For(c.ctx, countEvery)
	}
}
