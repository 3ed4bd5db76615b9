package membus

import (
	"context"

	"github.com/settlehq/settle/model"
)

// Disconnect disconnects the client: its requests wait, it receives nothing, and it misses messages that no
// stream stores.
func (cl *client) Disconnect() { cl.setDown(true) }

// Reconnect undoes Disconnect.
func (cl *client) Reconnect() { cl.setDown(false) }

func (cl *client) setDown(down bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.down = down
	cl.wake.raise()
	cl.link.raise()
}

// Cut drops the outgoing or the incoming messages, or both, of a client that is connected through a network.
// Its requests and their answers are then lost rather than delayed; messages in streams wait.
func (cl *client) Cut(outgoing, incoming bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.cutOut, cl.cutIn = outgoing, incoming
	cl.link.raise()
}

// online reports whether the client is running and connected.
func (cl *client) online() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return !cl.down && !cl.cutOut && !cl.cutIn && !cl.closed
}

// linkState reports whether the client is connected; changed is closed when that may have changed.
func (cl *client) linkState() (up bool, changed <-chan struct{}) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return !cl.down && !cl.cutIn, cl.link.wait()
}

// awaitLink returns once the client is connected.
func (cl *client) awaitLink(ctx context.Context) error {
	for {
		up, changed := cl.linkState()
		if up {
			return cl.err(ctx)
		}
		if err := cl.await(ctx, changed); err != nil {
			return err
		}
	}
}

// await returns nil once the event has happened, or the reason why waiting is pointless.
func (cl *client) await(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-event:
		return cl.err(ctx)
	case <-ctx.Done():
		return ctx.Err()
	case <-cl.stopped:
		return model.ErrStopped
	}
}

// err returns why the client should do nothing more for ctx, nil if it should continue.
func (cl *client) err(ctx context.Context) error {
	select {
	case <-cl.stopped:
		return model.ErrStopped
	default:
		return ctx.Err()
	}
}
