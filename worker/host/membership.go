package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/roster"
)

// membership is a worker's part in the fleet: it announces the worker, and detects which other workers have
// gone.
type membership struct {
	ctx    context.Context // ends with the worker
	bus    memberBus
	cfg    *Config
	roster *roster.Roster
	// changed is called when the division of the partitions may have changed.
	changed func()
	// speaking is held while an announcement is in flight.
	speaking chan struct{}

	mu sync.Mutex
	// announced is when the worker last announced itself; outage is when an announcement last took far too
	// long.
	announced, outage time.Time
}

// memberBus connects the workers of a deployment.
type memberBus interface {
	Announce(ctx context.Context, m model.Member) error
	Ping(ctx context.Context, id string) (alive bool, err error)
	AnswerPings(ctx context.Context, id string) error
}

// introduce announces the worker under its id, if no other process uses the id. A crashed process with that
// id does not answer, and does not prevent it.
func (m *membership) introduce(ctx context.Context) error {
	if old := m.roster.Older(); old.ID != "" {
		asking, cancel := context.WithTimeout(ctx, 3*m.cfg.Heartbeat)
		alive, err := m.bus.Ping(asking, m.cfg.ID)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case alive:
			return &TakenError{old}
		case err != nil: // it listens but does not answer: it hangs, or its machine is gone
			if err := m.expectNoBeat(ctx, old); err != nil {
				return err
			}
		}
	}
	before := m.roster.Older()
	if err := m.bus.AnswerPings(m.ctx, m.cfg.ID); err != nil {
		return err
	}
	m.mu.Lock()
	m.announced = time.Now()
	m.mu.Unlock()
	if err := m.announceNow(ctx, false); err != nil {
		return err
	}
	waitWithin(ctx, m.roster.Echoed(), 2*m.cfg.Heartbeat)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if old := m.roster.Older(); old.Life != before.Life { // it has started at the same time
		return m.expectNoBeat(ctx, old)
	}
	return nil
}

// expectNoBeat waits for three heartbeats, in which a live process would
// announce itself again.
func (m *membership) expectNoBeat(ctx context.Context, old model.Member) error {
	if err := pause.For(ctx, 3*m.cfg.Heartbeat); err != nil {
		return err
	}
	if now := m.roster.Older(); now.Life == old.Life && now.Beat != old.Beat {
		return &TakenError{now}
	}
	return nil
}

// TakenError reports that a worker of that id is alive.
type TakenError struct{ Other model.Member }

func (e *TakenError) Error() string {
	where := ""
	if e.Other.Host != "" {
		where = " on " + e.Other.Host
	}
	return fmt.Sprintf("worker %s: a process of that id is running already%s, since %s; give this one another id, or stop the other",
		e.Other.ID, where, e.Other.Since.Format(time.RFC3339))
}

// checkDuplicateID reports whether another process has replaced this worker, which must end then.
func (m *membership) checkDuplicateID() bool {
	by, yes := m.roster.Replaced()
	if !yes || m.ctx.Err() != nil {
		return false
	}
	m.cfg.Logger.Error("another process runs under this worker's id and was started later; this one ends",
		"worker", m.cfg.ID, "host", by.Host, "since", by.Since)
	return true
}

// announce announces the worker, and records when that took far too long: after
// an outage of the store, or of this process, the others need a moment to return.
func (m *membership) announce() {
	if m.ctx.Err() != nil {
		return // a heartbeat that came due at the end has nothing to announce
	}
	err := m.announceNow(m.ctx, false)
	if err != nil && m.ctx.Err() == nil {
		m.cfg.faults.Warn("announce worker", "", "worker", m.cfg.ID, "error", err)
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || now.Sub(m.announced) > 3*m.cfg.Heartbeat {
		m.roster.Excuse(m.announced, now)
		m.outage = now
	}
	m.announced = now
}

// announceNow announces the worker, one announcement after the other: an older one that arrived after a newer
// one would undo it.
func (m *membership) announceNow(ctx context.Context, left bool) error {
	select {
	case m.speaking <- struct{}{}:
		defer func() { <-m.speaking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if self := m.roster.Self(); !left && roster.HasLeft(&self) {
		return nil // the departure was announced
	}
	return m.bus.Announce(ctx, m.roster.Beat(left, time.Now()))
}

// watchPeers pings the other members once per heartbeat, independently of run: a process that hangs answers
// late or never, and must not delay anything else.
func (m *membership) watchPeers() {
	_ = pause.For(m.ctx, m.cfg.Heartbeat/2) // halfway between two announcements
	beat := time.NewTicker(m.cfg.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-beat.C:
		}
		m.mu.Lock()
		settled := time.Since(m.outage) > m.cfg.MemberTTL/3 && time.Since(m.announced) <= 3*m.cfg.Heartbeat
		m.mu.Unlock()
		if settled {
			m.lookAround()
		}
	}
}

// lookAround pings the other members, all at once: the ping of a process that is gone has
// no responder.
func (m *membership) lookAround() {
	ctx, cancel := context.WithTimeout(m.ctx, m.cfg.Heartbeat)
	defer cancel()
	var pings sync.WaitGroup
	for _, other := range m.roster.Live(time.Now()) {
		if other.ID == m.cfg.ID {
			continue
		}
		pings.Go(func() { // ends with ctx at the latest
			if alive, err := m.bus.Ping(ctx, other.ID); err == nil && !alive {
				m.roster.Suspect(other.ID, other.Beat)
				m.changed()
			}
		})
	}
	pings.Wait()
}
