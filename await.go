package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// Await waits for the receipt of an event, which may have been handled long ago or may not have
// been sent yet. The error is about the wait; how the event ended is in the receipt. The error is
// history.ErrForgotten if the event is known to lie beyond the horizon; a plain id that the lane has
// forgotten looks like one that is yet to be sent, and Await keeps waiting for it.
func (s Space) Await(ctx context.Context, stream string, id EventID) (*model.Receipt, error) {
	c, ev := s.client, awaited{space: s.name, key: receipts.Key{Stream: stream, ID: s.client.event(id)}}
	err := ev.check()
	if err == nil {
		err = c.deployed(ctx)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.awaits.bind(ctx)
	defer cancel()
	w, err := c.awaits.begin(ctx, ev)
	if err != nil {
		return nil, ev.failed(ctx, err)
	}
	return c.await(ctx, ev, w, true, nil)
}

// awaited names an event whose receipt is awaited.
type awaited struct {
	space string
	key   receipts.Key
}

func (ev awaited) check() error {
	if err := model.CheckName("space", ev.space); err != nil {
		return err
	}
	if err := model.CheckName("stream", ev.key.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(ev.key.ID)
}

// failed returns the error of a wait that brought no receipt.
func (ev awaited) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ended(ctx)
	}
	return fmt.Errorf("wait for the receipt of event %s to %s/%s: %w", ev.key.ID, ev.space, ev.key.Stream, err)
}

// await waits at w, and first searches the log if the event may have been handled already. An event
// that the lane did not know may have been handled before the wait began if a deposed leader
// answered, so the log is searched once more after port.StaleLeader; that is the only search
// without a cause in the log. If the store has gone back and nothing is found, await calls again,
// unless that is nil. It ends w.
func (c *Client) await(ctx context.Context, ev awaited, w *waiter, look bool, again func() error) (*model.Receipt, error) {
	end := c.observed.receive(ctx, ev.space, ev.key)
	tx, err := c.awaitTx(ctx, ev, w, look, again)
	end(tx, err)
	if err != nil {
		return nil, err
	}
	return tx.Receipt, nil
}

// awaitTx is await for the transaction that has the receipt.
func (c *Client) awaitTx(ctx context.Context, ev awaited, w *waiter, look bool, again func() error) (*model.Tx, error) {
	defer func() { w.end() }()
	epoch := w.epoch
	later := time.NewTimer(port.StaleLeader)
	defer later.Stop()
	for {
		if look {
			seen := w.seen
			if c.bus.Epoch() != w.epoch {
				seen = 0 // the log may not reach there any more
			}
			h, err := history.FindReceiptUpTo(ctx, c.bus, ev.space, ev.key.Stream, ev.key.ID, seen)
			switch {
			case errors.Is(err, model.ErrRewound) && ctx.Err() == nil:
				_ = pause.For(ctx, lookPause)
				continue
			case ctx.Err() != nil || err != nil && !errors.Is(err, history.ErrForgotten):
				return nil, ev.failed(ctx, err)
			case err != nil:
				return nil, err
			case h != nil:
				return &h.Tx, nil
			}
			if now := c.bus.Epoch(); now != epoch && again != nil {
				if err := again(); err != nil {
					return nil, ev.failed(ctx, err)
				}
				epoch = now
			}
		}
		select {
		case tx, ok := <-w.receipt:
			if ok {
				return tx, nil
			}
			// The log could not be followed any further. The receipt may be in it by now.
			_ = pause.For(ctx, lookPause)
			next, err := c.awaits.begin(ctx, ev)
			if err != nil {
				return nil, ev.failed(ctx, err)
			}
			w, look = next, true
		case <-later.C:
			look = true
		case <-ctx.Done():
			return nil, ev.failed(ctx, nil)
		}
	}
}

// lookPause is how long a client waits before it follows a log again after losing it.
const lookPause = 5 * time.Millisecond

// awaits delivers receipts to waiting calls, by following the logs of the spaces that they wait on.
type awaits struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex
	followers map[string]*follower
	closed    bool
}

// follower reads one space's log, for calls that wait for receipts and for watches. If there was a call, it lingers, since calls to a
// space tend to be repeated.
type follower struct {
	space   string
	epoch   uint64 // of the store
	cancel  context.CancelFunc
	waiters map[receipts.Key][]chan *model.Tx
	taps    map[*tap]struct{}
	recent  recent
	called  bool // there was a call
	idle    *time.Timer
	seen    uint64 // the sequence up to which the log has been looked at
}

// waiter is one call's registration at a follower: it receives the transaction with every receipt that enters the log
// after seen. epoch is the store's epoch when the wait began.
type waiter struct {
	receipt chan *model.Tx
	seen    uint64
	epoch   uint64
	end     func()
}

// followerLinger is how long a follower stays without waiters.
const followerLinger = 10 * time.Second

func (a *awaits) init(c *Client) {
	a.c, a.followers = c, map[string]*follower{}
	a.ctx, a.cancel = context.WithCancel(context.Background())
}

func (a *awaits) close() {
	a.mu.Lock()
	a.closed = true // no follower starts after this, so Wait below terminates
	a.mu.Unlock()
	a.cancel()
	a.tasks.Wait()
}

// bind derives a context that also ends with the client.
func (a *awaits) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(model.ErrStopped) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// ended returns why a context of bind ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, model.ErrStopped) {
		return cause
	}
	return ctx.Err()
}

// begin registers a waiter. From its return on, no receipt of the event that enters the log is
// missed.
func (a *awaits) begin(ctx context.Context, ev awaited) (*waiter, error) {
	space, key := ev.space, ev.key
	for {
		if a.ctx.Err() != nil {
			return nil, model.ErrStopped
		}
		if w := a.join(space, key, nil); w != nil {
			return w, nil
		}
		head, err := a.c.reads.Head(ctx, space)
		if err != nil {
			return nil, err
		}
		if w := a.join(space, key, &head); w != nil {
			return w, nil // another call has started the follower meanwhile
		}
		// now there is one: the next round joins it
	}
}

// join adds a waiter to the follower of a space. Without a follower it starts one after *head, or
// returns nil.
func (a *awaits) join(space string, key receipts.Key, head *uint64) *waiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.followers[space]
	if f == nil {
		if head != nil && !a.closed {
			a.follow(space, *head)
		}
		return nil
	}
	f.idle.Stop()
	f.called = true
	w := &waiter{receipt: make(chan *model.Tx, 1), seen: f.seen, epoch: a.c.bus.Epoch()}
	f.waiters[key] = append(f.waiters[key], w.receipt)
	w.end = func() { a.leave(f, key, w.receipt) }
	return w
}

// follow starts the follower of a space. a.mu is held. Its goroutine ends after it has been idle
// for followerLinger, or with the client.
func (a *awaits) follow(space string, after uint64) *follower {
	ctx, cancel := context.WithCancel(a.ctx)
	f := &follower{space: space, epoch: a.c.bus.Epoch(), cancel: cancel, waiters: map[receipts.Key][]chan *model.Tx{}, seen: after}
	f.idle = time.AfterFunc(followerLinger, func() { a.drop(f) })
	a.followers[space] = f
	a.tasks.Go(func() {
		err := a.c.bus.FollowSpace(port.WithEpoch(ctx, f.epoch), space, after, func(e model.LogEntry) { a.look(f, e) })
		if err != nil && ctx.Err() == nil {
			a.c.logger.Warn("follow space", "space", space, "error", err)
		}
		if err == nil || ctx.Err() != nil {
			err = model.ErrPurged // the watches read on by themselves
		}
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		f.idle.Stop()
		if a.followers[space] == f {
			delete(a.followers, space)
		}
		f.leaveLog()
		for t := range f.taps { // any order: all of them
			t.end(err)
		}
	})
	return f
}

// leaveLog has the waiters read the log themselves.
func (f *follower) leaveLog() {
	for _, list := range f.waiters { // any order: all of them
		for _, ch := range list {
			close(ch)
		}
	}
	clear(f.waiters)
}

// look delivers the receipts in a commit, and passes it on to watches.
func (a *awaits) look(f *follower, e model.LogEntry) {
	e = e.Shared(sync.OnceValues)
	if !a.note(f, &e) {
		return
	}
	c, err := e.Commit()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.c.logger.Warn("read commit", "space", e.Space, "sequence", e.Seq, "error", err)
		f.leaveLog() // they report the error
		return
	}
	for i := range c.Txs {
		tx := &c.Txs[i]
		if tx.Receipt == nil {
			continue
		}
		stream, _ := receipts.Stream(tx.By)
		key := receipts.Key{Stream: stream, ID: tx.Receipt.Event}
		for _, ch := range f.waiters[key] {
			ch <- tx // has room for one, and there is only one per event
		}
		delete(f.waiters, key)
	}
}

// note records a commit, and reports whether it may have a receipt that a call waits for. Decoding those that have none would be most of
// what a follower costs.
func (a *awaits) note(f *follower, e *model.LogEntry) (awaited bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.seen = e.Seq
	f.recent.add(e)
	for t := range f.taps { // any order: each on its own
		t.push(e)
	}
	return f.awaits(e)
}

// searched is the number of waiters up to which a commit is searched for the ids of their events, which is cheaper than to decode it.
const searched = 4

// awaits reports whether a commit may have a receipt that a call waits for, or cannot be read.
func (f *follower) awaits(e *model.LogEntry) bool {
	if len(f.waiters) == 0 || len(f.waiters) > searched || !e.IsKnownForm() {
		return len(f.waiters) > 0
	}
	for key := range f.waiters { // any order: whether there is one
		if e.MayName(key.ID) {
			return true
		}
	}
	return false
}

func (a *awaits) leave(f *follower, key receipts.Key, ch chan *model.Tx) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := f.waiters[key]
	for i := range list {
		if list[i] == ch {
			f.waiters[key] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(f.waiters[key]) == 0 {
		delete(f.waiters, key)
	}
	a.rest(f)
}

// rest lets a follower that nothing uses any more linger, or ends it if there was no call. a.mu is held.
func (a *awaits) rest(f *follower) {
	switch {
	case len(f.waiters) > 0 || len(f.taps) > 0:
	case f.called:
		f.idle.Reset(followerLinger)
	default:
		a.end(f)
	}
}

// drop ends a follower that nothing has joined meanwhile.
func (a *awaits) drop(f *follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(f.waiters) == 0 && len(f.taps) == 0 {
		a.end(f)
	}
}

// end ends a follower. a.mu is held.
func (a *awaits) end(f *follower) {
	if a.followers[f.space] == f {
		delete(a.followers, f.space)
		f.cancel()
	}
}
