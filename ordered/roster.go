package ordered

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/roster"
)

// peers is who serves the deployment, as far as this server knows. It is a guess: being wrong
// costs refused appends.
type peers struct {
	s     *server
	moved chan struct{} // somebody has come or gone
	life  string
	since time.Time
	beat  uint64 // of the goroutine of Serve

	mu     sync.Mutex
	others map[string]*other
}

// other is another server: what it said last, when, and whether its process was missed since.
type other struct {
	said   model.Member
	heard  time.Time
	missed bool
}

func (r *peers) init(s *server) {
	*r = peers{s: s, moved: make(chan struct{}, 1), life: rand.Text(), since: time.Now().UTC(), others: map[string]*other{}}
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
				s.cfg.Logger.Warn("follow members", "server", s.cfg.id, "error", err)
				_ = pause.For(s.ctx, s.cfg.Heartbeat)
			}
		}
	})
	select {
	case <-known:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.lookAround()
	r.beat++
	if err := s.bus.Announce(ctx, s.member(r.beat, r.life, r.since, false)); err != nil {
		return fmt.Errorf("announce server %s: %w", s.cfg.id, err)
	}
	return nil
}

// announce says that the server is there, or leaves.
func (r *peers) announce(leaving bool) {
	ctx, cancel := context.WithTimeout(r.s.ctx, r.s.cfg.TTL/2)
	defer cancel()
	r.beat++
	if err := r.s.bus.Announce(ctx, r.s.member(r.beat, r.life, r.since, leaving)); err != nil && r.s.ctx.Err() == nil {
		r.s.cfg.Logger.Warn("announce server", "server", r.s.cfg.id, "error", err)
	}
}

// hear takes in what a member says.
func (r *peers) hear(m model.Member) {
	if m.Role != model.RoleOrdered || m.ID == r.s.cfg.id {
		return
	}
	r.mu.Lock()
	o := r.others[m.ID]
	news := o == nil || o.said.Beat != m.Beat || o.said.Life != m.Life
	moves := o == nil || o.missed || o.said.Leaving != m.Leaving
	if news {
		r.others[m.ID] = &other{said: m, heard: time.Now()}
	}
	r.mu.Unlock()
	if news && moves {
		select {
		case r.moved <- struct{}{}:
		default:
		}
	}
}

// live lists those that are there, this server included. r.mu is not held.
func (r *peers) live() []model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []model.Member{{ID: r.s.cfg.id}}
	for id, o := range r.others { // any order: sorted below
		if !o.said.Leaving && !o.missed && time.Since(o.heard) < r.s.cfg.TTL {
			list = append(list, model.Member{ID: id})
		}
	}
	slices.SortFunc(list, func(a, b model.Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list
}

// share is the set of partitions that fall to this server.
func (r *peers) share(partitions int) map[int]bool {
	mine := map[int]bool{}
	for n, id := range roster.Divide(partitions, r.live()) {
		if id == r.s.cfg.id {
			mine[n] = true
		}
	}
	return mine
}

// lookAround pings the others: a process that is gone has nobody listening.
func (r *peers) lookAround() {
	ctx, cancel := context.WithTimeout(r.s.ctx, r.s.cfg.Heartbeat)
	defer cancel()
	var pings sync.WaitGroup
	for _, m := range r.live() {
		if m.ID == r.s.cfg.id {
			continue
		}
		pings.Go(func() { // ends with ctx
			if there, err := r.s.bus.Ping(ctx, m.ID); err == nil && !there {
				r.miss(m.ID)
			}
		})
	}
	pings.Wait()
}

func (r *peers) miss(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.others[id]; o != nil {
		o.missed = true
	}
}
