package membus

import (
	"context"

	"github.com/settlehq/settle/model"
)

// Disconnect cuts the client off: its requests wait, nothing is delivered to it,
// and what is published meanwhile passes it by.
func (b *Bus) Disconnect() { b.setDown(true) }

// Reconnect ends what Disconnect began.
func (b *Bus) Reconnect() { b.setDown(false) }

// Disconnect cuts all clients off, as a restart of the server does.
func (s *Server) Disconnect() {
	for _, b := range s.connected() {
		b.Disconnect()
	}
}

// Reconnect ends what Disconnect began.
func (s *Server) Reconnect() {
	for _, b := range s.connected() {
		b.Reconnect()
	}
}

func (s *Server) connected() []*Bus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Bus
	// any order: each is independent of the others
	for b := range s.clients {
		all = append(all, b)
	}
	return all
}

func (b *Bus) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
	b.wake.raise()
	b.link.raise()
}

// Cut lets nothing leave a client that is connected through a network (mute), or
// nothing come in (deaf), or neither. Its requests and their answers are lost then, and
// not held back; what streams keep waits.
func (b *Bus) Cut(mute, deaf bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mute, b.deaf = mute, deaf
	b.link.raise()
}

// online reports whether the client is there and connected.
func (b *Bus) online() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.down && !b.mute && !b.deaf && !b.closed
}

// linkState tells whether the client is connected; changed is closed when that
// may be different.
func (b *Bus) linkState() (up bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.down && !b.deaf, b.link.wait()
}

// awaitLink returns once the client is connected.
func (b *Bus) awaitLink(ctx context.Context) error {
	for {
		up, changed := b.linkState()
		if up {
			return b.err(ctx)
		}
		if err := b.await(ctx, changed); err != nil {
			return err
		}
	}
}

// await returns once the event has happened, or with the reason why there is no
// use in waiting.
func (b *Bus) await(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-event:
		return b.err(ctx)
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return model.ErrStopped
	}
}

// err is why the client should do nothing more for ctx, nil if it should.
func (b *Bus) err(ctx context.Context) error {
	select {
	case <-b.stopped:
		return model.ErrStopped
	default:
		return ctx.Err()
	}
}
