package worker

import (
	"context"
	"errors"

	"github.com/settlehq/settle/model"
)

// foreign is what a host hears of the log of its space while several runtimes append to
// it: it is attached itself, or others are. An owner that has nothing to append would not
// notice what they commit. Without it, a host learns of foreign commits when its own is
// refused, which is enough where there is one runtime per space.
//
// It spares conflicts and decides nothing: who hears late of a commit is refused.
type foreign struct {
	// attached counts the runtimes that hold a lease without a document.
	attached int
	cancel   context.CancelFunc
	// heard passes entries to the loop, which takes them when nothing of its own is
	// under way. Whoever reads the log waits meanwhile.
	heard chan model.LogEntry
}

// attend takes in that another runtime is attached to the space, or is not any more.
func (h *host) attend(on bool) {
	f := &h.foreign
	switch {
	case on:
		if f.attached++; f.attached == 1 {
			h.followLog()
		}
	case f.attached > 0:
		if f.attached--; f.attached == 0 {
			f.cancel()
			f.heard = nil
		}
	}
}

// followLog begins to follow the log of the space.
func (h *host) followLog() {
	ctx, cancel := context.WithCancel(h.ctx)
	heard := make(chan model.LogEntry, readPage)
	h.foreign.cancel, h.foreign.heard = cancel, heard
	after := h.core.Seq()
	h.env.tasks.Go(func() { // ends with ctx
		retry(ctx, h.env.cfg, "follow the log of a space", h.space, []any{"space", h.space}, func(ctx context.Context) error {
			err := h.env.bus.FollowSpace(ctx, h.space, after, func(e model.LogEntry) {
				h.cancelMarked(e)
				select {
				case heard <- e:
					after = e.Seq
					h.rouse()
				case <-ctx.Done():
				}
			})
			if errors.Is(err, model.ErrRewound) {
				h.fail("follow the log", err)
			}
			if errors.Is(err, model.ErrPurged) {
				after = h.passOver(ctx, after, err)
			}
			return err
		})
	})
}

// passOver goes on behind commits that were purged before they were heard of, if the core
// knows them by now. If it does not, it can never learn what they were, and the host ends:
// its successor loads the space from the checkpoint that covers them.
func (h *host) passOver(ctx context.Context, after uint64, gap error) uint64 {
	at := make(chan uint64, 1)
	h.call(func() {
		if h.core.Seq() <= after {
			h.fail("follow the log", gap)
		}
		at <- h.core.Seq()
	})
	select {
	case seq := <-at:
		return max(after, seq)
	case <-ctx.Done():
		return after
	}
}

// takeForeign has the core integrate what others have committed, unless something of
// its own is under way: that was first, or will be refused.
func (h *host) takeForeign() {
	if len(h.foreign.heard) == 0 || !h.core.Settled() {
		return
	}
	var entries []model.LogEntry
	for range len(h.foreign.heard) {
		entries = append(entries, <-h.foreign.heard) // nobody else takes them
	}
	if err := h.core.Integrate(entries...); err != nil {
		h.fail("integrate the commits of other runtimes", err)
	}
}

// overtaken reads what the host has missed: the bucket holds a state that is ahead of it,
// so another runtime has committed. Who has something to append is refused and learns of
// it that way; who has not would try to save for ever, and hold the lane position back.
func (h *host) overtaken() {
	after := h.core.Seq()
	h.env.tasks.Go(func() { // ends when the read is answered
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, after, readPage)
		h.call(func() {
			if err != nil {
				h.report("read log", err)
			}
			for _, e := range entries {
				if !h.core.Settled() {
					return // what is under way will be refused
				}
				if err := h.core.Integrate(e); err != nil {
					h.fail("integrate the commit of another runtime", err)
					return
				}
			}
			if len(entries) == readPage {
				h.overtaken() // there may be more
			}
		})
	})
}
