package host

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
)

// able records that a space is served.
func (p *servedPartition) able(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failings, space)
}

// unable records that a space could not be loaded.
func (p *servedPartition) unable(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failings.note(space, time.Now())
}

// overran records that the host of a space was given up.
func (p *servedPartition) overran(name string, o *Overrun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overruns.note(name, o, time.Now())
}

// lost records that the store has lost data of a space.
func (p *servedPartition) lost(e *model.LossError) { p.losses.note(e) }

// isRefused reports whether a space is refused because of a loss.
func (p *servedPartition) isRefused(space string) bool { return p.losses.has(space) }

// accepted records that a space can be served, and reports whether it was refused. The loss may have put the
// lane in doubt as well, so the partition then restarts.
func (p *servedPartition) accepted(space string) (wasRefused bool) {
	if wasRefused = p.losses.over(space); wasRefused {
		p.restart(p)
	}
	return wasRefused
}

// comparison waits until the lane is compared with the log, and returns the range that is in doubt.
func (p *servedPartition) comparison(ctx context.Context) (*truncation.Range, error) {
	select {
	case <-p.compared:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.laneErr != nil {
		return nil, fmt.Errorf("compare the lane with the log: %w", p.laneErr)
	}
	return p.doubt, nil
}

// appended counts bytes that a space appends to the log.
func (p *servedPartition) appended(bytes int) { p.retention.appended.Add(int64(bytes)) }

// leave removes a host from the partition, unless it is still needed.
func (p *servedPartition) leave(h *host) bool {
	p.cfg.BeforeLeaving()
	p.mu.Lock()
	defer p.mu.Unlock()
	// No input can arrive with the partition locked.
	if p.closed || p.hosts[h.space] != h || p.leases.any(h.space) || !h.inbox.isEmpty() {
		return false
	}
	delete(p.hosts, h.space)
	h.idle.left = true
	p.noteDue(h)
	p.tenure.evictions++
	p.counters.evictions.Add(1)
	return true
}

// noteFailure records why a host has ended. p.mu is held.
func (p *servedPartition) noteFailure(h *host) {
	failed := h.failure()
	if failed == nil {
		return
	}
	if p.stuck.failures == nil {
		p.stuck.failures = map[string]string{}
	}
	p.stuck.failures[h.space] = display.FirstLine(failed.Error())
}

// loaded returns the spaces that have a host.
func (p *servedPartition) loaded() (list []*storedSpace) {
	for _, h := range p.all() {
		list = append(list, &h.saver.stored)
	}
	return list
}

// hasHost reports whether a space has a host.
func (p *servedPartition) hasHost(space string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts[space] != nil
}

// load starts a host of a space, if the space can be served.
func (p *servedPartition) load(space string) { _ = p.ask(space, false, func(*host) {}) }
