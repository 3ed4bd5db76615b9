package host

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// append sends a commit to the log. The result arrives through the inbox.
func (h *host) append(a *ledger.Append) {
	h.appends.inFlight = true
	if h.unborn.Load() {
		h.confirmUnstored(a)
		return
	}
	if h.env.home != nil {
		h.env.home.appended(len(a.Data))
	}
	if h.start.joins && h.leavesToDo(a.Commit) != 0 {
		h.announce(a)
		return
	}
	h.send(a)
}

func (h *host) send(a *ledger.Append) {
	trace, end := model.Trace{}, func(uint64, error) {}
	if h.graph != nil {
		trace, end = h.graph.core.BeginCommit(a.Commit, h.traced.entering(h.started))
		h.traced.commit = trace
	}
	h.gauge.sends(len(a.Data))
	h.env.bus.Append(model.Append{
		Space: h.space, ID: a.Commit.ID() + "/" + h.appends.nonce, Expect: a.Expect, Data: a.Data, Inert: a.Commit.IsInert(), Trace: trace,
	}, func(seq uint64, err error) {
		end(seq, err)
		h.call(func() { h.appended(a.Commit, seq, err) })
	})
}

func (h *host) appended(c *model.Commit, seq uint64, err error) {
	h.appends.inFlight = false
	switch {
	case err == nil:
		if h.env.counters.committed(c) {
			h.handled.Store(true)
		}
		h.gauge.committed(c, h.env.clock, h.traced.commit)
		h.traced.entered(h.started, nil)
		h.graph.confirmed(c)
		if err = h.core.Confirm(seq); c.Join && err == nil {
			close(h.entered)
		}
	case errors.Is(err, model.ErrRefused):
		h.env.counters.refused.Add(1)
		h.gauge.refused()
		h.graph.refused()
		h.core.Refuse()
		err = h.catchUp()
	}
	if err != nil {
		h.fail("append commit", err)
	}
}

// announce saves a wake-up time for the events that a commit of an attached runtime will leave waiting, or as
// follow-ups, and then sends the commit. Once the commit is in the log, no runtime may be left to save the
// time, and no event of the lane leads to the space.
//
// The time also covers events that already wait, because the item replaces an earlier one.
func (h *host) announce(a *ledger.Append) {
	at := h.leavesToDo(a.Commit)
	if next := h.core.NextDue(); next != 0 {
		at = min(at, next)
	}
	if h.core.FollowsUp() {
		at = atOnce
	}
	h.env.tasks.Go(func() { // ends when the item is saved, or with the host
		for dry := 0; ; dry++ {
			_ = pause.For(h.ctx, pause.Backoff(dry))
			_, err := h.saver.saveEarlier(h.ctx, at, a.Expect+1)
			if err == nil {
				h.call(func() { h.send(a) })
				return
			}
			if h.ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
				return
			}
			if !allAre(err, model.ErrOutdated) {
				h.report("save when the space is due", err)
			}
		}
	})
}

// leavesToDo returns the function leavesToDo of a commit, including the tasks that the commit may start.
func (h *host) leavesToDo(c *model.Commit) int64 {
	if h.graph.startsTasks(c) {
		return atOnce
	}
	return leavesToDo(c)
}

// catchUp integrates the commits of other runtimes since the head that a refused append expected. There is at
// least one, so a read that finds none came from a lagging replica and is repeated.
func (h *host) catchUp() error {
	integrated, dry := 0, 0
	for h.ctx.Err() == nil {
		_ = pause.For(h.ctx, pause.Backoff(dry))
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, h.core.Seq(), readPage)
		if err != nil && h.asksAgain("read the log", err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read log after %d: %w", h.core.Seq(), err)
		}
		if err := h.integrator().Integrate(entries...); err != nil {
			return err
		}
		if integrated += len(entries); integrated > 0 && len(entries) < readPage {
			break
		}
		if dry++; len(entries) > 0 {
			dry = 0
		}
		if dry > dryReads {
			if err := h.checkHead(h.core.Seq()); err != nil {
				return err
			}
		}
	}
	h.core.Resume()
	if !h.core.Owned() && !h.core.Deposed() && !h.draining {
		h.enter() // the refused commit was the takeover or the join
	}
	return h.ctx.Err()
}

// checkHead returns an error for a log that ends before its known position. Since a lagging replica may have
// answered, and an attached host has no worker that would retry, it asks several times before it reports a
// loss.
func (h *host) checkHead(known uint64) error {
	head, err := h.env.bus.Head(h.ctx, h.space)
	for low := 0; ; {
		switch {
		case err != nil && h.core != nil && h.asksAgain("read the head of the log", err):
		case err == nil && head < known && h.start.joins && low < dryReads:
			low++
			_ = pause.For(h.ctx, askPause)
		default:
			return h.judgeHead(head, known, err)
		}
		head, err = h.env.bus.Head(h.ctx, h.space)
	}
}

// judgeHead returns an error if the head could not be read, or is before its known position.
func (h *host) judgeHead(head, known uint64, err error) error {
	if err != nil {
		return fmt.Errorf("read the head: %w", err)
	}
	if head < known {
		return &model.LossError{Kind: model.LossOfLog, Partition: model.PartitionOf(h.space, h.env.bus.Partitions()), Space: h.space, Known: known, Found: head}
	}
	return nil
}

// asksAgain reports whether to repeat a failed read of the store after a pause. A worker reloads a space
// whose host has ended because of it; an attached host has no worker to do so.
func (h *host) asksAgain(what string, err error) bool {
	if !h.start.joins || h.ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
		return false
	}
	h.report(what, err)
	_ = pause.For(h.ctx, askPause)
	return true
}

// dryReads is how many empty reads a reader that expects an entry accepts before it asks the leader whether
// the log still reaches that far.
const dryReads = 5

// enter requests the takeover or the join of the space.
func (h *host) enter() {
	h.core.TermAt(h.env.clock.Millis())
	if h.start.joins {
		h.core.Attach()
	} else {
		h.core.TakeOver()
	}
}
