package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Contents is the state of a space according to its log. Seq is 0 if the space has no log.
type Contents struct {
	*replica.Replica
	// Derived are documents known to be derived, sorted: those whose nodes have saved observations. Other
	// documents may be derived as well.
	Derived []string
}

// ReadContents reads a whole space, at least up to the present head of its log. It needs no worker and
// creates no demand, so derived documents may be out of date.
func ReadContents(ctx context.Context, bus port.Client, space string) (*Contents, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	c := &Contents{}
	epoch := bus.Epoch()
	head, err := bus.Head(ctx, space)
	if err == nil {
		err = OverGaps(ctx, space, func() error {
			st, r, err := readSpace(ctx, bus, space, head, epoch)
			c.Replica, c.Derived = r, derived(st)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read space %s: %w", space, err)
	}
	return c, nil
}

// derived returns the documents of nodes that have the name of the document that they derive.
func derived(st model.SpaceState) (docs []string) {
	for i := range st.Observations {
		if doc, ok := model.DerivedDocument(&st.Observations[i]); ok {
			docs = append(docs, doc)
		}
	}
	slices.Sort(docs)
	return docs
}

// ReadWaiting returns the events of a space that wait for their time, the next one first: timers, events that
// were sent with a time, and cron jobs. Events that no worker has taken out of the lane yet have no Slot.
// ReadWaiting also reports whether the space exists at all.
func ReadWaiting(ctx context.Context, bus port.Client, space string) (all []model.Waiting, exists bool, err error) {
	c, err := ReadContents(ctx, bus, space)
	if err != nil {
		return nil, false, err
	}
	c.Later.Each(func(w *model.Waiting) { all = append(all, *w) })
	more, left, err := early(ctx, bus, space, c.Cursor)
	if err != nil {
		return nil, false, fmt.Errorf("read the lane of space %s: %w", space, err)
	}
	all = append(all, more...)
	slices.SortFunc(all, func(a, b model.Waiting) int {
		switch {
		case a.Before(&b):
			return -1
		case b.Before(&a):
			return 1
		}
		return 0
	})
	return all, left || c.Seq > 0, nil
}

// early returns the lane's events with a time that are not done. left reports whether the lane has any event
// that is not done.
func early(ctx context.Context, bus port.Client, space string, done model.Cursor) (all []model.Waiting, left bool, err error) {
	after := done.Floor
	if len(done.Held) > 0 {
		after = done.Held[0] - 1
	}
	for {
		page, err := bus.ReadLane(ctx, space, after, readPage)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			m := &page[i]
			after = m.Seq
			if m.Seq <= done.Floor && !slices.Contains(done.Held, m.Seq) {
				continue
			}
			left = true
			if m.NotBefore > 0 && m.Invalid == "" {
				payload, _ := model.ParseValue(m.Payload) // the owner refuses an event whose payload is not JSON
				all = append(all, model.Waiting{ID: m.ID, Stream: m.Stream, Payload: payload, NotBefore: m.NotBefore, Lane: m.Seq, Seq: m.Seq})
			}
		}
		if len(page) < readPage {
			return all, left, nil
		}
	}
}

// readSpace reads a space from its checkpoint and the log after it, at least up to head, which is a sequence
// in the given epoch of the store.
func readSpace(ctx context.Context, bus port.Client, space string, head, epoch uint64) (st model.SpaceState, r *replica.Replica, err error) {
	if st, err = bus.LoadState(ctx, space); err != nil {
		return st, nil, err
	}
	if r, err = replica.Load(space, st); err != nil {
		return st, nil, err
	}
	for dry := 0; ; {
		before := r.Seq
		err := Replay(ctx, bus, r)
		switch {
		case err != nil:
			return st, nil, err
		case r.Seq >= head:
			return st, r, nil
		case r.Seq == before:
			dry++
			_ = pause.For(ctx, pause.Backoff(dry)) // a replica that lags
		default:
			dry = 0
		}
		switch {
		case ctx.Err() != nil:
			return st, nil, ctx.Err()
		case bus.Epoch() != epoch:
			return st, nil, model.ErrRewound
		}
	}
}
