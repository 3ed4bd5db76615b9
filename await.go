package settle

import (
	"context"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// awaits hands receipts to those who wait for them, by following the logs of the
// spaces that somebody waits on.
type awaits struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex
	followers map[string]*follower
	closed    bool
}

// follower reads one space's log for its waiters, and a while longer: who calls a
// space once often calls it again.
type follower struct {
	cancel  context.CancelFunc
	waiters map[receipts.Key][]chan *model.Receipt
	idle    *time.Timer
}

// waiter is one call's place at a follower.
type waiter struct {
	receipt chan *model.Receipt
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
	a.closed = true // nothing is followed from here on, so there is an end to wait for
	a.mu.Unlock()
	a.cancel()
	a.tasks.Wait()
}

// begin registers a waiter. From its return on, no receipt of the key that enters
// the log is missed.
func (a *awaits) begin(ctx context.Context, space string, key receipts.Key) (*waiter, error) {
	for {
		if a.ctx.Err() != nil {
			return nil, model.ErrStopped
		}
		if w := a.join(space, key, nil); w != nil {
			return w, nil
		}
		head, err := a.c.bus.Head(ctx, space)
		if err != nil {
			return nil, err
		}
		if w := a.join(space, key, &head); w != nil {
			return w, nil // somebody else has made the follower meanwhile
		}
		// now there is one: the next round joins it
	}
}

// join adds a waiter to the follower of a space. If there is none, it starts one
// after *head, or returns nil.
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
	w := &waiter{receipt: make(chan *model.Receipt, 1)}
	f.waiters[key] = append(f.waiters[key], w.receipt)
	w.end = func() { a.leave(f, key, w.receipt) }
	return w
}

// follow starts the follower of a space. a.mu is held. Its goroutine ends when it
// has been idle for long enough, or with the client.
func (a *awaits) follow(space string, after uint64) {
	ctx, cancel := context.WithCancel(a.ctx)
	f := &follower{cancel: cancel, waiters: map[receipts.Key][]chan *model.Receipt{}}
	f.idle = time.AfterFunc(followerLinger, func() { a.drop(space, f) })
	a.followers[space] = f
	a.tasks.Go(func() {
		err := a.c.bus.FollowSpace(ctx, space, after, func(e model.LogEntry) { a.look(f, e) })
		if err != nil && ctx.Err() == nil {
			a.c.logger.Warn("follow space for receipts", "space", space, "error", err)
		}
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		f.idle.Stop()
		if a.followers[space] == f {
			delete(a.followers, space)
		}
		for _, list := range f.waiters { // any order: all of them
			for _, ch := range list {
				close(ch)
			}
		}
		clear(f.waiters)
	})
}

// look hands out the receipts that a commit holds.
func (a *awaits) look(f *follower, e model.LogEntry) {
	c, err := model.DecodeCommit(e.Data)
	if err != nil {
		a.c.logger.Warn("read commit", "space", e.Space, "sequence", e.Seq, "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range c.Txs {
		tx := &c.Txs[i]
		if tx.Receipt == nil {
			continue
		}
		stream, _ := receipts.Stream(tx.By)
		key := receipts.Key{Stream: stream, ID: tx.Receipt.Event}
		for _, ch := range f.waiters[key] {
			ch <- tx.Receipt // has room for one, and there is only one
		}
		delete(f.waiters, key)
	}
}

func (a *awaits) leave(f *follower, key receipts.Key, ch chan *model.Receipt) {
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
	if len(f.waiters) == 0 {
		f.idle.Reset(followerLinger)
	}
}

// drop ends a follower that nobody joined meanwhile.
func (a *awaits) drop(space string, f *follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(f.waiters) == 0 && a.followers[space] == f {
		delete(a.followers, space)
		f.cancel()
	}
}
