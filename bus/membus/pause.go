package membus

import (
	"context"
	"time"
)

// Pause freezes the process of a client that is connected through a network, as SIGSTOP would, as far as its
// bus is concerned: messages that it sends or would receive from now on wait for Wake. Messages that have
// already left continue.
func (cl *client) Pause() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.asleep = true
}

// Wake undoes Pause. Delayed operations happen now, though not all at once (see Network.Waking).
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

// frozen is an operation that waits for a client to wake up.
type frozen struct {
	op Op
	do func()
}

// whenAwake calls do now, or when the client has woken up.
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

// awaitAwake returns once the client is awake and it is op's turn.
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

// pass waits for d.
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
