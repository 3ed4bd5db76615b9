package coordinator

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// announceEvery is how often a coordinator says that it is there and how far it has
// come. It is for people only: nothing depends on it.
const announceEvery = 2 * time.Second

// Endpoint is the endpoint at which a coordinator answers that it is there.
func Endpoint(id string) string { return "coordinator-" + id }

// announce makes the coordinator known until it stops.
func (c *Coordinator) announce() {
	err := c.bus.Serve(c.ctx, model.Service{
		Name: "settle-coordinator-alive", Description: "Says that the coordinator " + c.cfg.ID + " is there.",
		Endpoints: []model.Endpoint{{
			Name: Endpoint(c.cfg.ID), Description: "Answers with nothing.",
			Answer: func([]byte) ([]byte, error) { return nil, nil },
		}},
	})
	if err != nil && c.ctx.Err() == nil {
		c.cfg.Logger.Warn("offer that the coordinator is there", "coordinator", c.cfg.ID, "error", err)
	}
	m := model.Member{
		ID: c.cfg.ID, Role: model.RoleCoordinator, Left: true, Life: rand.Text(), Since: time.Now().UTC(),
		Host: c.cfg.Host, Version: c.cfg.Version, Connection: c.cfg.Connection,
	}
	for {
		m.Beat++
		m.Done = c.positions()
		if m.Leaving = c.ctx.Err() != nil; m.Leaving {
			ctx, cancel := context.WithTimeout(context.Background(), announceEvery)
			defer cancel()
			_ = c.bus.Announce(ctx, m) // nobody depends on it
			return
		}
		if err := c.bus.Announce(c.ctx, m); err != nil && c.ctx.Err() == nil {
			c.cfg.Logger.Warn("announce coordinator", "coordinator", c.cfg.ID, "error", err)
		}
		_ = pause.For(c.ctx, announceEvery)
	}
}

// positions is how far each partition's log has been released.
func (c *Coordinator) positions() []uint64 {
	out := make([]uint64, len(c.tails))
	for i, t := range c.tails {
		out[i] = t.progress.Load().done()
	}
	return out
}
