package coordinator

import (
	"time"

	"github.com/settlehq/settle/internal/telemetry/meters"
)

// measure registers the metrics of the coordinator until it stops.
func (c *Coordinator) measure() {
	if c.cfg.Meter == nil {
		return
	}
	set := meters.NewSet(c.cfg.Meter, meters.Coordinator)
	stop := set.Observe(c.observe)
	if err := set.Err(); err != nil {
		c.cfg.Logger.Error("register metrics", "error", err)
	}
	c.tasks.Go(func() { // ends with c.ctx
		<-c.ctx.Done()
		stop()
	})
}

// observe reads the counters and gauges.
func (c *Coordinator) observe(put meters.Put) {
	released, repeated := c.Released()
	put(meters.CoordinatorReleases, "", int64(released))
	put(meters.CoordinatorRepeated, "", int64(repeated))
	put(meters.CoordinatorNotices, "", int64(c.Noticed()))
	put(meters.CoordinatorDeadLetters, "", int64(c.DeadLetters()))
	var unreleased int
	var age time.Duration
	for _, t := range c.tails {
		n, oldest := t.progress.Load().unreleased()
		unreleased += n
		if !oldest.IsZero() {
			age = max(age, time.Since(oldest))
		}
	}
	put(meters.CoordinatorUnreleased, "", int64(unreleased))
	put(meters.CoordinatorUnreleasedAge, "", int64(age.Seconds()))
	put(meters.CoordinatorRewinds, "", int64(c.Figures().RewindCount))
}
