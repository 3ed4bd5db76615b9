// Package doubt goes on with a lane that has lost its end while the logs have kept theirs.
//
// After a power cut, each stream has what was written through of it. A lane that has lost its
// end gives sequences out again, under which spaces have handled other events, so that their
// cursors would pass over the new ones; and it has forgotten the ids of those, so that a second
// one of an id would be taken for the first.
//
// What begins to serve a partition compares the newest receipt in the log with what stands in
// the lane at its sequence. If that is something else, or nothing, a range of sequences is in
// doubt from then on: from where the lane was cut off, at the latest, to the highest that any
// space may know. The lane is filled to its end, with the names of what it has lost. Which events
// of the range are handled, their receipts say and not the cursors, until the saved position is
// beyond it.
//
// A lane that is empty, or of which no receipt is known, is refused instead, with a
// *model.LossError, until an operator accepts the loss.
package doubt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Names of saved positions: PositionLane is the one up to which a lane is done with; between the
// other two, its events are in doubt.
const (
	PositionLane  = "lane"
	positionAfter = "doubt-after"
	positionUpTo  = "doubt-up-to"
)

// Bus is what this package needs of the outside world; port.Bus has all of it.
type Bus interface {
	LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error)
	LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error)
	ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error)
	LaneEnd(ctx context.Context, partition int) (uint64, error)
	LaneEvent(ctx context.Context, partition int, seq uint64) (model.Message, bool, error)
	LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error)
	FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error
	ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error)
	LoadPosition(ctx context.Context, partition int, name string) (uint64, error)
	MovePosition(ctx context.Context, partition int, name string, seq uint64) error
	PositionStored(ctx context.Context, partition int, name string) (time.Time, error)
	Hindsight() time.Duration
}

// Margin is by how much the clocks of servers may differ: where a lane was cut off is found by
// the times of events and commits. Receipts must not be purged as soon as that.
const Margin = 10 * time.Second

const (
	// tailLook is how many of the last commits of a log are compared with the lane. If a range
	// is in doubt, as many are read as reach back to it.
	tailLook = 256
	// moreLook is how many receipts are compared where the newest one is no proof.
	moreLook = 32
	// readPage is how many events or entries are read at a time.
	readPage = 512
)

// Range is the lane sequences in doubt: those behind After, up to UpTo. No doubt is nil.
type Range struct {
	After, UpTo uint64
	// answered are the events that have a receipt, as far as it names a sequence of the range,
	// with that sequence. They were read off the log up to read.
	answered map[name]uint64
	read     uint64
}

// name is what an event is told from all others by.
type name struct{ space, stream, id string }

func nameOf(m *model.Message) name { return name{m.Space, m.Stream, m.ID} }

// Covers reports whether a sequence is in doubt.
func (r *Range) Covers(seq uint64) bool { return r != nil && seq > r.After && seq <= r.UpTo }

// Handled reports whether an event in doubt has a receipt.
func (r *Range) Handled(m *model.Message) bool {
	_, is := r.answered[nameOf(m)]
	return is
}

// receipt is how an event has ended, and under which lane sequence.
type receipt struct {
	event  name
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
				found = append(found, receipt{name{e.Space, stream, tx.Receipt.Event}, tx.Receipt.Lane, e.Stored})
			}
		}
	}
	return found
}

// Lane is the lane of a partition, as what serves that looks at it.
type Lane struct {
	Bus       Bus
	Partition int
	// Margin is Margin, or less where receipts are purged earlier. Again is the pause until a
	// lane that lacks something is looked at again: a leader may not know yet that it is one no
	// more.
	Margin, Again time.Duration
	Faults        *faultlog.Log
	Process       []any // names the process for the log
}

// Compare compares the lane with what is known of it, and returns the range that is in doubt and
// from where on it is to be read, given where it was done with. An error says that it cannot be
// used.
func (l *Lane) Compare(ctx context.Context, from uint64) (*Range, uint64, error) {
	for began := time.Now(); ; {
		f, err := l.look(ctx, from)
		switch {
		case err != nil:
			return nil, 0, err
		case !f.lost:
			return f.doubt, from, f.doubt.learnIfAny(ctx, l)
		case time.Since(began) < l.Bus.Hindsight():
		case f.end == 0 || f.last.lane == 0:
			return nil, 0, &model.LossError{Kind: model.LossOfLane, Partition: l.Partition, Known: f.known, Found: f.end}
		default:
			return l.put(ctx, &f, f.last.stored)
		}
		if err := pause.For(ctx, l.Again); err != nil {
			return nil, 0, err
		}
	}
}

// Lost says what is refused of the lane, nil if nothing is.
func (l *Lane) Lost(ctx context.Context) (*model.LossError, error) {
	f, err := l.lookFromSaved(ctx)
	if err != nil || !f.lost || f.end > 0 && f.last.lane > 0 {
		return nil, err
	}
	return &model.LossError{Kind: model.LossOfLane, Partition: l.Partition, Known: f.known, Found: f.end}, nil
}

// Evidence is a sequence up to which a lane was known at a time: whatever is in the lane up to
// there and was stored before is what it was then.
type Evidence struct {
	Seq    uint64
	Stored time.Time
}

// Accept goes on with a lane that ends before what is known of it, by the evidence at the least:
// what it holds and has no receipt is handled, unless it was there when that became known.
func (l *Lane) Accept(ctx context.Context, known ...Evidence) error {
	f, err := l.lookFromSaved(ctx)
	if err != nil {
		return err
	}
	saved, err := l.Bus.PositionStored(ctx, l.Partition, PositionLane)
	if err != nil {
		return err
	}
	ahead, err := l.ahead(ctx)
	if err != nil {
		return err
	}
	at := f.last.stored
	for _, e := range append(known, Evidence{f.from, saved}, ahead) {
		if e.Seq > f.end { // else it may be of what was sent since
			f.lost, f.known = true, max(f.known, e.Seq)
			// Of the same servers, so without the margin; what was stored at that very time was there.
			at = latest(at, e.Stored.Add(l.Margin+1))
		}
	}
	if !f.lost {
		return nil
	}
	if m, there, err := l.Bus.LaneEvent(ctx, l.Partition, f.last.lane); err != nil {
		return err
	} else if there && nameOf(&m) == f.last.event {
		f.last = receipt{} // it says nothing of where the lane was cut off
	}
	_, _, err = l.put(ctx, &f, at)
	return err
}

// ahead is what the position says that does not wait for spaces which stand still.
func (l *Lane) ahead(ctx context.Context) (e Evidence, err error) {
	if e.Seq, err = l.Bus.LoadPosition(ctx, l.Partition, model.AheadPosition); err == nil {
		e.Stored, err = l.Bus.PositionStored(ctx, l.Partition, model.AheadPosition)
	}
	return e, err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *Lane) lookFromSaved(ctx context.Context) (findings, error) {
	from, err := l.Bus.LoadPosition(ctx, l.Partition, PositionLane)
	if err != nil {
		return findings{}, err
	}
	return l.look(ctx, from)
}

// findings are what is known of a lane.
type findings struct {
	from, end, known uint64
	last             receipt   // the one with the highest sequence, the zero receipt if there is none
	below            []receipt // those with the next lower ones, the highest first
	doubt            *Range
	lost             bool
}

func (l *Lane) look(ctx context.Context, from uint64) (f findings, err error) {
	tail, err := l.Bus.LogTail(ctx, l.Partition, tailLook)
	if err != nil {
		return f, err
	}
	f.from = from
	f.end, err = l.Bus.LaneEnd(ctx, l.Partition) // after that: another worker may serve the partition, too
	if err != nil {
		return f, err
	}
	if f.doubt, err = l.load(ctx, from); err != nil {
		return f, err
	}
	if known := receiptsOf(tail); len(known) > 0 {
		slices.SortFunc(known, func(a, b receipt) int { return cmp.Compare(b.lane, a.lane) })
		f.last, f.below = known[0], known[1:min(len(known), moreLook)]
	}
	ahead, err := l.Bus.LoadPosition(ctx, l.Partition, model.AheadPosition)
	if err != nil {
		return f, err
	}
	f.known = max(f.last.lane, from, ahead)
	f.lost, err = l.hasLost(ctx, &f)
	return f, err
}

// load is the range that is in doubt, nil if there is none or the lane is done with beyond it.
func (l *Lane) load(ctx context.Context, from uint64) (*Range, error) {
	upTo, err := l.Bus.LoadPosition(ctx, l.Partition, positionUpTo)
	if err != nil || upTo <= from {
		return nil, err
	}
	after, err := l.Bus.LoadPosition(ctx, l.Partition, positionAfter)
	return &Range{After: after, UpTo: upTo}, err
}

// hasLost reports whether the lane lacks what it is known to have had.
func (l *Lane) hasLost(ctx context.Context, f *findings) (bool, error) {
	if f.last.lane == 0 || f.end >= f.known && f.doubt.Covers(f.last.lane) {
		return f.end < f.known, nil
	}
	m, there, err := l.Bus.LaneEvent(ctx, l.Partition, f.last.lane)
	end := f.end
	if there && end < f.known { // a leader of before has said where the lane ends, or it was cut off further on
		end = max(end, f.last.lane)
	}
	switch {
	case err != nil:
		return false, err
	case end < f.known || there && nameOf(&m) != f.last.event:
		return true, nil
	case there && m.Stored.After(f.last.stored):
		return l.hasMoved(ctx, f.below)
	}
	return false, nil
}

// hasMoved reports whether an event stands where a receipt says that another one did. It is asked where an event seems to
// have been stored after it was handled: it was sent again and stands by chance where it stood, or the clock of
// another server is behind.
func (l *Lane) hasMoved(ctx context.Context, receipts []receipt) (bool, error) {
	for _, r := range receipts {
		m, there, err := l.Bus.LaneEvent(ctx, l.Partition, r.lane)
		if err != nil || there && nameOf(&m) != r.event {
			return err == nil, err
		}
	}
	return false, nil
}

// put puts the end of the lane in doubt, together with what was before, and fills it: what was
// stored before a time was handled, by a margin. All of it can be done again, should this process
// end half way through.
func (l *Lane) put(ctx context.Context, f *findings, at time.Time) (*Range, uint64, error) {
	cut, err := l.Bus.LaneBefore(ctx, l.Partition, at.Add(-l.Margin))
	if err != nil {
		return nil, 0, err
	}
	r := &Range{After: min(cut, f.end), UpTo: f.known}
	if f.last.lane > 0 {
		r.After = min(r.After, f.last.lane-1)
	}
	if f.doubt != nil {
		r.After, r.UpTo = min(r.After, f.doubt.After), max(r.UpTo, f.doubt.UpTo)
	}
	l.Faults.Error("the lane has lost its end (a power cut without fsync, or older files): what is sent now is told from what was handled by the receipts", strconv.Itoa(l.Partition),
		slices.Concat(l.Process, []any{"partition", l.Partition, "ends_at", f.end, "handled_up_to", r.UpTo, "in_doubt_after", r.After})...)
	if err := r.learn(ctx, l); err != nil {
		return nil, 0, err
	}
	if err := l.Bus.MovePosition(ctx, l.Partition, positionAfter, r.After); err != nil {
		return nil, 0, err
	}
	if err := l.Bus.MovePosition(ctx, l.Partition, positionUpTo, r.UpTo); err != nil {
		return nil, 0, err
	}
	if err := l.Bus.FillLane(ctx, l.Partition, r.UpTo, r.names()); err != nil {
		return nil, 0, err
	}
	if err := l.extend(ctx, r); err != nil {
		return nil, 0, err
	}
	for _, name := range []string{misroute.Position, model.AheadPosition, PositionLane} { // the latter last: it is what ends the doubt
		if err := l.moveBack(ctx, name, r.After); err != nil {
			return nil, 0, err
		}
	}
	return r, min(f.from, r.After), nil
}

// extend puts in doubt what has come since the lane was cut off, too: an event that was handled may have been sent again
// before its name was taken.
func (l *Lane) extend(ctx context.Context, r *Range) error {
	end, err := l.Bus.LaneEnd(ctx, l.Partition)
	if err != nil || end <= r.UpTo {
		return err
	}
	r.UpTo = end
	return l.Bus.MovePosition(ctx, l.Partition, positionUpTo, end)
}

// moveBack moves a saved position back to a sequence, if it is beyond that.
func (l *Lane) moveBack(ctx context.Context, name string, seq uint64) error {
	at, err := l.Bus.LoadPosition(ctx, l.Partition, name)
	if err != nil || at <= seq {
		return err
	}
	return l.Bus.MovePosition(ctx, l.Partition, name, seq)
}

// names are the events that have a receipt, by their sequences. The lane may not know their ids
// any more.
func (r *Range) names() []model.Message {
	var list []model.Message
	for e, lane := range r.answered { // any order: sorted below
		list = append(list, model.Message{Space: e.space, Stream: e.stream, ID: e.id, Seq: lane})
	}
	slices.SortFunc(list, func(a, b model.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

func (r *Range) learnIfAny(ctx context.Context, l *Lane) error {
	if r == nil {
		return nil
	}
	return r.learn(ctx, l)
}

// learn reads the receipts of the range off the log, back to where it cannot have any more of
// them: nothing is handled before it is stored.
func (r *Range) learn(ctx context.Context, l *Lane) error {
	var since time.Time
	if m, there, err := l.Bus.LaneEvent(ctx, l.Partition, r.After); err != nil {
		return err
	} else if there {
		since = m.Stored.Add(-l.Margin)
	}
	for n := tailLook; ; n *= 4 {
		tail, err := l.Bus.LogTail(ctx, l.Partition, n)
		if err != nil {
			return err
		}
		state, err := l.Bus.LogState(ctx, l.Partition, 0)
		if err != nil {
			return err
		}
		if len(tail) > 0 && tail[0].Seq > state.First && !tail[0].Stored.Before(since) {
			continue // it may go further back
		}
		r.answered, r.read = map[name]uint64{}, 0
		if len(tail) > 0 {
			r.read = tail[len(tail)-1].Seq
		}
		for _, rc := range receiptsOf(tail) {
			if r.Covers(rc.lane) {
				r.answered[rc.event] = rc.lane
			}
		}
		return nil
	}
}

// Mend returns a cursor of a space, whose log was read up to a sequence, that has set the events
// aside, for them to be handled, that it has passed over and that have no receipt: another event
// stood at their sequence when it did.
func (r *Range) Mend(ctx context.Context, bus Bus, space string, c model.Cursor, seq uint64) (model.Cursor, error) {
	if r == nil || c.Floor <= r.After {
		return c, nil
	}
	since, err := answeredSince(ctx, bus, space, r.read, seq)
	if err != nil {
		return c, err
	}
	upTo := min(c.Floor, r.UpTo)
	for after := r.After; after < upTo; {
		events, err := bus.ReadLane(ctx, space, after, readPage)
		if err != nil {
			return c, fmt.Errorf("read lane after %d: %w", after, err)
		}
		for i := range events {
			if after = events[i].Seq; after <= upTo && !r.Handled(&events[i]) && !since[nameOf(&events[i])] {
				c = withHeld(c, after)
			}
		}
		if len(events) < readPage {
			break
		}
	}
	return c, nil
}

// answeredSince are the events of a space that have a receipt behind a log sequence, up to another
// one that is known to be there. A replica that is behind is asked again.
func answeredSince(ctx context.Context, bus Bus, space string, behind, upTo uint64) (map[name]bool, error) {
	answered := map[name]bool{}
	for dry := 0; behind < upTo; dry++ {
		_ = pause.For(ctx, pause.Backoff(dry))
		entries, err := bus.ReadLog(ctx, space, behind, readPage)
		if err != nil {
			return nil, fmt.Errorf("read log after %d: %w", behind, err)
		}
		for _, r := range receiptsOf(entries) {
			answered[r.event] = true
		}
		if n := len(entries); n > 0 {
			dry, behind = -1, entries[n-1].Seq
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
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
