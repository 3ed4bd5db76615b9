package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/worker"
)

// Cancellation is the result for one event that CancelAll was to cancel.
type Cancellation struct {
	Event history.EventRef
	// Receipt is that of the event: its outcome is model.Cancelled, or that of its handling if that came first. It is
	// nil with an error.
	Receipt *model.Receipt
	// Err is ErrCancelPending, wrapped, for an event that is marked and had not ended when ctx ended.
	Err error
}

// CancelAll cancels several events, as Cancel does with one. It marks all of them before it waits for
// the receipt of any, so no event of them is handled while the call waits for another one. It returns the
// result for each, in the order of events. An event that has ended before, or cannot be marked, does not
// keep the others from being cancelled.
//
// The error is one that concerns all events; nothing is marked then.
func (c *Client) CancelAll(ctx context.Context, events []history.EventRef, why string) ([]Cancellation, error) {
	for _, of := range events {
		if err := (awaited{of.Space, receipts.Key{Stream: of.Stream, ID: of.Event}}).check(); err != nil {
			return nil, err
		}
	}
	if err := checkReason(why); err != nil {
		return nil, err
	}
	if err := c.hasDocuments(ctx); err != nil {
		return nil, err
	}
	b := cancelBatch{c: c, why: why, all: make([]Cancellation, len(events)), attached: map[string]*worker.Attachment{}, marked: map[string][]int{}}
	for i, of := range events {
		b.all[i].Event = of
	}
	b.markAll(ctx)
	b.concludeAll(ctx)
	for _, a := range b.attached { // any order: each is of another space
		// what a mark is worth does not depend on how its attachment ends
		if err := closeCanceller(ctx, a); err != nil {
			c.logger.Warn("close an attachment that has cancelled events", "error", err)
		}
	}
	return b.all, nil
}

// cancelBatch are the events of one CancelAll.
type cancelBatch struct {
	c        *Client
	why      string
	all      []Cancellation
	attached map[string]*worker.Attachment // by space
	marked   map[string][]int              // by space: which of all are marked
}

// markAll marks every event that has not ended. Parked events are marked when a coordinator has released
// them, after the others.
func (b *cancelBatch) markAll(ctx context.Context) {
	todo := make([]int, len(b.all))
	for i := range todo {
		todo[i] = i
	}
	for round := 0; ; round++ {
		var parked []int
		for _, i := range todo {
			if b.markOne(ctx, i, round > 0) {
				parked = append(parked, i)
			}
		}
		if len(parked) == 0 {
			return
		}
		if todo = parked; pause.For(ctx, parkedPause) != nil {
			for _, i := range todo {
				b.all[i].Err = stillParked(ctx, b.all[i].Event)
			}
			return
		}
	}
}

// markOne marks an event, and reports whether it is parked instead; wasParked tells that it was when it was last
// looked up.
func (b *cancelBatch) markOne(ctx context.Context, i int, wasParked bool) (parked bool) {
	r := &b.all[i]
	of := r.Event
	t, err := b.c.Tree(ctx, history.TreeQuery{Space: of.Space, Stream: of.Stream, Event: of.Event, MaxEvents: 1})
	switch {
	case err != nil && wasParked && ctx.Err() != nil:
		r.Err = stillParked(ctx, of)
		return false
	case err != nil:
		r.Err = err
		return false
	case t.Root.State == lineage.Parked:
		return true
	case t.Root.State.Ended():
		r.Receipt, r.Err = b.c.receiptOf(ctx, of, t.Root)
		return false
	}
	a := b.attached[of.Space]
	if a == nil {
		if a, r.Err = b.c.attachToCancel(ctx, of); r.Err != nil {
			return false
		}
		b.attached[of.Space] = a
	}
	if r.Err = b.c.mark(ctx, a, of, b.why); r.Err == nil {
		b.marked[of.Space] = append(b.marked[of.Space], i)
	}
	return false
}

// concludeAll waits for the marked events. Spaces do not wait for each other; an event behind one that
// does not end in time is looked at once more, as it may have ended.
func (b *cancelBatch) concludeAll(ctx context.Context) {
	var spaces sync.WaitGroup
	for space, marked := range b.marked { // any order: each by itself
		spaces.Go(func() {
			a := b.attached[space]
			for _, i := range marked {
				if r := &b.all[i]; ctx.Err() == nil {
					r.Receipt, r.Err = b.c.conclude(ctx, a, r.Event)
				} else {
					r.Err = pendingCancel(r.Event)
				}
			}
		})
	}
	spaces.Wait()
	last, end := context.WithTimeout(context.WithoutCancel(ctx), readGrace)
	defer end()
	for i := range b.all {
		r := &b.all[i]
		if !errors.Is(r.Err, ErrCancelPending) || last.Err() != nil {
			continue
		}
		t, err := b.c.Tree(last, history.TreeQuery{Space: r.Event.Space, Stream: r.Event.Stream, Event: r.Event.Event, MaxEvents: 1})
		if err != nil || !t.Root.State.Ended() {
			continue
		}
		if rc, err := b.c.conclude(last, b.attached[r.Event.Space], r.Event); err == nil {
			r.Receipt, r.Err = rc, nil
		}
	}
}

func pendingCancel(of history.EventRef) error {
	return fmt.Errorf("event %s of space %s: %w", of.Event, of.Space, ErrCancelPending)
}

func stillParked(ctx context.Context, of history.EventRef) error {
	return fmt.Errorf("event %s of space %s is parked, and no coordinator has released it: %w", of.Event, of.Space, context.Cause(ctx))
}
