package settle

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// ErrCancelPending reports that an event has been marked as cancelled but has not ended yet: no
// handling of it takes effect any more, and it ends as cancelled when it is next in its space's
// lane.
var ErrCancelPending = errors.New("the cancellation is in the log, and the event will end as cancelled when its space reaches it: earlier events are not handled yet, its handler has not returned, or no worker runs its space")

// Cancel cancels an event that is queued, waits for a time, or is parked, and returns its receipt.
// The log of its space decides between cancellation and handling: the outcome is model.Cancelled if
// the cancellation came first, else the outcome of the handling. Cancel waits for an event that is
// not in its space yet because the commit that sends it is still being released. The error is
// ErrCancelPending if ctx ends before the event has. A timer that its space cancels has no receipt, and
// Cancel returns an error that reports that.
//
// Events in deployments of package ordered cannot be cancelled.
//
// It needs a worker's permissions on the bus, and workers of a version that supports it: older ones
// handle the event nevertheless.
func (c *Client) Cancel(ctx context.Context, of history.EventRef, why string) (*model.Receipt, error) {
	if err := (awaited{of.Space, receipts.Key{Stream: of.Stream, ID: of.Event}}).check(); err != nil {
		return nil, err
	}
	if err := checkReason(why); err != nil {
		return nil, err
	}
	if err := c.hasDocuments(ctx); err != nil {
		return nil, err
	}
	root, err := c.open(ctx, of)
	switch {
	case err != nil:
		return nil, err
	case root.State.Ended():
		return c.receiptOf(ctx, of, root)
	}
	a, err := c.attachToCancel(ctx, of)
	if err != nil {
		return nil, err
	}
	rc, err := c.cancel(ctx, a, of, why)
	return rc, errors.Join(err, closeCanceller(ctx, a))
}

func (c *Client) attachToCancel(ctx context.Context, of history.EventRef) (*worker.Attachment, error) {
	return c.Space(of.Space).Attach(ctx, AttachConfig{ID: c.canceller(of, time.Now())})
}

func closeCanceller(ctx context.Context, a *worker.Attachment) error {
	closing, end := context.WithTimeout(context.WithoutCancel(ctx), readGrace)
	defer end()
	return a.Close(closing)
}

func checkReason(why string) error {
	if len(why) > model.MaxReasonLen {
		return fmt.Errorf("the reason has %d bytes; up to %d are kept", len(why), model.MaxReasonLen)
	}
	return nil
}

// canceller names the attachment that cancels an event: names are unique among concurrent
// attachments and, in a simulation with virtual time, reproducible.
func (c *Client) canceller(of history.EventRef, now time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", c.id, of.Space, of.Stream, of.Event, now.UnixNano()))
	return "cancel-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10])
}

// hasDocuments fails for a deployment of package ordered, which has no document for the mark.
func (c *Client) hasDocuments(ctx context.Context) error {
	if err := c.deployed(ctx); err != nil {
		return err
	}
	follow, done := context.WithCancel(ctx)
	defer done()
	id := ""
	err := c.bus.FollowMembers(follow, func(m model.Member) {
		if m.Role == model.RoleOrdered && !m.Left {
			id = m.ID
		}
	}, done)
	switch {
	case ctx.Err() != nil || !errors.Is(err, context.Canceled): // FollowMembers always ends with an error
		return fmt.Errorf("find out what serves the spaces: %w", errors.Join(ctx.Err(), err))
	case id != "":
		return fmt.Errorf("server %s of package ordered serves spaces here, which have no documents: their events cannot be cancelled", id)
	}
	return nil
}

// open waits until an event is in its space, and returns its tree node.
func (c *Client) open(ctx context.Context, of history.EventRef) (*history.TreeNode, error) {
	for {
		t, err := c.Tree(ctx, history.TreeQuery{Space: of.Space, Stream: of.Stream, Event: of.Event, MaxEvents: 1})
		switch {
		case err != nil:
			return nil, err
		case t.Root.State != lineage.Parked:
			return t.Root, nil
		}
		if err := pause.For(ctx, parkedPause); err != nil {
			return nil, stillParked(ctx, of)
		}
	}
}

// parkedPause is the interval at which a parked event is checked.
const parkedPause = 50 * time.Millisecond

// receiptOf returns the receipt of an event that has ended. If the log had one when it was read,
// receiptOf waits for it, since another read may return an older state of the log.
func (c *Client) receiptOf(ctx context.Context, of history.EventRef, root *history.TreeNode) (*model.Receipt, error) {
	switch {
	case root.Commit > 0:
		return c.Space(of.Space).Await(ctx, of.Stream, ID(of.Event))
	case root.State == lineage.Forgotten:
		return nil, fmt.Errorf("event %s of space %s has ended: %w", of.Event, of.Space, history.ErrForgotten)
	case root.State == lineage.Dropped:
		return nil, fmt.Errorf("event %s of space %s was never sent: %s", of.Event, of.Space, root.Error)
	}
	return nil, timerGone(of)
}

// errTimerGone reports a timer that its space has cancelled.
var errTimerGone = errors.New("has ended without a receipt: it was a timer that was cancelled")

func timerGone(of history.EventRef) error {
	return fmt.Errorf("event %s of space %s %w", of.Event, of.Space, errTimerGone)
}

// cancel marks an event and waits for its end.
func (c *Client) cancel(ctx context.Context, a *worker.Attachment, of history.EventRef, why string) (*model.Receipt, error) {
	if err := c.mark(ctx, a, of, why); err != nil {
		return nil, err
	}
	return c.conclude(ctx, a, of)
}

// conclude waits for the end of an event that is marked, and deletes the mark if the handling was first, or the
// space has cancelled the timer that the event was.
func (c *Client) conclude(ctx context.Context, a *worker.Attachment, of history.EventRef) (*model.Receipt, error) {
	rc, err := c.awaitMarked(ctx, of)
	gone := errors.Is(err, errTimerGone)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, pendingCancel(of)
	case err != nil && !gone || err == nil && rc.Outcome == model.Cancelled:
		return rc, err
	}
	key := space.CancelKey(of.Stream, of.Event)
	return rc, errors.Join(err, a.Transact(ctx, "cancel", func(tx *Tx) error {
		if !tx.Get(space.CancelDoc, key).IsAbsent() {
			tx.Delete(space.CancelDoc, key)
		}
		return nil
	}))
}

// awaitMarked waits for the receipt of an event that is marked. The error is errTimerGone for a timer that its space has
// cancelled: that has no receipt, so awaitMarked looks for it from time to time.
func (c *Client) awaitMarked(ctx context.Context, of history.EventRef) (*model.Receipt, error) {
	if _, minted := model.OriginOf(of.Event); !minted { // no timer
		return c.Space(of.Space).Await(ctx, of.Stream, ID(of.Event))
	}
	for wait := minLook; ; wait = min(2*wait, maxLook) {
		round, end := context.WithTimeout(ctx, wait)
		rc, err := c.Space(of.Space).Await(round, of.Stream, ID(of.Event))
		over := round.Err() != nil && ctx.Err() == nil
		end()
		if err == nil || !over {
			return rc, err
		}
		t, err := c.Tree(ctx, history.TreeQuery{Space: of.Space, Stream: of.Stream, Event: of.Event, MaxEvents: 1})
		if err == nil && t.Root.State == lineage.Cancelled && t.Root.Commit == 0 {
			return nil, timerGone(of)
		}
	}
}

// minLook and maxLook bound the pauses of awaitMarked.
const (
	minLook = 200 * time.Millisecond
	maxLook = 10 * time.Second
)

// mark writes into the log that an event is cancelled. An event that has begun to wait for its time
// meanwhile is marked once more with its slot, so that it ends without waiting any longer.
func (c *Client) mark(ctx context.Context, a *worker.Attachment, of history.EventRef, why string) error {
	for marked := false; ; marked = true {
		var slot uint64
		w, err := history.FindWaiting(ctx, c.bus, of.Space, of.Stream, of.Event)
		if err != nil {
			return err
		}
		if w != nil {
			slot = w.Slot
		}
		if marked && slot == 0 {
			return nil
		}
		err = a.Transact(ctx, "cancel", func(tx *Tx) error {
			tx.Set(space.CancelDoc, space.CancelMark(why, slot), space.CancelKey(of.Stream, of.Event))
			return nil
		})
		if err != nil || marked || slot > 0 {
			return err
		}
	}
}
