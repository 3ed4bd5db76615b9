// Package truncation recovers a lane that has lost its tail while the logs have kept theirs.
//
// After a power failure, each stream contains what was written through of it. A truncated lane
// assigns sequences again that spaces have already used for other events, so their cursors would skip
// the new events. It has also lost the ids of the old events, so it would accept a duplicate of one.
//
// A worker that begins to serve a partition compares the newest receipt in the log with the event at
// its sequence in the lane. If that event is missing or is another one, a range of sequences is in
// doubt: from the earliest possible point of truncation to the highest sequence that any space may
// know. The lane is then filled up to the end of the range, with placeholders that occupy the ids of
// the lost events. Within the range, receipts decide which events are handled, and cursors do not,
// until the saved position is beyond it.
//
// A lane that is empty, or for which no receipt is known, is refused with a *model.LossError until
// an operator accepts the loss.
package truncation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// PositionLane is the name of the saved position up to which all events of a lane are done. The other
// two positions are the bounds of the range in doubt.
const (
	PositionLane  = "lane"
	positionAfter = "doubt-after"
	positionUpTo  = "doubt-up-to"
)

// Bus is the part of port.Bus that this package uses.
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
	StaleWindow() time.Duration
}

// Margin is the tolerated difference between the clocks of servers, because the point of truncation
// is found by the times of events and commits. Receipts must be kept for longer than that.
const Margin = 10 * time.Second

const (
	// tailLength is the number of last commits of a log whose receipts are compared with the lane.
	// If a range is in doubt, the log is read back to it.
	tailLength = 256
	// moreReceipts is the number of receipts that are compared when the newest one is inconclusive.
	moreReceipts = 32
	// readPage is the number of events or entries per read.
	readPage = 512
)

// Range is the lane sequences in doubt: those after After, up to and including UpTo. A nil Range is empty.
type Range struct {
	After, UpTo uint64
	// handled are the events with a receipt that names a sequence of the range, with that sequence.
	// They were read from the log up to sequence read.
	handled map[eventKey]uint64
	read    uint64
}

// eventKey identifies an event.
type eventKey struct{ space, stream, id string }

func keyOf(m *model.Message) eventKey { return eventKey{m.Space, m.Stream, m.ID} }

// Covers reports whether a sequence is in doubt.
func (r *Range) Covers(seq uint64) bool { return r != nil && seq > r.After && seq <= r.UpTo }

// Handled reports whether an event in doubt has a receipt.
func (r *Range) Handled(m *model.Message) bool {
	_, handled := r.handled[keyOf(m)]
	return handled
}

// receipt is the part of a receipt that is compared with the lane.
type receipt struct {
	event  eventKey
	lane   uint64
	stored time.Time // when the commit was stored
}

// receiptsOf returns the receipts in log entries for events that came through the lane.
func receiptsOf(entries []model.LogEntry) (found []receipt) {
	for i := range entries {
		e := &entries[i]
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			continue // the space itself refuses such a commit
		}
		for j := range c.Txs {
			tx := &c.Txs[j]
			stream, ok := receipts.Stream(tx.By)
			if ok && tx.Receipt != nil && tx.Receipt.Lane > 0 {
				found = append(found, receipt{eventKey{e.Space, stream, tx.Receipt.Event}, tx.Receipt.Lane, e.Stored})
			}
		}
	}
	return found
}

// Lane examines and repairs the lane of a partition, on behalf of the worker that serves it.
type Lane struct {
	Bus       Bus
	Partition int
	// Margin is the constant Margin, or less where receipts are purged earlier. Retry is the delay
	// before a lane that lacks events is examined again: a deposed leader may have answered.
	Margin, Retry time.Duration
	Faults        *faultlog.Log
	Process       []any // log attributes that identify the process
}

// Compare compares the lane with the receipts and saved positions. Given the position up to which all
// events are done, it returns the range in doubt, nil if there is none, and the position to read from.
// It repairs a truncated lane. After an error, the lane must not be used.
func (l *Lane) Compare(ctx context.Context, from uint64) (*Range, uint64, error) {
	for began := time.Now(); ; {
		f, err := l.inspect(ctx, from)
		switch {
		case err != nil:
			return nil, 0, err
		case !f.truncated:
			return f.inDoubt, from, f.inDoubt.readReceiptsIfAny(ctx, l)
		case time.Since(began) < l.Bus.StaleWindow():
		case f.end == 0 || f.last.lane == 0:
			return nil, 0, &model.LossError{Kind: model.LossOfLane, Partition: l.Partition, Known: f.known, Found: f.end}
		default:
			return l.markInDoubt(ctx, &f, f.last.stored)
		}
		if err := pause.For(ctx, l.Retry); err != nil {
			return nil, 0, err
		}
	}
}

// Lost returns the loss for which the lane is refused, nil if it is usable.
func (l *Lane) Lost(ctx context.Context) (*model.LossError, error) {
	f, err := l.inspectFromSaved(ctx)
	if err != nil || !f.truncated || f.end > 0 && f.last.lane > 0 {
		return nil, err
	}
	return &model.LossError{Kind: model.LossOfLane, Partition: l.Partition, Known: f.known, Found: f.end}, nil
}

// Evidence is a sequence that a lane is known to have reached by a point in time. An event of the lane
// that is not above Seq and was stored before Stored is still the original one.
type Evidence struct {
	Seq    uint64
	Stored time.Time
}

// Accept repairs a lane that ends before the known sequences; known are additional ones. Events without
// a receipt will be handled, unless they were in the lane before the evidence was stored.
func (l *Lane) Accept(ctx context.Context, known ...Evidence) error {
	f, err := l.inspectFromSaved(ctx)
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
		if e.Seq > f.end { // otherwise it may be about events that were sent since
			f.truncated, f.known = true, max(f.known, e.Seq)
			// Both times are from the same servers, hence no margin. An event of that very time was there.
			at = latest(at, e.Stored.Add(l.Margin+1))
		}
	}
	if !f.truncated {
		return nil
	}
	if m, there, err := l.Bus.LaneEvent(ctx, l.Partition, f.last.lane); err != nil {
		return err
	} else if there && keyOf(&m) == f.last.event {
		f.last = receipt{} // the event is in place: the receipt does not show the point of truncation
	}
	_, _, err = l.markInDoubt(ctx, &f, at)
	return err
}

// ahead returns the evidence of the position that blocked spaces do not hold back.
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

func (l *Lane) inspectFromSaved(ctx context.Context) (findings, error) {
	from, err := l.Bus.LoadPosition(ctx, l.Partition, PositionLane)
	if err != nil {
		return findings{}, err
	}
	return l.inspect(ctx, from)
}

// findings are the result of examining a lane.
type findings struct {
	from, end, known uint64
	last             receipt   // the receipt with the highest lane sequence, zero if there is none
	below            []receipt // the next lower ones, in descending order
	inDoubt          *Range
	truncated        bool
}

func (l *Lane) inspect(ctx context.Context, from uint64) (f findings, err error) {
	tail, err := l.Bus.LogTail(ctx, l.Partition, tailLength)
	if err != nil {
		return f, err
	}
	f.from = from
	f.end, err = l.Bus.LaneEnd(ctx, l.Partition) // after LogTail: another worker may serve the partition, too
	if err != nil {
		return f, err
	}
	if f.inDoubt, err = l.load(ctx, from); err != nil {
		return f, err
	}
	if known := receiptsOf(tail); len(known) > 0 {
		slices.SortFunc(known, func(a, b receipt) int { return cmp.Compare(b.lane, a.lane) })
		f.last, f.below = known[0], known[1:min(len(known), moreReceipts)]
	}
	ahead, err := l.Bus.LoadPosition(ctx, l.Partition, model.AheadPosition)
	if err != nil {
		return f, err
	}
	f.known = max(f.last.lane, from, ahead)
	f.truncated, err = l.isTruncated(ctx, &f)
	return f, err
}

// load returns the saved range in doubt, nil if there is none or if all of it is done.
func (l *Lane) load(ctx context.Context, from uint64) (*Range, error) {
	upTo, err := l.Bus.LoadPosition(ctx, l.Partition, positionUpTo)
	if err != nil || upTo <= from {
		return nil, err
	}
	after, err := l.Bus.LoadPosition(ctx, l.Partition, positionAfter)
	return &Range{After: after, UpTo: upTo}, err
}

// isTruncated reports whether the lane lacks events that it is known to have contained.
func (l *Lane) isTruncated(ctx context.Context, f *findings) (bool, error) {
	if f.last.lane == 0 || f.end >= f.known && f.inDoubt.Covers(f.last.lane) {
		return f.end < f.known, nil
	}
	m, there, err := l.Bus.LaneEvent(ctx, l.Partition, f.last.lane)
	end := f.end
	if there && end < f.known { // a deposed leader reported the end, or the truncation was further on
		end = max(end, f.last.lane)
	}
	switch {
	case err != nil:
		return false, err
	case end < f.known || there && keyOf(&m) != f.last.event:
		return true, nil
	case there && m.Stored.After(f.last.stored):
		return l.isDisplaced(ctx, f.below)
	}
	return false, nil
}

// isDisplaced reports whether a receipt names another event for its sequence than the lane contains.
// It decides when an event appears to be stored after it was handled: either the event was sent again
// and got the same sequence by chance, or the clock of another server is behind.
func (l *Lane) isDisplaced(ctx context.Context, receipts []receipt) (bool, error) {
	for _, r := range receipts {
		m, there, err := l.Bus.LaneEvent(ctx, l.Partition, r.lane)
		if err != nil || there && keyOf(&m) != r.event {
			return err == nil, err
		}
	}
	return false, nil
}

// markInDoubt saves the range in doubt, joined with an earlier one, and fills the lane up to its end. Events
// that were stored before at, less the margin, are not in doubt. It can be repeated if the process
// ends half way through.
func (l *Lane) markInDoubt(ctx context.Context, f *findings, at time.Time) (*Range, uint64, error) {
	cut, err := l.Bus.LaneBefore(ctx, l.Partition, at.Add(-l.Margin))
	if err != nil {
		return nil, 0, err
	}
	r := &Range{After: min(cut, f.end), UpTo: f.known}
	if f.last.lane > 0 {
		r.After = min(r.After, f.last.lane-1)
	}
	if f.inDoubt != nil {
		r.After, r.UpTo = min(r.After, f.inDoubt.After), max(r.UpTo, f.inDoubt.UpTo)
	}
	l.Faults.Error("the lane has lost its tail (a power failure without fsync, or older files): receipts decide which events are handled", strconv.Itoa(l.Partition),
		slices.Concat(l.Process, []any{"partition", l.Partition, "ends_at", f.end, "handled_up_to", r.UpTo, "in_doubt_after", r.After})...)
	if err := r.readReceipts(ctx, l); err != nil {
		return nil, 0, err
	}
	if err := l.Bus.MovePosition(ctx, l.Partition, positionAfter, r.After); err != nil {
		return nil, 0, err
	}
	if err := l.Bus.MovePosition(ctx, l.Partition, positionUpTo, r.UpTo); err != nil {
		return nil, 0, err
	}
	if err := l.Bus.FillLane(ctx, l.Partition, r.UpTo, r.occupied()); err != nil {
		return nil, 0, err
	}
	if err := l.extend(ctx, r); err != nil {
		return nil, 0, err
	}
	for _, name := range []string{misroute.Position, model.AheadPosition, PositionLane} { // PositionLane comes last: the range ends with it
		if err := l.moveBack(ctx, name, r.After); err != nil {
			return nil, 0, err
		}
	}
	return r, min(f.from, r.After), nil
}

// extend adds the events to the range that were sent since the truncation: one of them may be a duplicate of a
// handled event, sent before its id was occupied.
func (l *Lane) extend(ctx context.Context, r *Range) error {
	end, err := l.Bus.LaneEnd(ctx, l.Partition)
	if err != nil || end <= r.UpTo {
		return err
	}
	r.UpTo = end
	return l.Bus.MovePosition(ctx, l.Partition, positionUpTo, end)
}

// moveBack moves a saved position back to seq if it is beyond.
func (l *Lane) moveBack(ctx context.Context, name string, seq uint64) error {
	at, err := l.Bus.LoadPosition(ctx, l.Partition, name)
	if err != nil || at <= seq {
		return err
	}
	return l.Bus.MovePosition(ctx, l.Partition, name, seq)
}

// occupied returns the events with a receipt, by sequence, whose ids the lane must not accept again.
func (r *Range) occupied() []model.Message {
	var list []model.Message
	for e, lane := range r.handled { // any order: sorted below
		list = append(list, model.Message{Space: e.space, Stream: e.stream, ID: e.id, Seq: lane})
	}
	slices.SortFunc(list, func(a, b model.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

func (r *Range) readReceiptsIfAny(ctx context.Context, l *Lane) error {
	if r == nil {
		return nil
	}
	return r.readReceipts(ctx, l)
}

// readReceipts reads the receipts of the range from the log, back to the time at which the first event
// of the range was stored: no event is handled before that.
func (r *Range) readReceipts(ctx context.Context, l *Lane) error {
	var since time.Time
	if m, there, err := l.Bus.LaneEvent(ctx, l.Partition, r.After); err != nil {
		return err
	} else if there {
		since = m.Stored.Add(-l.Margin)
	}
	for n := tailLength; ; n *= 4 {
		tail, err := l.Bus.LogTail(ctx, l.Partition, n)
		if err != nil {
			return err
		}
		state, err := l.Bus.LogState(ctx, l.Partition, 0)
		if err != nil {
			return err
		}
		if len(tail) > 0 && tail[0].Seq > state.First && !tail[0].Stored.Before(since) {
			continue // older entries may have receipts of the range, too
		}
		r.handled, r.read = map[eventKey]uint64{}, 0
		if len(tail) > 0 {
			r.read = tail[len(tail)-1].Seq
		}
		for _, rc := range receiptsOf(tail) {
			if r.Covers(rc.lane) {
				r.handled[rc.event] = rc.lane
			}
		}
		return nil
	}
}

// Reopen returns the cursor c of a space with those events set aside, for them to be handled, that it has
// passed and that have no receipt: the cursor had passed another event with their sequence. The
// receipts of the space were read up to log sequence seq.
func (r *Range) Reopen(ctx context.Context, bus Bus, space string, c model.Cursor, seq uint64) (model.Cursor, error) {
	if r == nil || c.Floor <= r.After {
		return c, nil
	}
	since, err := handledSince(ctx, bus, space, r.read, seq)
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
			if after = events[i].Seq; after <= upTo && !r.Handled(&events[i]) && !since[keyOf(&events[i])] {
				c = withHeld(c, after)
			}
		}
		if len(events) < readPage {
			break
		}
	}
	return c, nil
}

// handledSince returns the events of a space with a receipt after one log sequence and up to another,
// which is known to exist. It retries when a server replica is behind.
func handledSince(ctx context.Context, bus Bus, space string, behind, upTo uint64) (map[eventKey]bool, error) {
	handled := map[eventKey]bool{}
	for dry := 0; behind < upTo; dry++ {
		_ = pause.For(ctx, pause.Backoff(dry))
		entries, err := bus.ReadLog(ctx, space, behind, readPage)
		if err != nil {
			return nil, fmt.Errorf("read log after %d: %w", behind, err)
		}
		for _, r := range receiptsOf(entries) {
			handled[r.event] = true
		}
		if n := len(entries); n > 0 {
			dry, behind = -1, entries[n-1].Seq
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return handled, nil
}

// withHeld returns the cursor with one more event set aside.
func withHeld(c model.Cursor, seq uint64) model.Cursor {
	at, there := slices.BinarySearch(c.Held, seq)
	if !there {
		c.Held = slices.Insert(slices.Clone(c.Held), at, seq)
	}
	return c
}
