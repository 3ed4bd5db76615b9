package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// announceEvery is how often a coordinator announces itself and its positions. The announcement is
// for operators only: nothing depends on it.
const announceEvery = 2 * time.Second

// Endpoint returns the endpoint at which a coordinator answers while it runs.
func Endpoint(id string) string { return "coordinator-" + id }

// announce announces the coordinator until it stops.
func (c *Coordinator) announce() {
	err := c.bus.Serve(c.ctx, model.Service{
		Name: "settle-coordinator-alive", Description: "Answers while coordinator " + c.cfg.ID + " runs.",
		Endpoints: []model.Endpoint{{
			Name: Endpoint(c.cfg.ID), Description: "The coordinator's figures, as JSON.",
			Answer: func([]byte) ([]byte, error) { return json.Marshal(c.Figures()) },
		}},
	})
	if err != nil && c.ctx.Err() == nil {
		c.cfg.Logger.Warn("serve the coordinator's liveness endpoint", "coordinator", c.cfg.ID, "error", err)
	}
	m := model.Member{
		ID: c.cfg.ID, Role: model.RoleCoordinator, Left: true, Life: rand.Text(), Since: time.Now().UTC(),
		Host: c.cfg.Host, Version: c.cfg.Version, Connection: c.cfg.Connection,
	}
	for {
		m.Beat++
		m.Done, m.Full = c.positions(), c.full.now()
		if m.Leaving = c.ctx.Err() != nil; m.Leaving {
			ctx, cancel := context.WithTimeout(context.Background(), announceEvery)
			defer cancel()
			_ = c.bus.Announce(ctx, m) // nothing depends on it
			return
		}
		if err := c.bus.Announce(c.ctx, m); err != nil && c.ctx.Err() == nil {
			c.faults.Warn("announce coordinator", "", "coordinator", c.cfg.ID, "error", err)
		}
		_ = pause.For(c.ctx, announceEvery)
	}
}

// positions returns how far each partition's log was released.
func (c *Coordinator) positions() []uint64 {
	out := make([]uint64, len(c.tails))
	for i, t := range c.tails {
		out[i] = t.progress.Load().done()
	}
	return out
}
