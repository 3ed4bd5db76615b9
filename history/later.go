package history

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// The receipt of an event that waited for its time (docs/adr/0018) is far after the commit with which it
// began to wait, and neither the lane nor its id leads there. The saved state of the space does: while the
// event is in its slot, nothing up to the mark has ended it; when the slot is empty, the commit as of which
// the slot is saved has ended it. Only if another event has the slot by now, the log is scanned.

// waits returns the slot in which an event waits from this commit on, 0 if it does not wait.
func (e *logged) waits(key receipts.Key) uint64 {
	for i := range e.c.Txs {
		tx := &e.c.Txs[i]
		if w := tx.Later; w != nil && w.ID == key.ID && w.Stream == key.Stream {
			return w.Slot
		}
		for j := range tx.Sends {
			if s := &tx.Sends[j]; s.Slot > 0 && s.ID == key.ID && s.Stream == key.Stream {
				return s.Slot
			}
		}
	}
	return 0
}

// waited finds the handling of an event that waits in a slot from the commit at a sequence on. It reads the
// mark first, so that the slot's content is not older.
func (l *logReader) waited(since, slot uint64, key receipts.Key) (*Handling, error) {
	mark, err := l.bus.LoadItem(l.ctx, l.space, "")
	if err != nil {
		return nil, err
	}
	item, err := l.bus.LoadItem(l.ctx, l.space, model.StateKeyOfSlot(slot))
	if err != nil {
		return nil, err
	}
	if w, err := model.DecodeWaiting(item.Data); err == nil && w.ID == key.ID {
		return l.scan(max(since-1, min(mark.Seq, l.head)), key)
	}
	if item.Data == nil && item.Seq > since && item.Seq <= l.head {
		e, err := l.entry(item.Seq)
		if err != nil {
			return nil, err
		}
		if h := e.handling(l.space, key); h != nil {
			return h, nil
		}
	}
	return l.scan(since-1, key)
}

// waitedLong finds the handling of a lane event that may have waited for so long that the log no longer has
// the commit with which it began to wait. A waiting event is never forgotten.
func waitedLong(ctx context.Context, bus port.Client, space string, key receipts.Key, seen uint64) (*Handling, error) {
	var r *replica.Replica
	err := OverGaps(ctx, space, func() (err error) {
		_, r, err = readSpace(ctx, bus, space, 0, bus.Epoch())
		return err
	})
	if err != nil {
		return nil, err
	}
	behind, waits := uint64(0), false
	r.Later.Each(func(w *model.Waiting) {
		if w.ID == key.ID && w.Stream == key.Stream {
			behind, waits = r.Seq, true
		}
	})
	l, err := readLogOf(ctx, bus, space, max(seen, r.Seq))
	if err != nil {
		return nil, err
	}
	h, err := l.scan(behind, key)
	if err == nil && h == nil && !waits {
		err = ErrForgotten
	}
	return h, err
}

// FindWaiting finds an event that waits for its time in a space, as the log has it now; nil if none with that name does: it is
// queued, has ended, was cancelled, or was never sent.
func FindWaiting(ctx context.Context, bus port.Client, space, stream, id string) (*model.Waiting, error) {
	if err := checkEvent(space, receipts.Key{Stream: stream, ID: id}); err != nil {
		return nil, err
	}
	epoch := bus.Epoch()
	head, err := bus.Head(ctx, space) // the leader's: a replica that lags does not have the event yet
	if err != nil {
		return nil, fmt.Errorf("find event %s to %s/%s among those that wait: %w", id, space, stream, err)
	}
	w, _, err := findWaiting(ctx, bus, space, stream, id, reaches(bus, epoch, head))
	return w, err
}

// findWaiting is FindWaiting, with the log sequence up to which the space was read: at least up to head.
func findWaiting(ctx context.Context, bus port.Client, space, stream, id string, head uint64) (w *model.Waiting, upTo uint64, err error) {
	key := receipts.Key{Stream: stream, ID: id}
	if err := checkEvent(space, key); err != nil {
		return nil, 0, err
	}
	err = OverGaps(ctx, space, func() error {
		_, r, err := readSpace(ctx, bus, space, head, bus.Epoch())
		if err != nil {
			return err
		}
		w, upTo = nil, r.Seq
		r.Later.Each(func(one *model.Waiting) {
			if one.ID == id && one.Stream == stream {
				w = one
			}
		})
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("find event %s to %s/%s among those that wait: %w", id, space, stream, err)
	}
	return w, upTo, nil
}
