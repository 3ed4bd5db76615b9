package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// ReadTree returns the tree of an event. The error is a *MissingError or an *AmbiguousError if the query
// matches no event or several, or a read error. The tree is read while the system runs, so a node may be
// older than its children.
func ReadTree(ctx context.Context, bus port.Client, q TreeQuery) (*Tree, error) {
	w, err := newWalk(bus, q)
	if err != nil {
		return nil, err
	}
	root, err := w.root(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := w.grow(ctx, root); err != nil {
		return nil, fmt.Errorf("follow event %s: %w", q.Event, err)
	}
	t := &Tree{Root: root.TreeNode}
	if t.CausedBy, err = causes(ctx, w.bus, root.TreeNode); err != nil {
		return nil, fmt.Errorf("what caused event %s: %w", q.Event, err)
	}
	t.count()
	return t, nil
}

// walk is one tree being built.
type walk struct {
	bus      port.Client
	epoch    uint64 // of the store when it began
	maxDepth int
	left     int // how many more events the tree may have
}

func newWalk(bus port.Client, q TreeQuery) (*walk, error) {
	w := &walk{bus: shareLogs(bus), epoch: bus.Epoch(), maxDepth: q.MaxDepth, left: q.MaxEvents}
	if w.left <= 0 {
		w.left = DefaultEvents
	}
	if w.maxDepth <= 0 {
		w.maxDepth = DefaultDepth
	}
	w.left-- // the root
	return w, errors.Join(check(q.Space, model.CheckName, "space"), check(q.Stream, model.CheckName, "stream"), model.CheckAnyEventID(q.Event))
}

func check(name string, valid func(what, name string) error, what string) error {
	if name == "" {
		return nil
	}
	return valid(what, name)
}

// branch is a node whose children are still to be added.
type branch struct {
	*TreeNode
	handling *Handling
	depth    int
}

// readers is the number of concurrent lookups.
const readers = 16

// grow adds the events that a branch caused, level by level, so that the bound on events cuts those far from
// the root.
func (w *walk) grow(ctx context.Context, root *branch) error {
	for tier := []*branch{root}; len(tier) > 0; {
		for _, b := range tier {
			if err := w.expand(ctx, b); err != nil {
				return err
			}
		}
		next, err := w.lookUp(ctx, tier)
		if err != nil {
			return err
		}
		tier = next
	}
	return nil
}

// lookUp looks up the state of all children of a level.
func (w *walk) lookUp(ctx context.Context, tier []*branch) ([]*branch, error) {
	var next []*branch
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for _, b := range tier {
		for _, n := range b.Caused {
			child := &branch{TreeNode: n, depth: b.depth + 1}
			next = append(next, child)
			g.Go(func() error { return w.look(ctx, child, b.handling) })
		}
	}
	return next, g.Wait()
}

// expand adds the children of a branch as far as the bounds allow.
func (w *walk) expand(ctx context.Context, b *branch) error {
	children := caused(b.TreeNode, b.handling)
	if next := (EventRef{b.Space, b.Stream, model.RedriveID(b.Event)}); b.State == lineage.Failed || b.State == lineage.Refused {
		_, there, err := w.bus.FindEvent(ctx, next.Space, next.Stream, next.Event)
		if err != nil && !errors.Is(err, model.ErrNoStream) { // then its children are shown without that
			return err
		}
		if there {
			children = append(children, &TreeNode{EventRef: next, Kind: KindRedrive})
		}
	}
	n := min(len(children), w.left)
	if b.depth >= w.maxDepth {
		n = 0
	}
	w.left -= n
	b.Caused, b.More = children[:n:n], len(children)-n
	return nil
}

// caused returns the events that follow from the end of an event, in the order in which they were
// sent.
func caused(n *TreeNode, h *Handling) []*TreeNode {
	if h == nil {
		return nil
	}
	var list []*TreeNode
	for i := range h.Tx.Sends {
		s := &h.Tx.Sends[i]
		n := &TreeNode{EventRef: EventRef{s.To, s.Stream, s.ID}, Position: s.Position, waits: h.since(s)}
		if s.NotBefore > 0 {
			n.Until = time.UnixMilli(s.NotBefore).UTC()
		}
		list = append(list, n)
	}
	if origin := NoticeTo(h.Tx.Receipt); origin != "" {
		list = append(list, &TreeNode{EventRef: EventRef{origin, model.Undelivered, model.NoticeID(n.Event)}, Kind: KindNotice})
	}
	return list
}

// since returns the sequence of the commit if a send of it waits in its space since then, else 0.
func (h *Handling) since(s *model.Send) uint64 {
	if s.Slot == 0 {
		return 0
	}
	return h.Seq
}

// reaches returns a sequence that the log of a space had reached in an epoch of the store, 0 if it may not reach there any
// more.
func reaches(bus port.Client, epoch, seq uint64) uint64 {
	if bus.Epoch() != epoch {
		return 0
	}
	return seq
}

// look determines the state of the event of a branch. sender is the handling that sent it.
func (w *walk) look(ctx context.Context, b *branch, sender *Handling) error {
	return b.unread(w.read(ctx, b, sender))
}

// unread records that the state of the event of a branch cannot be read, if err is that a stream is missing.
func (b *branch) unread(err error) error {
	if !errors.Is(err, model.ErrNoStream) {
		return err
	}
	b.State, b.Error = lineage.Unknown, innermost(err, model.ErrNoStream)
	return nil
}

// innermost returns the text of the error in a chain that wraps cause directly: it names the stream, and the
// outer texts name only the search.
func innermost(err, cause error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || inner == cause { //nolint:errorlint // it is the chain that is gone through
			return err.Error()
		}
		err = inner
	}
}

func (w *walk) read(ctx context.Context, b *branch, sender *Handling) error {
	if sender != nil && b.Kind == KindSent && b.Space == sender.Space {
		if b.waits > 0 {
			return w.lookAmongWaiting(ctx, b)
		}
		h, err := FindSent(ctx, w.bus, sender, &model.Send{ID: b.Event, To: b.Space, Stream: b.Stream})
		return b.ended(h, err)
	}
	return w.lookInLane(ctx, b, sender)
}

// lookInLane is look for an event that passes through a lane. sender is nil if it is not known.
func (w *walk) lookInLane(ctx context.Context, b *branch, sender *Handling) error {
	m, there, err := w.bus.FindEvent(ctx, b.Space, b.Stream, b.Event)
	if err != nil {
		return err
	}
	if !there {
		b.State = lineage.Parked
		if sender != nil {
			return b.recordForgotten(passed(ctx, w.bus, b.EventRef, sender.Space, b.Position, sender.Stored))
		}
		return nil
	}
	b.Lane, b.Position, b.Sent = m.Seq, m.Position, m.Stored
	if m.NotBefore > 0 {
		b.Until = time.UnixMilli(m.NotBefore).UTC()
		return w.lookAmongWaiting(ctx, b)
	}
	h, err := w.receipt(ctx, b, &m)
	return b.ended(h, err)
}

// receipt finds the handling of an event that was found in its lane.
func (w *walk) receipt(ctx context.Context, b *branch, m *model.Message) (*Handling, error) {
	key := receipts.Key{Stream: b.Stream, ID: b.Event}
	if err := checkEvent(b.Space, key); err != nil {
		return nil, err
	}
	h, err := findLane(ctx, w.bus, b.Space, key, m, 0)
	if err != nil {
		return nil, fmt.Errorf("find the receipt of event %s to %s/%s: %w", b.Event, b.Space, b.Stream, err)
	}
	return h, nil
}

// lookAmongWaiting is look for an event with a time. An event that waited in its space from the start, and
// neither waits nor has a receipt, is a timer that was cancelled. A replica that is behind the commit that sent it does not
// show that.
func (w *walk) lookAmongWaiting(ctx context.Context, b *branch) error {
	waiting, seen, err := findWaiting(ctx, w.bus, b.Space, b.Stream, b.Event, reaches(w.bus, w.epoch, b.waits))
	if err != nil {
		return err
	}
	if waiting != nil {
		b.State, b.Until = lineage.Waiting, time.UnixMilli(waiting.NotBefore).UTC()
		return nil
	}
	h, err := FindReceiptUpTo(ctx, w.bus, b.Space, b.Stream, b.Event, seen) // what ended it may be the last commit
	if err == nil && h == nil && b.waits > 0 {
		b.State = lineage.Cancelled
		return nil
	}
	return b.ended(h, err)
}

// recordForgotten records whether the event of a branch, which is not in its lane, was there before.
func (b *branch) recordForgotten(was bool, err error) error {
	if was {
		b.State, b.Error = lineage.Forgotten, ErrForgotten.Error()
	}
	return err
}

// ended records how the event of a branch has ended, if it has.
func (b *branch) ended(h *Handling, err error) error {
	switch {
	case errors.Is(err, ErrForgotten):
		b.State, b.Error = lineage.Forgotten, ErrForgotten.Error()
	case err != nil:
		return err
	case h == nil:
		b.State = lineage.Queued
	default:
		b.handling = h
		rc := h.Tx.Receipt
		b.State, b.Error, b.Result, b.Attempts = stateOf(h), receipts.Reason(rc), rc.Result, rc.Attempts
		b.Lane, b.Position = rc.Lane, rc.Pos
		b.Commit, b.Runtime, b.Tx, b.Ended = h.Seq, h.Runtime, h.ID.String(), h.Stored
		if b.Stream == "" {
			b.Stream, _ = receipts.Stream(h.Tx.By)
		}
	}
	return nil
}

// refOf returns the event of a handling.
func refOf(h *Handling) *EventRef {
	stream, _ := receipts.Stream(h.Tx.By)
	return &EventRef{h.Space, stream, h.Tx.Receipt.Event}
}
