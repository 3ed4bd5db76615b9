package ordered

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/roster"
)

// peers is how servers know of each other: it says that this one is there, hears the others
// and pings them. What to believe then, the roster says.
type peers struct {
	*roster.Roster
	s     *server
	moved chan struct{} // somebody has come or gone, perhaps
	said  time.Time     // when this server last announced itself; of the goroutine of Serve
}

func (r *peers) init(s *server) {
	self := model.Member{ID: s.cfg.id, Role: model.RoleOrdered, Life: rand.Text(), Since: time.Now().UTC(), Left: true}
	*r = peers{Roster: roster.New(self, s.cfg.TTL), s: s, moved: make(chan struct{}, 1)}
}

// enter announces this server, and returns when it knows who else is there.
func (r *peers) enter(ctx context.Context) error {
	s := r.s
	if err := s.bus.AnswerPings(s.ctx, s.cfg.id); err != nil {
		return err
	}
	known := make(chan struct{})
	ready := sync.OnceFunc(func() { close(known) })
	s.tasks.Go(func() { // ends with s.ctx
		for s.ctx.Err() == nil {
			err := s.bus.FollowMembers(s.ctx, r.hear, ready)
			if errors.Is(err, model.ErrStopped) {
				return
			}
			if s.ctx.Err() == nil {
				s.cfg.faults.Warn("follow members", "", "server", s.cfg.id, "error", err)
				_ = pause.For(s.ctx, s.cfg.Heartbeat)
			}
		}
	})
	select {
	case <-known:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.lookAround(ctx)
	if err := s.bus.Announce(ctx, r.Beat(false)); err != nil {
		return fmt.Errorf("announce server %s: %w", s.cfg.id, err)
	}
	r.said = time.Now()
	return nil
}

// announce says that the server is there, or leaves. The time of an outage, of the store or of
// this process, is nobody's silence.
func (r *peers) announce(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, r.s.cfg.TTL/2)
	defer cancel()
	err := r.s.bus.Announce(within, r.Beat(false))
	if err != nil && ctx.Err() == nil {
		r.s.cfg.faults.Warn("announce server", "", "server", r.s.cfg.id, "error", err)
	}
	now := time.Now()
	if err != nil || now.Sub(r.said) > 3*r.s.cfg.Heartbeat {
		r.Excuse(r.said, now)
	}
	r.said = now
}

// hear takes in what a member says.
func (r *peers) hear(m model.Member) {
	r.Hear(m, time.Now())
	r.poke()
}

// poke has the division of the partitions looked at.
func (r *peers) poke() {
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// lookAround pings the others: a process that is gone has nobody listening.
func (r *peers) lookAround(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.s.cfg.Heartbeat)
	defer cancel()
	var pings sync.WaitGroup
	for _, m := range r.Live(time.Now()) {
		if m.ID == r.s.cfg.id {
			continue
		}
		pings.Go(func() { // ends with ctx
			if there, err := r.s.bus.Ping(ctx, m.ID); err == nil && !there {
				r.Suspect(m.ID, m.Beat)
			}
		})
	}
	pings.Wait()
}
