package host

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/setaside"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
)

func (p *servedPartition) followLane(ctx context.Context) error {
	if p.current() != p.bus.Epoch() {
		p.restart(p)
		return model.ErrStopped
	}
	from, err := p.bus.LoadPosition(ctx, p.number, positionLane)
	var ahead model.Ahead
	if err == nil {
		ahead, err = p.bus.LoadAhead(ctx, p.number)
	}
	if err == nil {
		from, err = p.compareLane(ctx, from)
	}
	p.mu.Lock()
	p.laneErr = err
	back := err == nil && p.doubt != nil && from < max(p.saved, p.aside.upTo)
	p.mu.Unlock()
	switch {
	case err != nil:
		p.isCompared()
		return err
	case back: // the lane was truncated while this partition read it
		p.isCompared()
		p.restart(p)
		return model.ErrStopped
	}
	p.mu.Lock()
	if p.read == 0 && p.doubt == nil && ahead.UpTo > from {
		p.takeAhead(&ahead, from)
	}
	p.read, p.saved = max(p.read, from), max(p.saved, from)
	from = p.read
	p.wakeups.place()
	p.mu.Unlock()
	p.isCompared() // the spaces that were set aside come first, in the same order every time
	return p.bus.FollowLane(ctx, p.number, from, p.deliver)
}

// deliver passes an event to its space, loading it if necessary. It waits for room for a while, which slows
// the reader down to the pace of the spaces. If a host stands still, or is flooded for longer than the other
// spaces may be delayed, its event is left in the stream instead. No lock is held while it waits.
func (p *servedPartition) deliver(m model.Message) {
	if d := p.inDoubt(); d.Covers(m.Seq) && d.Handled(&m) || p.misrouted.Take(&m) {
		p.mu.Lock()
		p.read = m.Seq
		p.mu.Unlock()
		return
	}
	for patient := p.credit.now() > 0; ; {
		h := p.take(&m, patient)
		if h == nil {
			return
		}
		patient = p.credit.wait(h.inbox, h.ctx.Done())
	}
}

// take puts an event into its space's inbox, or records that it waits. It returns the
// host if the inbox has no room; if not patient, it then leaves the event in the stream.
func (p *servedPartition) take(m *model.Message, patient bool) *host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.aside.known.Has(m) {
		p.read = m.Seq
		return nil
	}
	b, waits := p.asleep[m.Space]
	refused := p.cfg.refuses(m)
	switch h := p.hostFor(m.Space, waits, refused); {
	case h != nil && refused && h.unborn.Load():
		p.passOver(m)
	case h == nil:
		if !waits {
			b.done = m.Seq - 1
		}
		b.last = m.Seq
		p.asleep[m.Space] = b
	case h.inbox.tryOffer(*m):
	case patient:
		return h
	default:
		h.inbox.leave(m.Seq)
	}
	p.read = m.Seq
	return nil
}

// takeAhead continues from an Ahead; done is the position up to which all spaces are done. The spaces that it
// sets aside are woken, and are done up to the positions that it lists. p.mu is held, and nothing has been
// read yet.
func (p *servedPartition) takeAhead(a *model.Ahead, done uint64) {
	p.read, p.aside.upTo, p.aside.spaces = a.UpTo, a.UpTo, len(a.Aside)
	for _, s := range setaside.Left(a, done) {
		if s.Last = max(s.Last, p.asleep[s.Space].last); s.Last <= s.Done {
			s.Last = 0
		}
		p.aside.known.Expect(&s, a.UpTo)
		b := laneBacklog{done: s.Done, last: s.Last}
		if h := p.hosts[s.Space]; h != nil && !h.unborn.Load() { // the host was requested before the position was known
			h.inbox.addBacklog(b)
			continue
		}
		p.asleep[s.Space] = b
		p.hostOf(s.Space, false) // one without a log, decided while these events were not known, makes way
	}
}

// compareLane reads the server's clock, without which no space is taken over, compares the lane with its
// known state, and returns from where the lane is to be read; from is the position up to which it was
// done. It returns an error if the lane cannot be used.
func (p *servedPartition) compareLane(ctx context.Context, from uint64) (uint64, error) {
	if err := p.clock.Read(ctx, p.bus, p.number); err != nil {
		return 0, err
	}
	d, from, err := p.lane().Compare(ctx, from)
	if err != nil {
		if lost := model.LossOf(err); lost != nil {
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

// lane returns the partition's lane for package truncation.
func (p *servedPartition) lane() *truncation.Lane {
	return &truncation.Lane{
		Bus: p.bus, Partition: p.number, Margin: min(truncation.Margin, p.cfg.PurgeDelay/2), Retry: p.cfg.Heartbeat,
		Faults: p.cfg.faults, Process: []any{"worker", p.cfg.ID},
	}
}

// inDoubt returns the range that is in doubt, nil if there is none.
func (p *servedPartition) inDoubt() *truncation.Range {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// purges reports whether the log may be purged: while events are in doubt, all receipts are kept.
func (p *servedPartition) purges() bool {
	select {
	case <-p.compared:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.doubt == nil && p.laneErr == nil
	default:
		return false
	}
}

// reached computes how far the partition is done. Progress that a host reports after the reader's
// position was read is just as valid.
func (p *servedPartition) reached(now time.Time) (r reach, read uint64) {
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
	r.done = min(read, p.misrouted.Done())
	r.done, r.ahead = setaside.Reach(r.done, behind, lagging, p.bus.MaxPayload()/4)
	return r, read
}

// savePosition saves the lane position up to which every event is handled, with all its consequences within
// its space. The position is a fact about the log, so it stays true even if another worker owns the partition
// by the time it is written.
func (p *servedPartition) savePosition(ctx context.Context) {
	r, read := p.reached(time.Now())
	if sent := p.misrouted.Sent(read); sent > 0 && p.saveAt(ctx, misroute.Position, sent) {
		p.misrouted.Saved(sent)
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

func (p *servedPartition) saveAhead(ctx context.Context, a *model.Ahead) bool {
	return p.isSaved(ctx, "ahead", p.bus.SaveAhead(ctx, p.number, *a))
}

// saveAt saves a position, and reports whether it succeeded.
func (p *servedPartition) saveAt(ctx context.Context, name string, seq uint64) bool {
	return p.isSaved(ctx, name, p.bus.SavePosition(ctx, p.number, name, seq))
}

func (p *servedPartition) isSaved(ctx context.Context, name string, err error) bool {
	if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrRewound) { // the bus has reported a rewind already
		p.cfg.faults.Warn("save a position", p.name()+" "+name, "partition", p.number, "position", name, "error", err)
	}
	return err == nil
}

// purge removes events from the lane that are done and beyond the horizon. Done means
// saved as done: the saved position is a fact about the log, so even a worker that has
// lost the partition, or was suspended for a week, purges only events that may go, and
// a repeated purge has no effect. The server decides the age of an event, by its own clock.
//
// An id with a time up to MaxClockSkew ahead is accepted, so events are kept for
// that much longer: by the time an event is forgotten, its id is too old.
func (p *servedPartition) purge(ctx context.Context, last *lanePurge) {
	p.mu.Lock()
	done := p.saved
	p.mu.Unlock()
	if now := time.Now(); done == 0 || now.Before(last.next) {
		return
	}
	more, err := p.bus.PurgeLane(ctx, p.number, done, p.horizon+model.MaxClockSkew)
	if err != nil && ctx.Err() == nil {
		p.cfg.faults.Warn("purge handled events from the lane", p.name(), "partition", p.number, "handled_up_to", done, "error", err)
	}
	if !more {
		last.next = time.Now().Add(purgeEvery)
	}
}

// purgeEvery is how often a partition's lane is checked for events that may be
// purged. Events stay up to that much longer than needed.
const purgeEvery = time.Minute
