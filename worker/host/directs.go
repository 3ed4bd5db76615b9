package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// directs holds the transactions of the application that hosts the space. A transaction that another
// runtime's commit has undone is retried until it is in the log or the conflict window has passed. All fields
// belong to the host's loop.
type directs struct {
	// waiting are to be made, in order; undecided were made but are not in the log yet, by number.
	waiting   []*direct
	undecided map[uint64]*direct
	// full reports that a transaction found no room beside those that wait for the running append.
	full bool
}

// direct is one transaction of the application.
type direct struct {
	ctx context.Context // the caller's context
	by  string
	// do makes it in the core, and returns its number.
	do func(Graph) (uint64, error)
	// done receives the outcome, nil if the transaction is in the log.
	done chan error

	conflicts int
	first     time.Duration // when the first conflict occurred
	notBefore time.Duration
}

// directCore makes the transactions of an application.
type directCore interface {
	Attached() bool
	Transacts() bool
	AfterConflict(by string, n int, since time.Duration) (time.Duration, error)
}

// ready reports whether transactions can be made now. Waiting ones are made later, or end with the host.
func (ds *directs) ready(core directCore) bool {
	return !ds.full && core.Attached() && core.Transacts()
}

// make makes the transactions that are due.
func (ds *directs) make(core Graph, now time.Duration) {
	if len(ds.waiting) == 0 || !ds.ready(core) {
		return
	}
	waiting := ds.waiting
	ds.waiting = nil
	for i, d := range waiting {
		switch {
		case d.ctx.Err() != nil: // the caller has given up
		case d.notBefore > now:
			ds.waiting = append(ds.waiting, d)
		default:
			ds.makeOne(core, d)
		}
		if ds.full {
			ds.waiting = append(ds.waiting, waiting[i+1:]...)
			return
		}
	}
}

func (ds *directs) makeOne(core Graph, d *direct) {
	n, err := d.do(core)
	switch {
	case errors.Is(err, ledger.ErrNoRoom):
		ds.full = true
		ds.waiting = append(ds.waiting, d)
	case err != nil:
		d.done <- err
	default:
		if ds.undecided == nil {
			ds.undecided = map[uint64]*direct{}
		}
		ds.undecided[n] = d
	}
}

// confirm notifies the callers of transactions in a commit that is in the log.
func (ds *directs) confirm(c *model.Commit) {
	for i := range c.Txs {
		if d := ds.undecided[c.Txs[i].N]; d != nil {
			delete(ds.undecided, c.Txs[i].N)
			d.done <- nil
		}
	}
}

// redo schedules again the transactions that a refusal has undone.
func (ds *directs) redo(core directCore, now time.Duration, undone []uint64) {
	var again []*direct
	for _, n := range undone {
		d := ds.undecided[n]
		delete(ds.undecided, n)
		if d == nil || d.ctx.Err() != nil {
			continue // no caller waits for it
		}
		if d.conflicts++; d.conflicts == 1 {
			d.first = now
		}
		pause, err := core.AfterConflict(d.by, d.conflicts, now-d.first)
		if err != nil {
			d.done <- err
			continue
		}
		d.notBefore = now + pause
		again = append(again, d)
	}
	ds.waiting = slices.Concat(again, ds.waiting)
}

// next returns when the next transaction is to be made, 0 if none waits for a time; due
// reports that one is to be made now.
func (ds *directs) next(core directCore, now time.Duration) (at time.Duration, due bool) {
	if !ds.ready(core) {
		return 0, false
	}
	for _, d := range ds.waiting {
		if d.notBefore <= now {
			return 0, true
		}
		if at == 0 || d.notBefore < at {
			at = d.notBefore
		}
	}
	return at, false
}
