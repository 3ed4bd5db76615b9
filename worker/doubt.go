package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/stray"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// A lane may lose its end while the logs keep theirs: after a power cut, each stream has
// what was written through of it. It then gives sequences out again, under which spaces have
// handled other events, so that their cursors would pass over the new ones; and it has
// forgotten the ids of those, so that a second one of an id would be taken for the first.
//
// A worker that begins to serve a partition compares the newest receipt in the log with what
// stands in the lane at its sequence. If that is something else, or nothing, a range of
// sequences is in doubt from then on: from where the lane was cut off, at the latest, to the
// highest that any space may know. The lane is filled to its end, with the names of what it
// has lost. Which events of the range are handled, their receipts say and not the cursors,
// until the saved position is beyond it.

// Names of the saved positions between which the events of a lane are in doubt.
const (
	positionDoubtAfter = "doubt-after"
	positionDoubtUpTo  = "doubt-up-to"
)

// doubtMargin is by how much the clocks of servers may differ: where a lane was cut off is
// found by the times of events and commits. Receipts must not be purged as soon as that.
const doubtMargin = 10 * time.Second

func (p *partition) doubtMargin() time.Duration { return min(doubtMargin, p.w.cfg.PurgeDelay/2) }

// tailLook is how many of the last commits of a log are compared with the lane. If a range
// is in doubt, as many are read as reach back to it.
const tailLook = 256

// doubt is the range of lane sequences in doubt: those behind after, up to upTo.
type doubt struct {
	after, upTo uint64
	// answered are the events that have a receipt, as far as it names a sequence of the range,
	// with that sequence. They were read off the log up to read.
	answered map[eventName]uint64
	read     uint64
}

// eventName is what an event is told from all others by.
type eventName struct{ space, stream, id string }

func nameOf(m *model.Message) eventName { return eventName{m.Space, m.Stream, m.ID} }

// covers reports whether a sequence is in doubt. No doubt is nil.
func (d *doubt) covers(seq uint64) bool { return d != nil && seq > d.after && seq <= d.upTo }

// handled reports whether an event in doubt has a receipt.
func (d *doubt) handled(m *model.Message) bool {
	_, is := d.answered[nameOf(m)]
	return is
}

// receipt is how an event has ended, and under which lane sequence.
type receipt struct {
	event  eventName
	lane   uint64
	stored time.Time // the commit
}

// receiptsOf are the receipts of events that came by the lane.
func receiptsOf(entries []model.LogEntry) (found []receipt) {
	for i := range entries {
		e := &entries[i]
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			continue // its space says so
		}
		for j := range c.Txs {
			tx := &c.Txs[j]
			stream, ok := receipts.Stream(tx.By)
			if ok && tx.Receipt != nil && tx.Receipt.Lane > 0 {
				found = append(found, receipt{eventName{e.Space, stream, tx.Receipt.Event}, tx.Receipt.Lane, e.Stored})
			}
		}
	}
	return found
}

// compareLane compares the lane with what is known of it, and returns from where on it is to
// be read, given where it was done with. An error says that it cannot be used.
func (p *partition) compareLane(ctx context.Context, from uint64) (uint64, error) {
	for began := time.Now(); ; {
		at, lost, err := p.tryLane(ctx, from, time.Since(began) >= p.bus.Hindsight())
		if err != nil || !lost {
			return at, err
		}
		if err := pause.For(ctx, p.w.cfg.Heartbeat); err != nil { // a leader may be one no more
			return 0, err
		}
	}
}

// tryLane is compareLane at one moment. If the lane lacks something, it only says so, unless it is
// to act upon that.
func (p *partition) tryLane(ctx context.Context, from uint64, act bool) (at uint64, lost bool, err error) {
	tail, err := p.bus.LogTail(ctx, p.number, tailLook)
	if err != nil {
		return 0, false, err
	}
	end, err := p.bus.LaneEnd(ctx, p.number) // after that: another worker may serve the partition, too
	if err != nil {
		return 0, false, err
	}
	d, err := p.loadDoubt(ctx, from)
	if err != nil {
		return 0, false, err
	}
	var last receipt
	if known := receiptsOf(tail); len(known) > 0 {
		last = slices.MaxFunc(known, func(a, b receipt) int { return cmp.Compare(a.lane, b.lane) })
	}
	lost, err = p.laneHasLost(ctx, max(last.lane, from), end, last, d)
	switch {
	case err != nil:
		return 0, false, err
	case lost && !act:
		return 0, true, nil
	case lost && (end == 0 || last.lane == 0):
		return 0, false, fmt.Errorf("the lane ends at %d, but its events were handled up to %d: the stream has lost messages (a power cut without fsync, or an old backup); what is sent to it now would be taken for old", end, max(last.lane, from))
	case lost:
		d, from, err = p.doubtLane(ctx, d, last, from, end)
	case d != nil:
		err = p.learnAnswered(ctx, d)
	}
	if err != nil {
		return 0, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt = d
	return from, false, nil
}

// loadDoubt is the range that is in doubt, nil if there is none or the lane is done with
// beyond it.
func (p *partition) loadDoubt(ctx context.Context, from uint64) (*doubt, error) {
	upTo, err := p.bus.LoadPosition(ctx, p.number, positionDoubtUpTo)
	if err != nil || upTo <= from {
		return nil, err
	}
	after, err := p.bus.LoadPosition(ctx, p.number, positionDoubtAfter)
	return &doubt{after: after, upTo: upTo}, err
}

// laneHasLost reports whether the lane lacks what it is known to have had.
func (p *partition) laneHasLost(ctx context.Context, known, end uint64, last receipt, d *doubt) (bool, error) {
	if last.lane == 0 || end >= known && d.covers(last.lane) {
		return end < known, nil
	}
	m, there, err := p.bus.LaneEvent(ctx, p.number, last.lane)
	if there && end < known { // a leader of before has said where the lane ends, or it was cut off further on
		end = max(end, last.lane)
	}
	return end < known || there && nameOf(&m) != last.event, err
}

// doubtLane puts the end of the lane in doubt, together with what was before, and fills it.
// All of it can be done again, should this process end half way through.
func (p *partition) doubtLane(ctx context.Context, before *doubt, last receipt, from, end uint64) (*doubt, uint64, error) {
	cut, err := p.bus.LaneBefore(ctx, p.number, last.stored.Add(-p.doubtMargin()))
	if err != nil {
		return nil, 0, err
	}
	d := &doubt{after: min(cut, end, last.lane-1), upTo: max(last.lane, from)}
	if before != nil {
		d.after, d.upTo = min(d.after, before.after), max(d.upTo, before.upTo)
	}
	p.w.cfg.Logger.Error("the lane has lost its end (a power cut without fsync, or older files): what is sent now is told from what was handled by the receipts",
		"worker", p.w.cfg.ID, "partition", p.number, "ends_at", end, "handled_up_to", d.upTo, "in_doubt_after", d.after)
	if err := p.learnAnswered(ctx, d); err != nil {
		return nil, 0, err
	}
	if err := p.bus.MovePosition(ctx, p.number, positionDoubtAfter, d.after); err != nil {
		return nil, 0, err
	}
	if err := p.bus.MovePosition(ctx, p.number, positionDoubtUpTo, d.upTo); err != nil {
		return nil, 0, err
	}
	if err := p.bus.FillLane(ctx, p.number, d.upTo, d.names()); err != nil {
		return nil, 0, err
	}
	for _, name := range []string{stray.Position, positionLane} { // the latter last: it is what ends the doubt
		if err := p.moveBack(ctx, name, d.after); err != nil {
			return nil, 0, err
		}
	}
	return d, min(from, d.after), nil
}

// moveBack moves a saved position back to a sequence, if it is beyond that.
func (p *partition) moveBack(ctx context.Context, name string, seq uint64) error {
	at, err := p.bus.LoadPosition(ctx, p.number, name)
	if err != nil || at <= seq {
		return err
	}
	return p.bus.MovePosition(ctx, p.number, name, seq)
}

// names are the events that have a receipt, by their sequences. The lane may not know their ids
// any more.
func (d *doubt) names() []model.Message {
	var list []model.Message
	for e, lane := range d.answered { // any order: sorted below
		list = append(list, model.Message{Space: e.space, Stream: e.stream, ID: e.id, Seq: lane})
	}
	slices.SortFunc(list, func(a, b model.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// learnAnswered reads the receipts of the range off the log, back to where it cannot have any
// more of them: nothing is handled before it is stored.
func (p *partition) learnAnswered(ctx context.Context, d *doubt) error {
	var since time.Time
	if m, there, err := p.bus.LaneEvent(ctx, p.number, d.after); err != nil {
		return err
	} else if there {
		since = m.Stored.Add(-p.doubtMargin())
	}
	for n := tailLook; ; n *= 4 {
		tail, err := p.bus.LogTail(ctx, p.number, n)
		if err != nil {
			return err
		}
		state, err := p.bus.LogState(ctx, p.number, 0)
		if err != nil {
			return err
		}
		if len(tail) > 0 && tail[0].Seq > state.First && !tail[0].Stored.Before(since) {
			continue // it may go further back
		}
		d.answered, d.read = map[eventName]uint64{}, 0
		if len(tail) > 0 {
			d.read = tail[len(tail)-1].Seq
		}
		for _, r := range receiptsOf(tail) {
			if d.covers(r.lane) {
				d.answered[r.event] = r.lane
			}
		}
		return nil
	}
}

// purges reports whether the log may be purged: as long as events are in doubt, no receipt goes.
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

// inDoubt is the range that is in doubt, nil if none is.
func (p *partition) inDoubt() *doubt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// mend sets events aside, for them to be handled, that the cursor of a space has passed over and
// that have no receipt: another event stood at their sequence when it did.
func (h *host) mend(r *replica.Replica) error {
	p := h.env.partition
	if p == nil {
		return nil
	}
	select {
	case <-p.compared:
	case <-h.ctx.Done():
		return h.ctx.Err()
	}
	p.mu.Lock()
	d, err := p.doubt, p.laneErr
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("compare the lane with the log: %w", err)
	}
	if d == nil || r.Cursor.Floor <= d.after {
		return nil
	}
	since, err := h.answeredSince(d.read, r.Seq)
	if err != nil {
		return err
	}
	upTo := min(r.Cursor.Floor, d.upTo)
	for after := d.after; after < upTo; {
		events, err := h.env.bus.ReadLane(h.ctx, h.space, after, readPage)
		if err != nil {
			return fmt.Errorf("read lane after %d: %w", after, err)
		}
		for i := range events {
			if after = events[i].Seq; after <= upTo && !d.handled(&events[i]) && !since[nameOf(&events[i])] {
				r.Cursor = withHeld(r.Cursor, after)
			}
		}
		if len(events) < readPage {
			break
		}
	}
	h.saver.lane = min(h.saver.lane, r.LaneDone())
	return nil
}

// answeredSince are the events that have a receipt behind a log sequence, up to another one
// that is known to be there. A replica that is behind is asked again.
func (h *host) answeredSince(behind, upTo uint64) (map[eventName]bool, error) {
	answered := map[eventName]bool{}
	for dry := 0; behind < upTo; dry++ {
		_ = pause.For(h.ctx, pause.Backoff(dry))
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, behind, readPage)
		if err != nil {
			return nil, fmt.Errorf("read log after %d: %w", behind, err)
		}
		for _, r := range receiptsOf(entries) {
			answered[r.event] = true
		}
		if n := len(entries); n > 0 {
			dry, behind = -1, entries[n-1].Seq
		}
		if h.ctx.Err() != nil {
			return nil, h.ctx.Err()
		}
	}
	return answered, nil
}

// withHeld is a cursor that has set an event aside.
func withHeld(c model.Cursor, seq uint64) model.Cursor {
	at, there := slices.BinarySearch(c.Held, seq)
	if !there {
		c.Held = slices.Insert(slices.Clone(c.Held), at, seq)
	}
	return c
}
