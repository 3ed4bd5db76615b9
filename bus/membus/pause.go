package membus

import (
	"context"
	"time"
)

// Pause freezes the process of a client that is connected through a network, as
// SIGSTOP does, as far as its bus goes: what it sends from now on, and what comes for
// it, waits for Wake. What has left already goes on.
func (cl *client) Pause() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.asleep = true
}

// Wake ends what Pause began. What has waited happens now, though not all of it at once
// (see Network.Waking).
func (cl *client) Wake() {
	cl.mu.Lock()
	waiting := cl.frozen
	cl.asleep, cl.frozen = false, nil
	cl.woken.raise()
	cl.mu.Unlock()
	for _, f := range waiting {
		time.AfterFunc(cl.net.Waking(f.op), func() { cl.whenAwake(f.op, f.do) })
	}
}

// frozen is something that waits for a client to wake up.
type frozen struct {
	op Op
	do func()
}

// whenAwake does something now, or when the client has woken up.
func (cl *client) whenAwake(op Op, do func()) {
	cl.mu.Lock()
	if cl.asleep {
		cl.frozen = append(cl.frozen, frozen{op, do})
		cl.mu.Unlock()
		return
	}
	cl.mu.Unlock()
	do()
}

// awaitAwake returns once the client is awake and it is the turn of what op says.
func (cl *client) awaitAwake(ctx context.Context, op Op) error {
	for {
		cl.mu.Lock()
		asleep, woken := cl.asleep, cl.woken.wait()
		cl.mu.Unlock()
		if !asleep {
			return nil
		}
		if err := cl.await(ctx, woken); err != nil {
			return err
		}
		if err := cl.pass(ctx, cl.net.Waking(op)); err != nil {
			return err
		}
	}
}

// pass lets time pass.
func (cl *client) pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return cl.err(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return cl.err(ctx)
	case <-ctx.Done():
		return ctx.Err()
	case <-cl.stopped:
		return cl.err(ctx)
	}
}
