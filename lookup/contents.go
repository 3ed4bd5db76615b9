package lookup

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Contents is what a space holds, as its log has it. Seq is 0 if the space has no log.
type Contents struct {
	*replica.Replica
	// Derived are documents that are known to be derived, sorted: what their nodes have read is
	// saved. Others may be derived, too.
	Derived []string
}

// ReadContents reads a whole space, up to the head of its log at least. It needs no worker and
// creates no demand, so derived documents are as they were when they were last needed.
func ReadContents(ctx context.Context, bus Bus, space string) (*Contents, error) {
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

// derived are the documents of nodes that are named like what they derive.
func derived(st model.SpaceState) (docs []string) {
	for i := range st.Observations {
		if doc, ok := model.DerivedDocument(&st.Observations[i]); ok {
			docs = append(docs, doc)
		}
	}
	slices.Sort(docs)
	return docs
}

// ReadWaiting reads what waits for its time in a space, the first to come due first: timers,
// events that were sent with a time, and jobs. Those that no worker has taken out of the lane yet
// have no Slot. It reports whether there is such a space at all.
func ReadWaiting(ctx context.Context, bus Bus, space string) (all []model.Waiting, exists bool, err error) {
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

// early are the events with a time that stand in a lane and are not done with. left says that
// anything is there that is not.
func early(ctx context.Context, bus Bus, space string, done model.Cursor) (all []model.Waiting, left bool, err error) {
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
				payload, _ := model.ParseValue(m.Payload) // its owner refuses what is no JSON
				all = append(all, model.Waiting{ID: m.ID, Stream: m.Stream, Payload: payload, NotBefore: m.NotBefore, Lane: m.Seq, Seq: m.Seq})
			}
		}
		if len(page) < readPage {
			return all, left, nil
		}
	}
}

// readSpace is a space as its checkpoint and the log behind it have it, up to head at least,
// which is of an epoch of the store.
func readSpace(ctx context.Context, bus Bus, space string, head, epoch uint64) (st model.SpaceState, r *replica.Replica, err error) {
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
			_ = pause.For(ctx, pause.Backoff(dry)) // a replica that is behind
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
