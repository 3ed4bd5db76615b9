package worker

import (
	"context"
	"errors"

	"github.com/settlehq/settle/model"
)

// foreign is a host's subscription to the log of its space while several runtimes append to
// it: the host is attached itself, or other runtimes are. An owner with nothing to append would not
// notice their commits. Without a subscription, a host learns of other runtimes' commits when its own is
// refused, which suffices while there is one runtime per space.
//
// It avoids conflicts and decides nothing: a host that learns of a commit late is refused.
type foreign struct {
	// attached counts the runtimes that hold a lease without a document.
	attached int
	cancel   context.CancelFunc
	// heard passes entries to the loop, which takes them when it has nothing in
	// flight. The log reader waits meanwhile.
	heard chan model.LogEntry
}

// attend records that another runtime has attached to the space, or has detached.
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

// followLog subscribes to the log of the space.
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
					h.inbox.rouse()
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

// passOver continues behind commits that were purged before they were read, if the core
// knows them by now. If it does not, it can never learn their contents, and the host ends:
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

// takeForeign makes the core integrate the commits of other runtimes, unless it has an append
// in flight: that one either came first, or will be refused.
func (h *host) takeForeign() {
	if len(h.foreign.heard) == 0 || !h.core.Settled() {
		return
	}
	var entries []model.LogEntry
	for range len(h.foreign.heard) {
		entries = append(entries, <-h.foreign.heard) // the loop is the only receiver
	}
	if err := h.core.Integrate(entries...); err != nil {
		h.fail("integrate the commits of other runtimes", err)
	}
}

// overtaken reads the commits that the host has missed: the bucket holds a state that is ahead of the host,
// so another runtime has committed. A host with something to append learns of it by a refusal; one
// without would retry its save without end, and hold the lane position back.
func (h *host) overtaken() {
	after := h.core.Seq()
	h.env.tasks.Go(func() { // ends with the read
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, after, readPage)
		h.call(func() {
			if err != nil {
				h.report("read log", err)
			}
			for _, e := range entries {
				if !h.core.Settled() {
					return // the append in flight will be refused
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
