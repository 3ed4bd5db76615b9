package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/doubt"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// lane returns the partition's lane as package doubt reads it.
func (p *partition) lane() *doubt.Lane {
	return &doubt.Lane{
		Bus: p.bus, Partition: p.number, Margin: min(doubt.Margin, p.cfg.PurgeDelay/2), Again: p.cfg.Heartbeat,
		Faults: p.cfg.faults, Process: []any{"worker", p.cfg.ID},
	}
}

// compareLane reads the server's clock, without which no space is taken over, compares the lane with its
// known state, and returns from where the lane is to be read; from is the position up to which it was
// done. It returns an error if the lane cannot be used.
func (p *partition) compareLane(ctx context.Context, from uint64) (uint64, error) {
	if err := p.clock.Read(ctx, p.bus, p.number); err != nil {
		return 0, err
	}
	d, from, err := p.lane().Compare(ctx, from)
	if err != nil {
		if lost := isLoss(err); lost != nil {
			p.losses.note(lost)
		}
		return 0, err
	}
	p.losses.over("")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt = d
	return from, nil
}

// purges reports whether the log may be purged: while events are in doubt, all receipts are kept.
func (p *partition) purges() bool {
	select {
	case <-p.compared:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.doubt == nil && p.laneErr == nil
	default:
		return false
	}
}

// loaded returns the spaces that have a host.
func (p *partition) loaded() (list []*storedSpace) {
	for _, h := range p.all() {
		list = append(list, &h.saver.stored)
	}
	return list
}

// hasHost reports whether a space has a host.
func (p *partition) hasHost(space string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts[space] != nil
}

// load starts a host of a space, if the space can be served.
func (p *partition) load(space string) { _ = p.ask(space, func(*host) {}) }

// inDoubt returns the range that is in doubt, nil if there is none.
func (p *partition) inDoubt() *doubt.Range {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// comparison waits until the lane is compared with the log, and returns the range that is in doubt.
func (p *partition) comparison(ctx context.Context) (*doubt.Range, error) {
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

// overran records that the host of a space was given up.
func (p *partition) overran(name string, o *space.Overrun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overruns.note(name, o, time.Now())
}

// lost records that the store has lost data of a space.
func (p *partition) lost(e *model.LossError) { p.losses.note(e) }

// isRefused reports whether a space is refused because of a loss.
func (p *partition) isRefused(space string) bool { return p.losses.has(space) }

// accepted records that a space can be served, and reports whether it was refused. The loss may have put the lane
// in doubt as well, so the partition begins anew then.
func (p *partition) accepted(space string) (wasRefused bool) {
	if wasRefused = p.losses.over(space); wasRefused {
		p.beginAnew(p)
	}
	return wasRefused
}

// appended counts bytes that a space appends to the log.
func (p *partition) appended(bytes int) { p.retention.appended.Add(int64(bytes)) }

// mend sets aside, to be handled, events that the cursor of a space has passed and
// that have no receipt.
func (h *host) mend(r *replica.Replica) error {
	if h.env.home == nil {
		return nil
	}
	d, err := h.env.home.comparison(h.ctx)
	if err != nil {
		return err
	}
	if d == nil || r.Cursor.Floor <= d.After {
		return nil
	}
	c, err := d.Mend(h.ctx, h.env.bus, h.space, r.Cursor, r.Seq)
	if err != nil {
		return err
	}
	r.Cursor = c
	h.saver.lane = min(h.saver.lane, r.LaneDone())
	return nil
}
