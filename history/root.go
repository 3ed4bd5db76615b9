package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// root finds the event of a query: in a lane or, if it is not there yet or never will be, in the commit that
// sent it.
func (w *walk) root(ctx context.Context, q TreeQuery) (*branch, error) {
	found, partial := w.bus.FindEvents(ctx, q.Space, q.Event)
	if partial != nil && !errors.Is(partial, model.ErrNoStream) {
		return nil, partial
	}
	found = slices.DeleteFunc(found, func(m model.Message) bool { return q.Stream != "" && m.Stream != q.Stream })
	switch len(found) {
	case 0:
		b, err := w.sentRoot(ctx, q)
		if _, missing := errors.AsType[*MissingError](err); missing && partial != nil {
			return nil, fmt.Errorf("event %s is in no lane that can be read: %w", q.Event, partial)
		}
		return b, err
	case 1:
		b := &branch{TreeNode: &TreeNode{EventRef: EventRef{found[0].Space, found[0].Stream, q.Event}}}
		return b, b.unread(w.lookInLane(ctx, b, nil))
	}
	several := &AmbiguousError{Event: q.Event}
	for i := range found {
		several.Found = append(several.Found, EventRef{found[i].Space, found[i].Stream, q.Event})
	}
	return nil, several
}

// sentRoot is root for an event that is in no lane: a follow-up, or a parked one.
func (w *walk) sentRoot(ctx context.Context, q TreeQuery) (*branch, error) {
	sent, err := FindOrigin(ctx, w.bus, q.Event)
	b := &branch{TreeNode: &TreeNode{EventRef: EventRef{q.Space, q.Stream, q.Event}}}
	switch {
	case errors.Is(err, ErrNeverSent):
		b.State, b.Error = lineage.Dropped, ErrNeverSent.Error()
		return b, nil
	case errors.Is(err, ErrForgotten) && q.Space != "" && q.Stream != "":
		return b, w.longSent(ctx, b)
	case errors.Is(err, ErrForgotten):
		b.State, b.Error = lineage.Forgotten, originForgotten
		return b, nil
	case err != nil:
		return nil, err
	case sent == nil, q.Space != "" && q.Space != sent.Send.To, q.Stream != "" && q.Stream != sent.Send.Stream:
		_, minted := model.OriginOf(q.Event)
		return nil, &MissingError{Space: q.Space, Stream: q.Stream, Event: q.Event, Minted: minted}
	}
	s := &sent.Send
	b.EventRef, b.Position, b.waits = EventRef{s.To, s.Stream, s.ID}, s.Position, sent.Origin.since(s)
	if s.NotBefore > 0 {
		b.Until = time.UnixMilli(s.NotBefore).UTC()
	}
	return b, w.look(ctx, b, &sent.Origin)
}

// longSent determines the state of an event whose origin is purged: it may be a timer that still waits in its space.
func (w *walk) longSent(ctx context.Context, b *branch) error {
	waiting, _, err := findWaiting(ctx, w.bus, b.Space, b.Stream, b.Event, 0)
	switch {
	case errors.Is(err, model.ErrNoStream):
		return b.unread(err)
	case err != nil:
		return err
	case waiting != nil:
		b.State, b.Until = lineage.Waiting, time.UnixMilli(waiting.NotBefore).UTC()
		return nil
	}
	b.State, b.Error = lineage.Forgotten, originForgotten
	return nil
}

const originForgotten = "the log does not reach back to the transaction that sent it"

// maxCauses bounds how far back the causes of an event are searched.
const maxCauses = 50

// causes returns the events that led to one, the nearest first, as far as existing streams show them.
func causes(ctx context.Context, bus port.Client, n *TreeNode) ([]EventRef, error) {
	var list []EventRef
	for r := n.EventRef; len(list) < maxCauses; list = append(list, r) {
		next, err := causeOf(ctx, bus, r)
		if errors.Is(err, model.ErrNoStream) {
			return list, nil
		}
		if err != nil || next == nil {
			return list, err
		}
		r = *next
	}
	return list, nil
}

// causeOf returns the event that caused one, nil if it came from outside or its cause is no longer known.
func causeOf(ctx context.Context, bus port.Client, r EventRef) (*EventRef, error) {
	if of, ok := model.RedriveOf(r.Event); ok {
		return &EventRef{r.Space, r.Stream, of}, nil
	}
	if of, ok := strings.CutSuffix(r.Event, ":"+model.Undelivered); ok {
		sent, err := origin(ctx, bus, of)
		if err != nil || sent == nil {
			return nil, err
		}
		return &EventRef{sent.Send.To, sent.Send.Stream, of}, nil
	}
	sent, err := origin(ctx, bus, r.Event)
	if err != nil || sent == nil || sent.Origin.Tx.Receipt == nil {
		return nil, err
	}
	return refOf(&sent.Origin), nil
}

// origin is FindOrigin with one result for all kinds of absence.
func origin(ctx context.Context, bus port.Client, id string) (*Sent, error) {
	sent, err := FindOrigin(ctx, bus, id)
	if errors.Is(err, ErrNeverSent) || errors.Is(err, ErrForgotten) {
		return nil, nil
	}
	return sent, err
}
