package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// directs are the transactions of the application that hosts the space. Each is made
// again when another runtime's commit has undone it, until it is in the log or the
// conflict window has passed. They belong to the host's loop.
type directs struct {
	// waiting are to be made, in order; underWay are made and undecided, by number.
	waiting  []*direct
	underWay map[uint64]*direct
	// crowded reports that a transaction found no room beside what waits for the running append.
	crowded bool
}

// direct is one transaction of the application.
type direct struct {
	ctx context.Context // the caller's context
	by  string
	f   func(*space.Tx) error
	// done receives the outcome, nil if the transaction is in the log.
	done chan error

	conflicts int
	first     time.Duration // when the first conflict was
	notBefore time.Duration
}

// submit makes the loop run a transaction, and waits for the outcome.
func (h *host) submit(ctx context.Context, by string, f func(*space.Tx) error) error {
	d := &direct{ctx: ctx, by: by, f: f, done: make(chan error, 1)}
	h.call(func() { h.directs.waiting = append(h.directs.waiting, d) })
	select {
	case err := <-d.done:
		return err
	case <-h.done:
		select {
		case err := <-d.done: // at the last moment
			return err
		default:
			return h.whyEnded()
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transacts reports whether transactions can be made now. Waiting ones are made later, or end with the host.
func (h *host) transacts() bool {
	return !h.directs.crowded && !h.draining && h.core.Attached() && h.core.Transacts()
}

// makeDirects makes the transactions that are due.
func (h *host) makeDirects() {
	ds := &h.directs
	if len(ds.waiting) == 0 || !h.transacts() {
		return
	}
	now := h.now()
	waiting := ds.waiting
	ds.waiting = nil
	for i, d := range waiting {
		switch {
		case d.ctx.Err() != nil: // the caller has given up
		case d.notBefore > now:
			ds.waiting = append(ds.waiting, d)
		default:
			h.makeDirect(d)
		}
		if ds.crowded {
			ds.waiting = append(ds.waiting, waiting[i+1:]...)
			return
		}
	}
}

func (h *host) makeDirect(d *direct) {
	ds := &h.directs
	n, err := h.core.Transact(d.by, d.f)
	switch {
	case errors.Is(err, space.ErrNoRoom):
		ds.crowded = true
		ds.waiting = append(ds.waiting, d)
	case err != nil:
		d.done <- err
	default:
		if ds.underWay == nil {
			ds.underWay = map[uint64]*direct{}
		}
		ds.underWay[n] = d
	}
}

// confirmDirects notifies the callers of transactions in a commit that is in the log.
func (h *host) confirmDirects(c *model.Commit) {
	for i := range c.Txs {
		if d := h.directs.underWay[c.Txs[i].N]; d != nil {
			delete(h.directs.underWay, c.Txs[i].N)
			d.done <- nil
		}
	}
}

// redoDirects schedules again the transactions that a refusal has undone.
func (h *host) redoDirects(undone []uint64) {
	now := h.now()
	var again []*direct
	for _, n := range undone {
		d := h.directs.underWay[n]
		delete(h.directs.underWay, n)
		if d == nil || d.ctx.Err() != nil {
			continue // no caller waits for it
		}
		if d.conflicts++; d.conflicts == 1 {
			d.first = now
		}
		pause, err := h.core.AfterConflict(d.by, d.conflicts, now-d.first)
		if err != nil {
			d.done <- err
			continue
		}
		d.notBefore = now + pause
		again = append(again, d)
	}
	h.directs.waiting = slices.Concat(again, h.directs.waiting)
}

// directsAt returns when the next transaction is to be made, 0 if none waits for a time; due
// reports that one is to be made now.
func (h *host) directsAt() (at time.Duration, due bool) {
	if !h.transacts() {
		return 0, false
	}
	now := h.now()
	for _, d := range h.directs.waiting {
		if d.notBefore <= now {
			return 0, true
		}
		if at == 0 || d.notBefore < at {
			at = d.notBefore
		}
	}
	return at, false
}
