package membus

import (
	"context"
	"time"
)

// Pause freezes the process of a client that is connected through a network, as
// SIGSTOP does, as far as its bus goes: what it sends from now on, and what comes for
// it, waits for Wake. What has left already goes on.
func (b *Bus) Pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asleep = true
}

// Wake ends what Pause began. What has waited happens now, though not all of it at once
// (see Network.Waking).
func (b *Bus) Wake() {
	b.mu.Lock()
	waiting := b.frozen
	b.asleep, b.frozen = false, nil
	b.woken.raise()
	b.mu.Unlock()
	for _, f := range waiting {
		time.AfterFunc(b.net.Waking(f.op), func() { b.whenAwake(f.op, f.do) })
	}
}

// frozen is something that waits for a client to wake up.
type frozen struct {
	op Op
	do func()
}

// whenAwake does something now, or when the client has woken up.
func (b *Bus) whenAwake(op Op, do func()) {
	b.mu.Lock()
	if b.asleep {
		b.frozen = append(b.frozen, frozen{op, do})
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	do()
}

// awaitAwake returns once the client is awake and it is the turn of what op says.
func (b *Bus) awaitAwake(ctx context.Context, op Op) error {
	for {
		b.mu.Lock()
		asleep, woken := b.asleep, b.woken.wait()
		b.mu.Unlock()
		if !asleep {
			return nil
		}
		if err := b.await(ctx, woken); err != nil {
			return err
		}
		if err := b.pass(ctx, b.net.Waking(op)); err != nil {
			return err
		}
	}
}

// pass lets time pass.
func (b *Bus) pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return b.err(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return b.err(ctx)
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return b.err(ctx)
	}
}
