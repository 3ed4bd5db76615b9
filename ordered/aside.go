package ordered

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/setaside"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Two positions of a partition's lane are saved, as workers do and in the same form (docs/adr/0033). Up to
// the first, all keys are done. The second, the Ahead, does not wait for keys that stand still: they are set
// aside, and read for themselves what they have left. So a takeover does not read again what the others have
// handled behind them. Both are facts about the log, which stay true whoever saves them and whenever.

// asideAfter is after how long a key that holds the position back is set aside.
const asideAfter = 5 * time.Second

// aside is what a partition knows of its second position. It is guarded by the partition's lock.
type aside struct {
	// upTo is how far the Ahead reaches that was loaded or saved last, keys how many it has set aside.
	upTo  uint64
	keys  int
	known setaside.Known
	marks setaside.Marks
}

// takeAhead goes on from an Ahead, given up to where all keys are done. p.mu is held, and nothing has been
// read yet.
func (p *partition) takeAhead(a *model.Ahead, done uint64) {
	p.read, p.aside.upTo, p.aside.keys = a.UpTo, a.UpTo, len(a.Aside)
	for _, s := range setaside.Left(a, done) {
		p.aside.known.Expect(&s, a.UpTo)
		if h := p.hosts[s.Space]; h != nil { // it was woken before the position was known
			h.owesBehind(&s)
			continue
		}
		h := newHost(p, s.Space, s.Done)
		h.behind, h.last = s.Last, s.Last
		p.start(h)
	}
}

// owesBehind has a host read what its key has left to do, of which nothing will be delivered.
func (h *host) owesBehind(s *model.Aside) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.last = max(h.left, s.Last), max(h.last, s.Last)
	h.low.Store(min(h.low.Load(), s.Done))
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// findBehind is the lane sequence up to which the key is to read for itself, 0 for none. An event there that
// somebody has removed would be waited for for ever: then it is the last that is left before it. A store that
// may answer from the past is asked for as long as it may.
func (h *host) findBehind(rep *replica.Replica) (uint64, error) {
	for began := time.Now(); h.behind > rep.LaneDone(); {
		m, there, err := h.p.bus.LaneEvent(h.p.ctx, h.p.number, h.behind)
		switch {
		case err != nil:
			return 0, fmt.Errorf("look at event %d of the lane: %w", h.behind, err)
		case there && m.Space == h.key:
			return h.behind, nil
		case time.Since(began) >= h.p.bus.Hindsight():
			return h.behind, h.lastBehind(rep.LaneDone())
		}
		if err := pause.For(h.p.ctx, h.p.s.cfg.Heartbeat); err != nil {
			return 0, model.ErrStopped
		}
	}
	return h.behind, nil
}

func (h *host) lastBehind(done uint64) error {
	last := done
	for after := done; after < h.behind; {
		events, err := h.p.bus.ReadLane(h.p.ctx, h.key, after, readPage)
		if err != nil {
			return fmt.Errorf("read the lane after %d: %w", after, err)
		}
		for i := range events {
			if after = events[i].Seq; after <= h.behind {
				last = after
			}
		}
		if len(events) < readPage {
			break
		}
	}
	h.p.s.cfg.Logger.Warn("an event is not in the lane any more that was not handled", "key", h.key, "sequence", h.behind, "last", last)
	h.behind = last
	return nil
}

// reached finds out how far the partition is done, how far it is without the keys that are set aside,
// and up to where it has read. What a host says later than the reader was looked at is no less true.
func (p *partition) reached(now time.Time) (done uint64, ahead model.Ahead, read uint64) {
	p.mu.Lock()
	read = p.read
	lagging := p.aside.marks.Lagging(now, asideAfter, read)
	if p.doubt != nil {
		lagging = 0 // cursors do not say what is handled
	}
	var behind []model.Aside
	for key, h := range p.hosts { // any order: sorted later
		h.mu.Lock()
		if low := h.low.Load(); low != allDone {
			behind = append(behind, model.Aside{Space: key, Done: low, Last: h.last})
		}
		h.mu.Unlock()
	}
	p.mu.Unlock()
	done, ahead = setaside.Reach(min(read, p.strays.Done()), behind, lagging, p.bus.MaxPayload()/4)
	return done, ahead, read
}

// savePosition saves how far the lane is done with: every event up to it is handled and saved.
// That is a fact about the log, so it stays true whoever has the partition by then.
func (p *partition) savePosition(ctx context.Context) error {
	done, ahead, read := p.reached(time.Now())
	if sent := p.strays.Sent(read); sent > 0 {
		if err := p.bus.SavePosition(ctx, p.number, misroute.Position, sent); err != nil {
			return err
		}
		p.strays.Saved(sent)
	}
	p.mu.Lock()
	saved, upTo := p.saved, max(p.aside.upTo, done)
	p.mu.Unlock()
	if done > saved {
		if err := p.bus.SavePosition(ctx, p.number, positionLane, done); err != nil {
			return err
		}
		p.isSaved(done)
	}
	if len(ahead.Aside) == 0 || ahead.UpTo <= upTo {
		return nil
	}
	if err := p.bus.SaveAhead(ctx, p.number, ahead); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aside.upTo, p.aside.keys = ahead.UpTo, len(ahead.Aside)
	return nil
}

// isSaved notes a position that is saved.
func (p *partition) isSaved(done uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.saved = max(p.saved, done); p.doubt != nil && p.saved >= p.doubt.UpTo {
		p.doubt = nil
	}
}
