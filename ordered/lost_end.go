package ordered

import (
	"context"
	"time"

	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/status"
)

// lossPause is how long to wait before it is looked at again whether a loss is one still.
const lossPause = 2 * time.Second

// noteLoss remembers that something is refused, and logs it now and then.
func (p *partition) noteLoss(e *model.LossError) {
	p.mu.Lock()
	if p.lost == nil {
		p.lost = map[string]status.Loss{}
	}
	since := time.Now().UTC()
	if was, known := p.lost[e.Space]; known {
		since = was.Since
	}
	p.lost[e.Space] = status.Loss{Kind: e.Kind, Partition: p.number, Space: e.Space, Known: e.Known, Found: e.Found, Since: since, Why: e.Error()}
	p.mu.Unlock()
	p.s.cfg.faults.Error(e.Kind.Refusal(), p.name+" "+e.Space, "server", p.s.cfg.id, "partition", e.Partition, "key", e.Space, "error", e)
}

// lossOver says that a key, or the partition, is served.
func (p *partition) lossOver(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, was := p.lost[key]; was {
		delete(p.lost, key)
		p.s.cfg.faults.Over(l.Kind.Refusal(), p.name+" "+key)
	}
}

// compareLane compares the lane with what is known of it, and returns from where on it is to be
// read, given where it was done with.
func (p *partition) compareLane(ctx context.Context, from uint64) (uint64, error) {
	if err := p.clock.Read(ctx, p.bus, p.number); err != nil {
		return 0, err
	}
	lane := truncation.Lane{
		Bus: p.bus, Partition: p.number, Margin: truncation.Margin, Retry: p.s.cfg.Heartbeat,
		Faults: p.s.cfg.faults, Process: []any{"server", p.s.cfg.id},
	}
	d, from, err := lane.Compare(ctx, from)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt, p.compared = d, true
	return from, nil
}

// purges reports whether the log may be purged: as long as events are in doubt, no receipt goes.
func (p *partition) purges() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.compared && p.doubt == nil
}

// mend sets events aside, for them to be handled, that the cursor of a key has passed over and that
// have no receipt.
func (h *host) mend(rep *replica.Replica) error {
	h.p.mu.Lock()
	d := h.p.doubt
	h.p.mu.Unlock()
	c, err := d.Reopen(h.p.ctx, h.p.bus, h.key, rep.Cursor, rep.Seq)
	if err != nil {
		return err
	}
	rep.Cursor = c
	h.saver.lane = min(h.saver.lane, rep.LaneDone())
	return nil
}

// checkEnd refuses a log that ends before what is saved of it. A takeover is refused by it as well,
// so that it is asked only where the documents are ahead of the mark, or it was refused before.
func (h *host) checkEnd(st *model.SpaceState, read uint64) error {
	known := st.Newest()
	if known <= read && !h.refused {
		return nil
	}
	if err := h.checkHead(known); err != nil {
		return err
	}
	if h.refused { // with the loss, the lane may have been put in doubt
		h.refused = false
		h.p.beginAnew()
		return model.ErrStopped
	}
	return nil
}
