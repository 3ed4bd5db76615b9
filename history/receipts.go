package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// Handling describes how an event ended: the transaction that handled it, with the receipt and its sends, and
// its place in the log.
type Handling struct {
	Space string
	// Seq is the log sequence of the commit that contains the transaction, Stored is when it was stored, by
	// the server's clock, and Runtime is the runtime that made it.
	Seq     uint64
	Stored  time.Time
	Runtime string
	ID      model.TxID
	// Tx is the transaction; its Receipt is never nil.
	Tx model.Tx
}

// Stream returns the stream of the event.
func (h *Handling) Stream() string {
	stream, _ := receipts.Stream(h.Tx.By)
	return stream
}

// ErrForgotten reports that an event is older than the horizon: it is no longer known whether and how it was
// handled.
var ErrForgotten = errors.New("longer ago than the log remembers")

// FindReceipt finds the handling of an event, nil if there is none so far: it waits, was never sent, or was
// handled longer ago than its lane remembers. The error is ErrForgotten if the last is certain.
//
// The log is the index: every commit contains the lane cursor, which only grows, so the commit that handled
// the event at a lane sequence is found by bisection, in about log2 of the log's length reads. A follow-up,
// which a space sent to itself, has no lane sequence; the numbers in its id lead to the commit of the
// transaction that sent it, and its handling is in that commit or a later one.
func FindReceipt(ctx context.Context, bus port.Client, space, stream, id string) (*Handling, error) {
	return FindReceiptUpTo(ctx, bus, space, stream, id, 0)
}

// FindReceiptUpTo is FindReceipt for a caller that has seen the log up to a sequence: a deposed leader that
// does not know that yet may be behind, and is asked again.
func FindReceiptUpTo(ctx context.Context, bus port.Client, space, stream, id string, seen uint64) (*Handling, error) {
	key := receipts.Key{Stream: stream, ID: id}
	h, err := find(ctx, bus, space, key, seen)
	if err != nil {
		return nil, fmt.Errorf("find the receipt of event %s to %s/%s: %w", id, space, stream, err)
	}
	return h, nil
}

func find(ctx context.Context, bus port.Client, space string, key receipts.Key, seen uint64) (*Handling, error) {
	if err := checkEvent(space, key); err != nil {
		return nil, err
	}
	if tx, ok := model.OriginOf(key.ID); ok && tx.Space == space {
		l, err := readLogOf(ctx, bus, space, seen)
		if err != nil {
			return nil, err
		}
		return l.followUp(tx, key)
	}
	ev, sent, err := bus.FindEvent(ctx, space, key.Stream, key.ID)
	if err != nil {
		return nil, err
	}
	if !sent {
		return nil, purged(key.ID, bus.Horizon())
	}
	return findLane(ctx, bus, space, key, &ev, seen)
}

// findLane is find for an event that was found in the lane.
func findLane(ctx context.Context, bus port.Client, space string, key receipts.Key, ev *model.Message, seen uint64) (*Handling, error) {
	l, err := readLogOf(ctx, bus, space, seen)
	if err != nil {
		return nil, err
	}
	h, err := l.laneEvent(ev, key)
	if errors.Is(err, ErrForgotten) && ev.NotBefore != 0 {
		return waitedLong(ctx, bus, space, key, seen)
	}
	return h, err
}

// purged returns ErrForgotten for an event that is not in the lane if the time in its id is longer ago than
// the lane remembers. For ids without a time that is unknown.
func purged(id string, horizon time.Duration) error {
	made, timed := model.TimeOfEventID(id)
	if timed && time.Since(made) > horizon {
		return ErrForgotten
	}
	return nil
}

func checkEvent(space string, key receipts.Key) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	if err := model.CheckName("stream", key.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(key.ID)
}

// FindSent finds the handling of an event that a handled one sent, nil if there is none so far.
func FindSent(ctx context.Context, bus port.Client, origin *Handling, s *model.Send) (*Handling, error) {
	if s.To != origin.Space {
		return FindReceipt(ctx, bus, s.To, s.Stream, s.ID)
	}
	h, err := findBehind(ctx, bus, s.To, origin.Seq, receipts.Key{Stream: s.Stream, ID: s.ID})
	if err != nil {
		return nil, fmt.Errorf("find the receipt of event %s to %s/%s: %w", s.ID, s.To, s.Stream, err)
	}
	return h, nil
}

// findBehind finds a handling in the commit at a sequence or a later one.
func findBehind(ctx context.Context, bus port.Client, space string, seq uint64, key receipts.Key) (*Handling, error) {
	l, err := readLogOf(ctx, bus, space, seq)
	if err != nil {
		return nil, err
	}
	return l.scan(seq-1, key)
}

// laneEvent finds the handling of a lane event. In a lane that has lost its end, another event had the same
// sequence before, and a cursor passed it in a commit that is older than the event. The event's own receipt
// may be in any later commit: it may have been handled at another sequence, or after the loss was detected.
func (l *logReader) laneEvent(ev *model.Message, key receipts.Key) (*Handling, error) {
	at, _, err := l.bisect(0, func(e *logged) (verdict, error) {
		done := e.c.Cursor.Floor >= ev.Seq && !slices.Contains(e.c.Cursor.Held, ev.Seq)
		return beforeOrAfter(!done), nil
	})
	if err != nil || at == nil {
		return nil, err
	}
	h, err := l.passed(at, key)
	if errors.Is(err, ErrForgotten) && at.stored.Before(ev.Stored) {
		return l.scan(at.seq-1, key)
	}
	return h, err
}

// passed finds the handling of a lane event in the first commit whose cursor has passed it without setting it
// aside.
func (l *logReader) passed(at *logged, key receipts.Key) (*Handling, error) {
	h := at.handling(l.space, key)
	if h == nil {
		if slot := at.waits(key); slot > 0 {
			return l.waited(at.seq, slot, key)
		}
		// Every event that a cursor passes has its receipt in the same commit. But the log may begin after
		// that commit, and a release that is repeated after the first was purged from the lane is skipped by
		// its position.
		return nil, ErrForgotten
	}
	return h, nil
}

// followUp finds the handling of an event that transaction tx sent to its own space.
func (l *logReader) followUp(tx model.TxID, key receipts.Key) (*Handling, error) {
	if tx.Epoch == 0 || tx.Epoch > l.head {
		return nil, nil
	}
	at, preceded, err := l.origin(tx)
	switch {
	case err != nil:
		return nil, err
	case at != nil && at.waits(key) > 0:
		return l.waited(at.seq, at.waits(key), key)
	case at != nil && at.sends(key):
		return l.scan(at.seq-1, key)
	case preceded:
		return nil, nil // the log has that part, but not the transaction: it was undone, or is yet to be appended
	}
	first, err := l.entry(tx.Epoch)
	if err == nil && first.seq != tx.Epoch {
		err = ErrForgotten // the log begins after it
	}
	return nil, err
}

// origin returns the commit that contains transaction tx, or the first commit at which the log would have it;
// nil if there is none. preceded reports whether the log has an earlier commit of that epoch.
//
// Commits of one epoch are in the order of their transactions. While several runtimes take part, commits of
// other epochs may be between them. Those decide something only if the owner that made tx was deposed by
// then; otherwise they are skipped one by one.
func (l *logReader) origin(tx model.TxID) (at *logged, preceded bool, err error) {
	owned, err := l.owned(tx.Epoch)
	if err != nil {
		return nil, false, err
	}
	at, before, err := l.bisect(tx.Epoch, func(e *logged) (verdict, error) {
		switch {
		case e.c.Epoch == tx.Epoch && len(e.c.Txs) > 0:
			return beforeOrAfter(e.c.Txs[len(e.c.Txs)-1].N < tx.N), nil
		case !owned || e.c.Epoch == tx.Epoch:
			return unknown, nil
		case e.c.Takeover:
			return after, nil
		}
		deposed, err := l.owned(e.c.Epoch)
		if err == nil && deposed && e.c.Epoch > tx.Epoch {
			return after, nil
		}
		return unknown, err
	})
	if err != nil || before == 0 {
		return at, false, err
	}
	preceded, err = l.holds(before)
	return at, preceded, err
}
