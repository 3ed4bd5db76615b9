package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// WaitTree blocks until an event and everything that it causes, directly and indirectly, has ended, notices
// included, and returns how many of them ended in which state. It does not wait for events that are redriven
// later. The event may not have been sent yet. If ctx ends first, that is the error, and ReadTree shows what
// is still open. The bounds of a TreeQuery do not apply: the only limit is that more than 100,000 events are
// ErrTooMany.
//
// It follows the log of every space with open events of the tree: a commit shows which events it ended and
// which it sent.
func WaitTree(ctx context.Context, bus port.Client, space, stream, id string) (map[lineage.State]int, error) {
	err := errors.Join(model.CheckName("space", space), model.CheckName("stream", stream), model.CheckAnyEventID(id))
	if err != nil {
		return nil, err
	}
	w := &wait{bus: bus, open: map[EventRef]bool{}, timed: map[EventRef]uint64{}, epoch: bus.Epoch(), states: map[lineage.State]int{}, aged: map[EventRef]int{}, spaces: map[string]*followed{}, slots: make(chan struct{}, readers)}
	g, within := errgroup.WithContext(ctx)
	w.group, w.ctx = g, within
	g.Go(func() error { return w.lookAgain() })
	w.add(&TreeNode{EventRef: EventRef{space, stream, id}}, nil)
	err = g.Wait()
	switch {
	case errors.Is(err, errSettled):
		return w.states, nil
	case ctx.Err() != nil:
		err = fmt.Errorf("%w; still open: %d", ctx.Err(), w.count())
	}
	return nil, fmt.Errorf("wait for all that event %s to %s/%s causes: %w", id, space, stream, err)
}

// errSettled ends the goroutines of a wait that is over.
var errSettled = errors.New("nothing is open")

// maxOpen bounds the events of a wait, so that an endless tree does not exhaust the memory.
const maxOpen = 100_000

// wait is a wait for one tree.
type wait struct {
	bus   port.Client
	group *errgroup.Group
	ctx   context.Context
	slots chan struct{} // held by lookups

	mu     sync.Mutex
	open   map[EventRef]bool     // true until it has ended
	timed  map[EventRef]uint64   // waits in its space, where it may be cancelled, from the commit at that sequence on
	epoch  uint64                // of the store when the wait began
	states map[lineage.State]int // how many have ended in each state
	aged   map[EventRef]int      // for how many ticks of port.StaleLeader it has been open
	left   int                   // how many have not ended
	spaces map[string]*followed
}

// followed is a space whose log is followed.
type followed struct {
	started chan struct{} // closed when its log is followed
	seen    uint64        // up to which sequence; guarded by w.mu
}

func (w *wait) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}

// add waits for one more event. Its receipt is looked up after the log of its space is followed, so that none
// is missed.
func (w *wait) add(n *TreeNode, sender *Handling) {
	r := n.EventRef
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, met := w.open[r]; met {
		return
	}
	w.open[r] = true
	if n.waits > 0 {
		w.timed[r] = n.waits
	}
	w.left++
	if len(w.open) > maxOpen {
		w.group.Go(func() error { return fmt.Errorf("%w: more than %d", ErrTooMany, maxOpen) })
		return
	}
	f := w.spaces[r.Space]
	if f == nil {
		f = &followed{started: make(chan struct{})}
		w.spaces[r.Space] = f
		w.group.Go(func() error { return w.follow(r.Space, f) })
	}
	w.group.Go(func() error { return w.find(n, f, sender) })
}

// follow reads the log of a space from its present end, until the wait is over. Entries that are purged
// before they are read may have ended events, which are then looked up.
func (w *wait) follow(space string, f *followed) error {
	for started := f.started; ; started = nil {
		head, err := w.bus.Head(w.ctx, space)
		if err != nil {
			return err
		}
		w.mu.Lock()
		f.seen = head
		w.mu.Unlock()
		if started != nil {
			close(started)
		} else {
			w.findAll(space, f)
		}
		if err := w.followFrom(space, head, f); !errors.Is(err, model.ErrPurged) {
			return err
		}
	}
}

// findAll looks up all open events of a space.
func (w *wait) findAll(space string, f *followed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, open := range w.open { // any order: each on its own
		if open && r.Space == space {
			n := &TreeNode{EventRef: r, waits: w.timed[r]}
			w.group.Go(func() error { return w.find(n, f, nil) })
		}
	}
}

// followFrom reads the log of a space after a sequence.
func (w *wait) followFrom(space string, head uint64, f *followed) error {
	var broken error
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	err := w.bus.FollowSpace(ctx, space, head, func(e model.LogEntry) {
		if broken == nil {
			if broken = w.read(f, e); broken != nil {
				cancel()
			}
		}
	})
	if broken != nil {
		return broken
	}
	return err
}

// read processes the receipts and sends of a commit.
func (w *wait) read(f *followed, e model.LogEntry) error {
	c, err := ReadCommit(w.ctx, w.bus, &e)
	if err != nil {
		return err
	}
	w.mu.Lock()
	f.seen = e.Seq
	w.mu.Unlock()
	for i := range c.Txs {
		for _, gone := range c.Txs[i].Cancels {
			if err := w.cancelled(e.Space, gone.ID); err != nil {
				return err
			}
		}
		if tx := &c.Txs[i]; tx.Receipt != nil {
			if stream, ok := receipts.Stream(tx.By); ok {
				h := &Handling{Space: e.Space, Seq: e.Seq, Stored: e.Stored, Tx: *tx}
				if err := w.ended(EventRef{e.Space, stream, tx.Receipt.Event}, h); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cancelled ends an event that waited for its time, if it belongs to the tree.
func (w *wait) cancelled(space, id string) error {
	w.mu.Lock()
	var gone []EventRef
	for r := range w.timed { // any order: ids are unique in a space
		if r.Space == space && r.Event == id {
			gone = append(gone, r)
		}
	}
	w.mu.Unlock()
	for _, r := range gone {
		if err := w.end(r, nil, lineage.Cancelled); err != nil {
			return err
		}
	}
	return nil
}

// findTimed looks up an event that waits for its time, from the commit at a sequence on. If it neither waits nor has a receipt
// after that, it was cancelled.
func (w *wait) findTimed(r EventRef, since uint64) error {
	waiting, seen, err := findWaiting(w.ctx, w.bus, r.Space, r.Stream, r.Event, reaches(w.bus, w.epoch, since))
	if err != nil || waiting != nil {
		return err
	}
	h, err := FindReceiptUpTo(w.ctx, w.bus, r.Space, r.Stream, r.Event, seen) // what ended it may be the last commit
	switch {
	case errors.Is(err, ErrForgotten):
		return w.ended(r, nil)
	case err != nil:
		return err
	case h != nil:
		return w.ended(r, h)
	}
	return w.end(r, nil, lineage.Cancelled)
}

// find looks up the receipt of an event, which may be in the log already.
func (w *wait) find(n *TreeNode, f *followed, sender *Handling) error {
	r := n.EventRef
	select {
	case <-f.started:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	select {
	case w.slots <- struct{}{}:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	defer func() { <-w.slots }()
	w.mu.Lock()
	open, seen := w.open[r], f.seen
	w.mu.Unlock()
	if !open {
		return nil
	}
	h, err := FindReceiptUpTo(w.ctx, w.bus, r.Space, r.Stream, r.Event, seen)
	switch {
	case errors.Is(err, ErrForgotten):
		return w.ended(r, nil) // what it caused is no longer known
	case err != nil:
		return err
	case h != nil:
		return w.ended(r, h)
	case n.waits > 0:
		return w.findTimed(r, n.waits)
	case sender != nil:
		was, err := passed(w.ctx, w.bus, r, sender.Space, n.Position, sender.Stored)
		if err != nil || !was {
			return err
		}
		return w.ended(r, nil)
	}
	return nil
}

// ended records the end of an event and adds the events that its handling caused, if it belongs to
// the tree.
func (w *wait) ended(r EventRef, h *Handling) error { return w.end(r, h, stateOf(h)) }

func (w *wait) end(r EventRef, h *Handling, how lineage.State) error {
	w.mu.Lock()
	mine := w.open[r]
	if mine {
		w.open[r] = false
		w.states[how]++
		delete(w.timed, r)
	}
	w.mu.Unlock()
	if !mine {
		return nil
	}
	for _, n := range caused(&TreeNode{EventRef: r}, h) {
		w.add(n, h)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.left == 0 {
		return errSettled
	}
	return nil
}

// stateOf returns the state in which a handling left its event; a nil handling is one that is no longer
// known.
func stateOf(h *Handling) lineage.State {
	if h == nil {
		return lineage.Forgotten
	}
	return lineage.State(h.Tx.Receipt.Outcome)
}

// lookAgain looks up events that have been open for longer than port.StaleLeader; all others are found in the
// followed logs.
func (w *wait) lookAgain() error {
	t := time.NewTicker(port.StaleLeader)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
		w.mu.Lock()
		for r, open := range w.open { // any order: each on its own
			if !open {
				delete(w.aged, r)
				continue
			}
			if w.aged[r]++; w.aged[r] == 2 {
				f, n := w.spaces[r.Space], &TreeNode{EventRef: r, waits: w.timed[r]}
				w.group.Go(func() error { return w.find(n, f, nil) })
			}
		}
		w.mu.Unlock()
	}
}
