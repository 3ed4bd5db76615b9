package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/setaside"
	"github.com/settlehq/settle/internal/stray"
	"github.com/settlehq/settle/model"
)

// A partition saves two positions of its lane (docs/adr/0033). Up to the first, all spaces are
// done; the lane is purged up to it, and workers of earlier versions know only that one. A space that
// stands still holds it back. The second, the Ahead, does not wait for
// such spaces: it lists them as set aside, each with its position and with the last of its events that
// was read. The next owner reads the lane from the Ahead on. A space that is set aside reads its
// unhandled events by itself, like any space that had no host.
//
// Both positions are facts about the log: they stay true regardless of which worker saves them, and when.

// aside is the state of a partition's second position. It is guarded by the partition's lock.
type aside struct {
	// upTo is the position of the Ahead that was loaded or saved last, spaces the number of spaces
	// that it sets aside.
	upTo   uint64
	spaces int
	known  setaside.Known
	marks  setaside.Marks
}

// takeAhead continues from an Ahead; done is the position up to which all spaces are done. The spaces
// that it sets aside are woken, and are done up to the positions that it lists. p.mu is held, and
// nothing has been read yet.
func (p *partition) takeAhead(a *model.Ahead, done uint64) {
	p.read, p.aside.upTo, p.aside.spaces = a.UpTo, a.UpTo, len(a.Aside)
	for _, s := range setaside.Left(a, done) {
		if s.Last = max(s.Last, p.asleep[s.Space].last); s.Last <= s.Done {
			s.Last = 0
		}
		p.aside.known.Expect(&s, a.UpTo)
		b := backlog{done: s.Done, last: s.Last}
		if h := p.hosts[s.Space]; h != nil { // the host was requested before the position was known
			h.inbox.owesBehind(b)
			continue
		}
		p.asleep[s.Space] = b
		p.hostOf(s.Space, false)
	}
}

// findBehind makes sure that the event exists up to which the lane must be read before any later
// event is handled. The host would wait for a removed event without end: in that case the event is
// the last one left before it. A store that may answer from the past is asked for as long as it may.
func (h *host) findBehind() error {
	for began := time.Now(); h.start.behind > h.core.ReadLaneAfter(); {
		m, there, err := h.env.bus.LaneEvent(h.ctx, model.PartitionOf(h.space, h.env.bus.Partitions()), h.start.behind)
		switch {
		case err != nil:
			return fmt.Errorf("look at event %d of the lane: %w", h.start.behind, err)
		case there && m.Space == h.space:
			return nil
		case time.Since(began) >= h.env.bus.Hindsight():
			return h.lastBehind()
		}
		if err := pause.For(h.ctx, h.env.cfg.Heartbeat); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) lastBehind() error {
	last := h.core.ReadLaneAfter()
	for after := last; after < h.start.behind; {
		events, err := h.env.bus.ReadLane(h.ctx, h.space, after, readPage)
		if err != nil {
			return fmt.Errorf("read lane after %d: %w", after, err)
		}
		for i := range events {
			if after = events[i].Seq; after <= h.start.behind {
				last = after
			}
		}
		if len(events) < readPage {
			break
		}
	}
	h.env.cfg.Logger.Warn("an event is not in the lane any more that was not handled", "space", h.space, "sequence", h.start.behind, "last", last)
	h.start.behind = last
	return nil
}

// reach is the position up to which the partition is done with its lane: with all spaces, and without
// the spaces that it sets aside.
type reach struct {
	done  uint64
	ahead model.Ahead
}

// reached computes how far the partition is done. Progress that a host reports after the reader's
// position was read is just as valid.
func (p *partition) reached(now time.Time) (r reach, read uint64) {
	p.mu.Lock()
	read = p.read
	lagging := p.aside.marks.Lagging(now, p.cfg.Aside, read)
	if p.doubt != nil {
		lagging = 0 // cursors do not show which events are handled
	}
	behind := make([]model.Aside, 0, len(p.asleep))
	for space, b := range p.asleep { // any order: sorted later
		behind = append(behind, model.Aside{Space: space, Done: b.done, Last: b.last})
	}
	for _, h := range p.hosts { // any order: sorted later
		if b := h.inbox.backlog(); b.done != allDone {
			behind = append(behind, model.Aside{Space: h.space, Done: b.done, Last: b.last})
		}
	}
	p.mu.Unlock()
	r.done = min(read, p.strays.Done())
	r.done, r.ahead = setaside.Reach(r.done, behind, lagging, p.bus.MaxPayload()/4)
	return r, read
}

// savePosition saves the lane position up to which every event is handled, with all its
// consequences within its space. The position is a fact about the log, so it stays true even if another
// worker owns the partition by the time it is written.
func (p *partition) savePosition(ctx context.Context) {
	r, read := p.reached(time.Now())
	if sent := p.strays.Sent(read); sent > 0 && p.saveAt(ctx, stray.Position, sent) {
		p.strays.Saved(sent)
	}
	p.mu.Lock()
	saved, ahead := p.saved, max(p.aside.upTo, r.done)
	p.mu.Unlock()
	if r.done > saved && p.saveAt(ctx, positionLane, r.done) {
		p.mu.Lock()
		p.saved = max(p.saved, r.done)
		if p.doubt != nil && p.saved >= p.doubt.UpTo {
			p.doubt = nil
		}
		p.mu.Unlock()
	}
	if len(r.ahead.Aside) > 0 && r.ahead.UpTo > ahead && p.saveAhead(ctx, &r.ahead) {
		p.mu.Lock()
		p.aside.upTo, p.aside.spaces = r.ahead.UpTo, len(r.ahead.Aside)
		p.mu.Unlock()
	}
}

func (p *partition) saveAhead(ctx context.Context, a *model.Ahead) bool {
	return p.isSaved(ctx, "ahead", p.bus.SaveAhead(ctx, p.number, *a))
}

// saveAt saves a position, and reports whether it succeeded.
func (p *partition) saveAt(ctx context.Context, name string, seq uint64) bool {
	return p.isSaved(ctx, name, p.bus.SavePosition(ctx, p.number, name, seq))
}

func (p *partition) isSaved(ctx context.Context, name string, err error) bool {
	if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrRewound) { // the bus has reported a rewind already
		p.cfg.faults.Warn("save a position", p.name()+" "+name, "partition", p.number, "of", name, "error", err)
	}
	return err == nil
}
